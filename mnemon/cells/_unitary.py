"""What the cells with a unitary recurrent matrix and a complex state share."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float, PRNGKeyArray

from .._errors import require
from ._complex import complex_modrelu
from ._contract import AbstractCell
from ._init import glorot_uniform, uniform

_MODULUS_EPS = 1e-5


class ComplexState(NamedTuple):
    """What a network with a complex state carries."""

    real: Float[Array, " hidden"]  # Re h_t
    imaginary: Float[Array, " hidden"]  # Im h_t


class AbstractUnitary(AbstractCell[ComplexState, Array]):
    """Input matrix, modReLU and a trained first state; how the state is turned is up to the cell."""

    input_weights: Float[Array, "input two_hidden"]  # V, as Re V | Im V
    bias: Float[Array, " hidden"]  # b
    initial: Float[Array, "2 hidden"]  # Re h_0, Im h_0
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        input_key: PRNGKeyArray,
        bias_key: PRNGKeyArray,
        initial_key: PRNGKeyArray,
    ):
        require(hidden_size >= 1, "hidden_size", hidden_size, "at least one unit", "hidden_size=128")
        self.input_weights = glorot_uniform(input_key, input_size, 2 * hidden_size)
        self.bias = uniform(bias_key, (hidden_size,), 0.01)
        self.initial = uniform(initial_key, (2, hidden_size), (3.0 / (2 * hidden_size)) ** 0.5)
        self.input_size, self.output_size = input_size, 2 * hidden_size

    def init_state(self) -> ComplexState:
        return ComplexState(*self.initial)

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " two_hidden"]:
        return x @ self.input_weights

    def activated(self, z: Complex[Array, " hidden"]) -> tuple[ComplexState, Float[Array, " two_hidden"]]:
        """The state after modReLU, and the output [Re h | Im h]."""
        hidden = complex_modrelu(z, self.bias, _MODULUS_EPS)
        state = ComplexState(hidden.real, hidden.imag)
        return state, jnp.concatenate(state)
