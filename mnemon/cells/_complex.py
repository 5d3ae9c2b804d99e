"""Parts of the cells with complex states, which are stored as real and imaginary parts."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float


def modrelu(z: Float[Array, " n"], bias: Float[Array, " n"], eps: float = 0.0) -> Float[Array, " n"]:
    """modReLU of real numbers: sign(z) * relu(|z| + eps + bias)."""
    return jnp.sign(z) * jax.nn.relu(jnp.abs(z) + eps + bias)


def complex_modrelu(z: Complex[Array, " n"], bias: Float[Array, " n"], eps: float) -> Complex[Array, " n"]:
    """modReLU of complex numbers: z / (|z| + eps) * relu(|z| + eps + bias). It keeps the phase of z.

    A positive `eps` bounds the gradient at zero.
    """
    square = z.real**2 + z.imag**2
    modulus = eps + jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    return z * (jax.nn.relu(modulus + bias) / modulus)


def real_form(matrix: Complex[Array, "n n"]) -> Float[Array, "two_n two_n"]:
    """The real matrix that takes [real part | imaginary part] where the complex one takes the row vector."""
    a, b = matrix.real, matrix.imag
    return jnp.block([[a, b], [-b, a]])
