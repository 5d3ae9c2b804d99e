"""Gated recurrent unit (thesis 2.5)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import dropout, glorot_normal, orthogonal, require_dropout


class GRUState(NamedTuple):
    """What a GRU carries."""

    hidden: Float[Array, " hidden"]  # h_t


class GRUDrive(NamedTuple):
    """What the input contributes to the pre-activations."""

    gates: Float[Array, " two_hidden"]  # to z and r
    candidate: Float[Array, " hidden"]


class GRU(AbstractCell[GRUState, GRUDrive]):
    r"""GRU, the reset gate applied before the matrix.

    $$\begin{aligned}
    z_t &= \sigma(x_t W_{xz} + h_{t-1} W_{hz} + b_z) \\
    r_t &= \sigma(x_t W_{xr} + h_{t-1} W_{hr} + b_r) \\
    \tilde h_t &= \tanh(x_t W_{xh} + (r_t \odot h_{t-1}) W_{hh} + b_h) \\
    h_t &= (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t
    \end{aligned}$$

    (thesis 2.30-2.33).

    **Notes.** `torch.nn.GRU` and cuDNN apply the reset gate after the matrix, with a second bias:
    `reset_after=True` does that, \(\tilde h_t = \tanh(x_t W_{xh} + b_h + r_t \odot (h_{t-1} W_{hh} + c_h))\).

    >>> import jax
    >>> cell = GRU(3, 5, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape
    (5,)
    """

    input_weights: Float[Array, "input gates"]  # W_xz | W_xr | W_xh
    gate_weights: Float[Array, "hidden two_hidden"]  # W_hz | W_hr
    candidate_weights: Float[Array, "hidden hidden"]  # W_hh
    bias: Float[Array, " gates"]  # b_z | b_r | b_h
    candidate_bias: Float[Array, " hidden"] | None  # c_h, only with reset_after
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    recurrent_dropout: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        reset_after: bool = False,
        recurrent_dropout: float = 0.0,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `reset_after`: reset the product instead of the state, as cuDNN does.
        - `recurrent_dropout`: probability of dropping a candidate value.
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        require_dropout(recurrent_dropout)
        input_key, recurrent_key = jax.random.split(key)
        self.input_weights = jnp.concatenate(
            [glorot_normal(k, input_size, hidden_size) for k in jax.random.split(input_key, 3)], axis=1
        )
        recurrent = orthogonal(recurrent_key, hidden_size, blocks=3)
        self.gate_weights = recurrent[:, : 2 * hidden_size]
        self.candidate_weights = recurrent[:, 2 * hidden_size :]
        self.bias = jnp.zeros((3 * hidden_size,))
        self.candidate_bias = jnp.zeros((hidden_size,)) if reset_after else None
        self.input_size, self.output_size = input_size, hidden_size
        self.recurrent_dropout = recurrent_dropout

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return (*jnp.split(self.gate_weights, 2, axis=1), self.candidate_weights)

    def axes(self) -> dict[str, Any]:
        return {
            "input_weights": "x hhh",
            "gate_weights": "h hh",
            "candidate_weights": "h h",
            "bias": "hhh",
            "candidate_bias": "h",
            "input_size": "x",
            "output_size": "h",
        }

    def as_identity(self, scale: float, gate_bias: float) -> "tuple[GRU, float]":
        size = self.output_size
        zero = jnp.zeros((size, 2 * size), self.bias.dtype)
        values = (
            jnp.concatenate([zero, scale * jnp.eye(size, dtype=self.bias.dtype)], 1),
            jnp.zeros_like(self.gate_weights),
            jnp.zeros_like(self.candidate_weights),
            gate_bias * jnp.repeat(jnp.asarray([1.0, 0.0, 0.0], self.bias.dtype), size),
            None if self.candidate_bias is None else jnp.zeros_like(self.candidate_bias),
        )
        cell = eqx.tree_at(
            lambda c: (c.input_weights, c.gate_weights, c.candidate_weights, c.bias, c.candidate_bias),
            self,
            values,
            is_leaf=lambda leaf: leaf is None,
        )
        return cell, scale * float(jax.nn.sigmoid(gate_bias))

    def init_state(self) -> GRUState:
        return GRUState(jnp.zeros((self.output_size,), self.bias.dtype))

    def drive(self, x: Float[Array, " input"]) -> GRUDrive:
        gates, candidate = jnp.split(x @ self.input_weights + self.bias, [2 * self.output_size])
        return GRUDrive(gates, candidate)

    def step(self, state: GRUState, drive: GRUDrive, *, key: Key = None) -> tuple[GRUState, Float[Array, " hidden"]]:
        hidden = state.hidden
        z, r = jnp.split(jax.nn.sigmoid(drive.gates + hidden @ self.gate_weights), 2)
        if self.candidate_bias is None:
            recurrent = (r * hidden) @ self.candidate_weights
        else:
            recurrent = r * (hidden @ self.candidate_weights + self.candidate_bias)
        candidate = jnp.tanh(drive.candidate + recurrent)
        candidate = dropout(candidate, self.recurrent_dropout, key)
        hidden = (1 - z) * hidden + z * candidate
        return GRUState(hidden), hidden
