"""Working around a slow path of XLA."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def apart(vector: Float[Array, " size"]) -> Float[Array, " size"]:
    """The same vector in another place.

    XLA's loop on a CPU over a matrix whose entry i, j depends on v[i] and v[j] of one vector is several times slower
    than that on u[i] and v[j] of two vectors.
    """
    return jax.lax.optimization_barrier(jnp.stack([vector, vector]))[0]
