"""JANET: just another network, a forget gate alone (thesis 2.5)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._contract import AbstractCell, Key
from ._init import chrono_bias, dropout, glorot_normal, orthogonal, require_dropout


class JANETState(NamedTuple):
    """What JANET carries."""

    hidden: Float[Array, " hidden"]  # h_t


class JANET(AbstractCell[JANETState, Array]):
    r"""JANET with beta.

    $$\begin{aligned}
    s_t &= x_t W_{xf} + h_{t-1} W_{hf} + b_f \\
    \tilde h_t &= \tanh(x_t W_{xh} + h_{t-1} W_{hh} + b_h) \\
    h_t &= \sigma(s_t) \odot h_{t-1} + (1 - \sigma(s_t - \beta)) \odot \tilde h_t
    \end{aligned}$$

    (thesis 2.37-2.39). beta = 0 is the plain form, 2.34-2.36.

    **Notes.** The authors of JANET use beta = 1; the thesis's experiments use beta = 0. With `chrono=T_max`
    b_f starts at log U[1, T_max - 1], else at 1.

    >>> import jax
    >>> cell = JANET(3, 5, chrono=100, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape
    (5,)
    """

    input_weights: Float[Array, "input gates"]  # W_xf | W_xh
    recurrent_weights: Float[Array, "hidden gates"]  # W_hf | W_hh
    bias: Float[Array, " gates"]  # b_f | b_h
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    beta: float = eqx.field(static=True)
    recurrent_dropout: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        beta: float = 1.0,
        chrono: int | None = None,
        recurrent_dropout: float = 0.0,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h.
        - `beta`: how much more is accumulated than forgotten.
        - `chrono`: longest dependency T_max for chrono initialisation.
        - `recurrent_dropout`: probability of dropping a candidate value.
        - `key`: for the initial parameters.
        """
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        require_dropout(recurrent_dropout)
        input_key, recurrent_key, chrono_key = jax.random.split(key, 3)
        self.input_weights = jnp.concatenate(
            [glorot_normal(k, input_size, hidden_size) for k in jax.random.split(input_key, 2)], axis=1
        )
        self.recurrent_weights = orthogonal(recurrent_key, hidden_size, blocks=2)
        forget = jnp.ones((hidden_size,)) if chrono is None else chrono_bias(chrono_key, hidden_size, chrono)
        self.bias = jnp.concatenate([forget, jnp.zeros((hidden_size,))])
        self.input_size, self.output_size = input_size, hidden_size
        self.beta, self.recurrent_dropout = beta, recurrent_dropout

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return tuple(jnp.split(self.recurrent_weights, 2, axis=1))

    def axes(self) -> dict[str, Any]:
        return {
            "input_weights": "x hh",
            "recurrent_weights": "h hh",
            "bias": "hh",
            "input_size": "x",
            "output_size": "h",
        }

    def init_state(self) -> JANETState:
        return JANETState(jnp.zeros((self.output_size,), self.bias.dtype))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " gates"]:
        return x @ self.input_weights + self.bias

    def step(
        self, state: JANETState, drive: Float[Array, " gates"], *, key: Key = None
    ) -> tuple[JANETState, Float[Array, " hidden"]]:
        s, candidate = jnp.split(drive + state.hidden @ self.recurrent_weights, 2)
        keep = jax.nn.sigmoid(s) * state.hidden
        candidate = dropout(jnp.tanh(candidate), self.recurrent_dropout, key)
        hidden = keep + (1 - jax.nn.sigmoid(s - self.beta)) * candidate
        return JANETState(hidden), hidden
