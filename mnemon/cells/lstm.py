"""Long short-term memory (thesis 2.4)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._gates import lstm_gates
from ._init import LayerNorm, chrono_bias, dropout, glorot_normal, orthogonal, require_dropout


class LSTMState(NamedTuple):
    """What an LSTM carries."""

    hidden: Float[Array, " hidden"]  # h_t
    cell: Float[Array, " hidden"]  # c_t


class LSTM(AbstractCell[LSTMState, Array]):
    r"""LSTM with a forget gate, optionally with peepholes.

    $$\begin{aligned}
    i_t &= \sigma(x_t W_{xi} + h_{t-1} W_{hi} + p_i \odot c_{t-1} + b_i) \\
    f_t &= \sigma(x_t W_{xf} + h_{t-1} W_{hf} + p_f \odot c_{t-1} + b_f) \\
    c_t &= f_t \odot c_{t-1} + i_t \odot \tanh(x_t W_{xc} + h_{t-1} W_{hc} + b_c) \\
    o_t &= \sigma(x_t W_{xo} + h_{t-1} W_{ho} + p_o \odot c_t + b_o) \\
    h_t &= o_t \odot \tanh(c_t)
    \end{aligned}$$

    The peephole terms p are there only with `peepholes=True` (thesis 2.23-2.27; without them 2.17-2.22).
    With `layer_norm=True` the three products are normalised, as in Ba et al. (2016): x W_x and h W_h each over
    all gates, and c_t where it gives h_t; the c_t that is carried is not (thesis 2.75-2.77).

    **Notes.** b_f starts at `forget_bias`, or, with `chrono=T_max`, at log U[1, T_max - 1] and b_i at -b_f
    (2.28-2.29). Peepholes start at U(0, 1) and recurrent matrices orthogonal, one for each gate, as in the
    thesis's experiments.

    >>> import jax
    >>> cell = LSTM(3, 5, chrono=100, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> state.cell.shape
    (5,)
    """

    input_weights: Float[Array, "input gates"]  # W_xi | W_xf | W_xo | W_xc
    recurrent_weights: Float[Array, "hidden gates"]  # W_hi | W_hf | W_ho | W_hc
    bias: Float[Array, " gates"]  # b_i | b_f | b_o | b_c
    peepholes: Float[Array, "3 hidden"] | None  # p_i, p_f, p_o
    norms: tuple[LayerNorm, LayerNorm, LayerNorm] | None  # of x W_x, h W_h and c_t
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    recurrent_dropout: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        peepholes: bool = False,
        forget_bias: float = 1.0,
        chrono: int | None = None,
        layer_norm: bool = False,
        recurrent_dropout: float = 0.0,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h and c.
        - `peepholes`: let the gates see the cell.
        - `forget_bias`: initial b_f.
        - `chrono`: longest dependency T_max for chrono initialisation, instead of `forget_bias`.
        - `layer_norm`: normalise the gates' sums and the cell.
        - `recurrent_dropout`: probability of dropping a candidate value (Semeniuta et al. 2016).
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        require_dropout(recurrent_dropout)
        input_key, recurrent_key, peephole_key, chrono_key = jax.random.split(key, 4)
        self.input_weights = jnp.concatenate(
            [glorot_normal(k, input_size, hidden_size) for k in jax.random.split(input_key, 4)], axis=1
        )
        self.recurrent_weights = orthogonal(recurrent_key, hidden_size, blocks=4)
        zero = jnp.zeros((hidden_size,))
        if chrono is None:
            forget, write = jnp.full((hidden_size,), forget_bias), zero
        else:
            forget = chrono_bias(chrono_key, hidden_size, chrono)
            write = -forget
        self.bias = jnp.concatenate([write, forget, zero, zero])
        self.peepholes = jax.random.uniform(peephole_key, (3, hidden_size)) if peepholes else None
        gates = 4 * hidden_size
        self.norms = (LayerNorm(gates), LayerNorm(gates), LayerNorm(hidden_size)) if layer_norm else None
        self.input_size, self.output_size = input_size, hidden_size
        self.recurrent_dropout = recurrent_dropout

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return tuple(jnp.split(self.recurrent_weights, 4, axis=1))

    def axes(self) -> dict[str, Any]:
        return {
            "input_weights": "x hhhh",
            "recurrent_weights": "h hhhh",
            "bias": "hhhh",
            "peepholes": ". h",
            "norms": ("HHHH", "HHHH", "H"),
            "input_size": "x",
            "output_size": "h",
        }

    def as_identity(self, scale: float, gate_bias: float) -> "tuple[LSTM, float] | None":
        if self.norms is not None:
            return None
        size = self.output_size
        zero = jnp.zeros((size, 3 * size), self.bias.dtype)
        values = (
            jnp.concatenate([zero, scale * jnp.eye(size, dtype=self.bias.dtype)], 1),
            jnp.zeros_like(self.recurrent_weights),
            gate_bias * jnp.repeat(jnp.asarray([1.0, -1.0, 1.0, 0.0], self.bias.dtype), size),
            None if self.peepholes is None else jnp.zeros_like(self.peepholes),
        )
        cell = eqx.tree_at(
            lambda c: (c.input_weights, c.recurrent_weights, c.bias, c.peepholes),
            self,
            values,
            is_leaf=lambda leaf: leaf is None,
        )
        return cell, scale * float(jax.nn.sigmoid(gate_bias)) ** 2

    def init_state(self) -> LSTMState:
        zero = jnp.zeros((self.output_size,), self.bias.dtype)
        return LSTMState(zero, zero)

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " gates"]:
        from_input = x @ self.input_weights
        return (from_input if self.norms is None else self.norms[0](from_input)) + self.bias

    def step(
        self, state: LSTMState, drive: Float[Array, " gates"], *, key: Key = None
    ) -> tuple[LSTMState, Float[Array, " hidden"]]:
        recurrent = state.hidden @ self.recurrent_weights
        sums = drive + (recurrent if self.norms is None else self.norms[1](recurrent))
        if self.peepholes is None and self.norms is None and self.recurrent_dropout == 0.0:
            hidden, cell = lstm_gates(sums, state.cell)
            return LSTMState(hidden, cell), hidden
        i, f, o, candidate = jnp.split(sums, 4)
        if self.peepholes is not None:
            i = i + self.peepholes[0] * state.cell
            f = f + self.peepholes[1] * state.cell
        candidate = dropout(jnp.tanh(candidate), self.recurrent_dropout, key)
        cell = jax.nn.sigmoid(f) * state.cell + jax.nn.sigmoid(i) * candidate
        if self.peepholes is not None:
            o = o + self.peepholes[2] * cell
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell if self.norms is None else self.norms[2](cell))
        return LSTMState(hidden, cell), hidden
