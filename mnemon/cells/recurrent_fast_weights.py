"""Recurrent fast weights (Schmidhuber 1993)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import glorot_normal


class RecurrentFastState(NamedTuple):
    """What a recurrent fast-weight net carries."""

    hidden: Float[Array, " hidden"]  # h_t
    fast: Float[Array, "hidden hidden"]  # F_t^T


class RecurrentFastWeights(AbstractCell[RecurrentFastState, Array]):
    r"""A recurrent net that adds outer products, of its own making, to its recurrent matrix.

    $$\begin{aligned}
    h_{t+1} &= \tanh((W + F_t) h_t + C x_t + c) \\
    F_{t+1} &= F_t + b(h_t) a(h_t)^T, \qquad a(h) = A h + a_0, \quad b(h) = B h + b_0
    \end{aligned}$$

    **Notes.** Nothing is forgotten, so F grows with time; tanh bounds the state.

    >>> import jax
    >>> cell = RecurrentFastWeights(3, 5, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.fast.shape
    (5, 5)
    """

    input_weights: Float[Array, "input hidden"]  # C
    recurrent_weights: Float[Array, "hidden columns"]  # W | A | B
    bias: Float[Array, " hidden"]  # c
    source_bias: Float[Array, " hidden"]  # a_0
    target_bias: Float[Array, " hidden"]  # b_0
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def __init__(self, input_size: int, hidden_size: int, *, key: PRNGKeyArray):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=64")
        input_key, *recurrent_keys = jax.random.split(key, 4)
        self.input_weights = glorot_normal(input_key, input_size, hidden_size)
        self.recurrent_weights = jnp.concatenate(
            [glorot_normal(k, hidden_size, hidden_size) for k in recurrent_keys], axis=1
        )
        self.bias = self.source_bias = self.target_bias = jnp.zeros((hidden_size,))
        self.input_size, self.output_size = input_size, hidden_size

    def init_state(self) -> RecurrentFastState:
        size = self.output_size
        return RecurrentFastState(jnp.zeros((size,), self.bias.dtype), jnp.zeros((size, size), self.bias.dtype))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " hidden"]:
        return x @ self.input_weights + self.bias

    def step(
        self, state: RecurrentFastState, drive: Float[Array, " hidden"], *, key: Key = None
    ) -> tuple[RecurrentFastState, Float[Array, " hidden"]]:
        slow, source, target = jnp.split(state.hidden @ self.recurrent_weights, 3)
        hidden = jnp.tanh(drive + slow + state.hidden @ state.fast)
        fast = state.fast + jnp.outer(source + self.source_bias, target + self.target_bias)
        return RecurrentFastState(hidden, fast), hidden
