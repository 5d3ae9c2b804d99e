"""Orthogonal and unitary matrices that any optimiser can train: a fixed one times a matrix exponential.

The exponential of a skew-symmetric (skew-Hermitian) matrix is orthogonal (unitary) whatever its entries are,
so the entries are ordinary parameters. They start at zero, where the derivative of the exponential is the
identity. Rounding does not add up over updates, because the matrix is computed afresh from its entries.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm
from jaxtyping import Array, Complex, Float, PRNGKeyArray

from ._fixed import Fixed


class Orthogonal(eqx.Module):
    """Q expm(A - A^T), with A strictly lower triangular: n (n - 1) / 2 parameters."""

    base: Fixed  # Q
    generator: Float[Array, " pairs"]  # the entries of A

    def __init__(self, size: int, *, key: PRNGKeyArray):
        self.base = Fixed(jax.random.orthogonal(key, size))
        self.generator = jnp.zeros((size * (size - 1) // 2,))

    def matrix(self) -> Float[Array, "size size"]:
        """The matrix."""
        size = self.base.value.shape[0]
        lower = jnp.zeros((size, size), self.generator.dtype).at[np.tril_indices(size, -1)].set(self.generator)
        return self.base.value @ expm(lower - lower.T)


class Unitary(eqx.Module):
    """Q expm(S) with S = -S^H: n^2 parameters, real ones."""

    base: Fixed  # Re Q, Im Q
    generator: Float[Array, "size size"]  # Re S below the diagonal, Im S on and above it

    def __init__(self, size: int, *, key: PRNGKeyArray):
        base = jax.random.orthogonal(key, size, dtype=jnp.complex64)
        self.base = Fixed(jnp.stack([base.real, base.imag]))
        self.generator = jnp.zeros((size, size))

    def matrix(self) -> Complex[Array, "size size"]:
        """The matrix."""
        below, above = jnp.tril(self.generator, -1), jnp.triu(self.generator)
        skew = jax.lax.complex(below - below.T, above + jnp.triu(above, 1).T)
        return jax.lax.complex(*self.base.value) @ expm(skew)
