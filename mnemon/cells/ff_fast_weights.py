"""Feed-forward fast weights (Schmidhuber 1992)."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import glorot_normal


class FeedForwardFastState(NamedTuple):
    """What a feed-forward fast-weight net carries: nothing but its fast weights."""

    fast: Float[Array, "input output"]  # W_t^T


class FeedForwardFastDrive(NamedTuple):
    """The input and what the slow net makes of it."""

    x: Float[Array, " input"]
    source: Float[Array, " input"]  # a_t, FROM
    target: Float[Array, " output"]  # b_t, TO


class FeedForwardFastWeights(AbstractCell[FeedForwardFastState, FeedForwardFastDrive]):
    r"""A slow feed-forward net programs a fast one by outer products of FROM and TO vectors.

    $$\begin{aligned}
    [a_t, b_t] &= x_t S + s \\
    W_t &= g(W_{t-1} + b_t a_t^T) \\
    y_t &= W_t x_t
    \end{aligned}$$

    **Notes.** g squashes each fast weight. The paper leaves its choice open: tanh here, which also makes the net
    forget, or nothing (`squash="none"`), which makes it linear attention without normalisation.

    >>> import jax
    >>> cell = FeedForwardFastWeights(3, 5, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.fast.shape
    (3, 5)
    """

    slow_weights: Float[Array, "input source_and_target"]  # S: to a | b
    bias: Float[Array, " source_and_target"]  # s
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    squash: Literal["tanh", "none"] = eqx.field(static=True)

    def __init__(
        self, input_size: int, hidden_size: int, *, squash: Literal["tanh", "none"] = "tanh", key: PRNGKeyArray
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of y.
        - `squash`: g.
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=64")
        require(squash in ("tanh", "none"), "squash", squash, "tanh or none", "squash='tanh'")
        self.slow_weights = glorot_normal(key, input_size, input_size + hidden_size)
        self.bias = jnp.zeros((input_size + hidden_size,))
        self.input_size, self.output_size = input_size, hidden_size
        self.squash = squash

    def init_state(self) -> FeedForwardFastState:
        return FeedForwardFastState(jnp.zeros((self.input_size, self.output_size), self.bias.dtype))

    def drive(self, x: Float[Array, " input"]) -> FeedForwardFastDrive:
        source, target = jnp.split(x @ self.slow_weights + self.bias, [self.input_size])
        return FeedForwardFastDrive(x, source, target)

    def step(
        self, state: FeedForwardFastState, drive: FeedForwardFastDrive, *, key: Key = None
    ) -> tuple[FeedForwardFastState, Float[Array, " output"]]:
        fast = state.fast + jnp.outer(drive.source, drive.target)
        if self.squash == "tanh":
            fast = jnp.tanh(fast)
        return FeedForwardFastState(fast), drive.x @ fast
