"""Gated orthogonal recurrent unit (thesis 2.7)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._complex import modrelu
from ._contract import AbstractCell, Key
from ._init import dropout, glorot_uniform, require_dropout, uniform
from ._rotations import Rotations, Turn


class GORUState(NamedTuple):
    """What a GORU carries."""

    hidden: Float[Array, " hidden"]  # h_t


class GORU(AbstractCell[GORUState, Array]):
    r"""GORU: an orthogonal recurrent network that can forget.

    $$\begin{aligned}
    r_t &= \sigma(x_t U_r + h_{t-1} W_r + b_r) \\
    g_t &= \sigma(x_t U_g + h_{t-1} W_g + b_g) \\
    c_t &= \mathrm{modReLU}(x_t U_c + r_t \odot \mathrm{Rot}(h_{t-1}); b_c) \\
    h_t &= g_t \odot h_{t-1} + (1 - g_t) \odot c_t
    \end{aligned}$$

    (Jing et al. 2017a) with Rot the product of real rotations of [`EURNN`][mnemon.cells.EURNN] and
    modReLU(z; b) = sign(z) ReLU(|z| + b). Only the candidate goes through it; W_r and W_g are free.

    **Notes.** The authors' code adds 0.001 to |z| (`modulus_eps=0.001`), which is the same as adding it to
    b_c. Like theirs, b_r starts at 2, b_c at 0.01, and all matrices uniform in [-0.01, 0.01].

    >>> import jax
    >>> cell = GORU(3, 8, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape
    (8,)
    """

    input_weights: Float[Array, "input gates"]  # U_r | U_g | U_c
    gate_weights: Float[Array, "hidden two_hidden"]  # W_r | W_g
    rotations: Rotations
    bias: Float[Array, " gates"]  # b_r | b_g | b_c
    turn: Turn | None  # the rotations, once prepared
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    modulus_eps: float = eqx.field(static=True)
    recurrent_dropout: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        capacity: int | None = None,
        modulus_eps: float = 0.0,
        recurrent_dropout: float = 0.0,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h; a power of two, or with a `capacity` any even number.
        - `capacity`: number of layers of rotations of neighbours; by default the layers are FFT-style.
        - `modulus_eps`: added to |z| in modReLU (the authors' code: 0.001).
        - `recurrent_dropout`: probability of dropping a candidate value.
        - `key`: for the initial parameters.
        """
        require(modulus_eps >= 0, "modulus_eps", modulus_eps, "zero or a small number", "modulus_eps=0.001")
        require_dropout(recurrent_dropout)
        input_key, gate_key, rotation_key, bias_key = jax.random.split(key, 4)
        self.rotations = Rotations(hidden_size, capacity=capacity, complex_valued=False, key=rotation_key)
        self.input_weights = uniform(input_key, (input_size, 3 * hidden_size), 0.01)
        self.gate_weights = uniform(gate_key, (hidden_size, 2 * hidden_size), 0.01)
        update = glorot_uniform(bias_key, hidden_size, hidden_size)[0]
        self.bias = jnp.concatenate([jnp.full((hidden_size,), 2.0), update, jnp.full((hidden_size,), 0.01)])
        self.turn = None
        self.input_size, self.output_size = input_size, hidden_size
        self.modulus_eps, self.recurrent_dropout = modulus_eps, recurrent_dropout

    def prepare(self) -> "GORU":
        return eqx.tree_at(lambda cell: cell.turn, self, self.rotations.turn(), is_leaf=lambda x: x is None)

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return (*jnp.split(self.gate_weights, 2, axis=1), self.rotations.matrix())

    def init_state(self) -> GORUState:
        return GORUState(jnp.zeros((self.output_size,), self.bias.dtype))

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " gates"]:
        # b_c is inside modReLU, not in its argument.
        zeros = jnp.zeros((self.output_size,), self.bias.dtype)
        return x @ self.input_weights + jnp.concatenate([self.bias[: 2 * self.output_size], zeros])

    def step(
        self, state: GORUState, drive: Float[Array, " gates"], *, key: Key = None
    ) -> tuple[GORUState, Float[Array, " hidden"]]:
        turn = self.rotations.turn() if self.turn is None else self.turn
        gates, candidate_drive = jnp.split(drive, [2 * self.output_size])
        reset, keep = jnp.split(jax.nn.sigmoid(gates + state.hidden @ self.gate_weights), 2)
        z = candidate_drive + reset * self.rotations(turn, state.hidden)
        candidate = modrelu(z, self.bias[2 * self.output_size :], self.modulus_eps)
        candidate = dropout(candidate, self.recurrent_dropout, key)
        hidden = keep * state.hidden + (1 - keep) * candidate
        return GORUState(hidden), hidden
