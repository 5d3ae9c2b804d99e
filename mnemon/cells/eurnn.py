"""Efficient unitary recurrent network (thesis 2.7)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ._complex import complex_modrelu, modrelu, real_form
from ._contract import AbstractCell, Key
from ._init import uniform
from ._rotations import Rotations, Turn


class EURNNState(NamedTuple):
    """What an EURNN carries."""

    hidden: Float[Array, " hidden"]  # Re h_t
    imaginary: Float[Array, " hidden"] | None  # Im h_t, if the state is complex


class EURNN(AbstractCell[EURNNState, Array]):
    r"""EURNN: the recurrent matrix is a product of plane rotations, so it is orthogonal or unitary.

    $$h_t = \mathrm{modReLU}(x_t U + \mathrm{Rot}(h_{t-1}); b), \qquad
    \mathrm{modReLU}(z; b) = \frac{z}{|z|} \mathrm{ReLU}(|z| + b)$$

    and the output is Re h_t (Jing et al. 2017b). The rotations are FFT-style, O(h log h) for a step, or, with
    a `capacity`, that many layers of neighbours.

    **Notes.** The default is real, which is what the thesis's number of parameters (17k at 1,024 units on
    permuted MNIST) stands for. The authors' code adds 0.01 to |z| (`modulus_eps=0.01`); the default, 1e-5,
    only keeps gradients of the complex form finite at zero. What does not depend on the state is computed once
    for a sequence: FFT-style layers become small dense blocks, five layers at a time. With a capacity the
    layers follow each other and each reads the whole state, so that a step takes far more time than its few
    operations suggest.

    >>> import jax
    >>> cell = EURNN(3, 8, key=jax.random.key(0))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape
    (8,)
    """

    input_weights: Float[Array, "input parts"]  # U, as Re U | Im U
    rotations: Rotations
    bias: Float[Array, " hidden"]  # b
    turn: Turn | None  # the rotations, once prepared
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    complex_valued: bool = eqx.field(static=True)
    modulus_eps: float = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        capacity: int | None = None,
        complex_valued: bool = False,
        modulus_eps: float = 1e-5,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `input_size`: size of x.
        - `hidden_size`: size of h; a power of two, or with a `capacity` any even number.
        - `capacity`: number of layers of rotations of neighbours; by default the layers are FFT-style.
        - `complex_valued`: complex state and unitary matrix, instead of real and orthogonal.
        - `modulus_eps`: added to |z| in modReLU (the authors' code: 0.01).
        - `key`: for the initial parameters.
        """
        require(modulus_eps > 0, "modulus_eps", modulus_eps, "a small positive number", "modulus_eps=0.00001")
        input_key, rotation_key = jax.random.split(key)
        parts = 2 if complex_valued else 1
        self.rotations = Rotations(hidden_size, capacity=capacity, complex_valued=complex_valued, key=rotation_key)
        self.input_weights = uniform(input_key, (input_size, parts * hidden_size), 0.01)
        self.bias = jnp.zeros((hidden_size,))
        self.turn = None
        self.input_size, self.output_size = input_size, hidden_size
        self.complex_valued, self.modulus_eps = complex_valued, modulus_eps

    def prepare(self) -> "EURNN":
        return eqx.tree_at(lambda cell: cell.turn, self, self.rotations.turn(), is_leaf=lambda x: x is None)

    def recurrent_matrices(self) -> tuple[Array, ...]:
        matrix = self.rotations.matrix()
        return (real_form(matrix) if self.complex_valued else matrix,)

    def init_state(self) -> EURNNState:
        zero = jnp.zeros_like(self.bias)
        return EURNNState(zero, zero if self.complex_valued else None)

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " parts"]:
        return x @ self.input_weights

    def step(
        self, state: EURNNState, drive: Float[Array, " parts"], *, key: Key = None
    ) -> tuple[EURNNState, Float[Array, " hidden"]]:
        turn = self.rotations.turn() if self.turn is None else self.turn
        if state.imaginary is None:
            hidden = modrelu(drive + self.rotations(turn, state.hidden), self.bias, self.modulus_eps)
            return EURNNState(hidden, None), hidden
        turned = self.rotations(turn, jax.lax.complex(state.hidden, state.imaginary))
        z = turned + jax.lax.complex(*jnp.split(drive, 2))
        hidden = complex_modrelu(z, self.bias, self.modulus_eps)
        return EURNNState(hidden.real, hidden.imag), hidden.real
