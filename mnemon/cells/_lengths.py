"""Vectors of length one in an L_p norm."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Rows = Float[Array, "rows n"]
Lengths = Float[Array, " rows"]


def unit_rows(rows: Rows, p: float) -> tuple[Rows, Lengths]:
    r"""Each row over its L_p norm, and the norm, which passes no gradient. Rows of zeros stay zero.

    The gradient is written by hand, so that of all values on the way only the results are kept for it: with
    $y = v / |v|_p$ and its gradient $g$, that of $v$ is $(g - (g \cdot y)\, \mathrm{sign}(y) |y|^{p-1}) / |v|_p$.

    >>> units, norms = unit_rows(jnp.array([[4.0, -2.0], [0.0, 0.0]]), math.inf)
    >>> units.tolist(), norms.tolist()
    ([[1.0, -0.5], [0.0, 0.0]], [4.0, 0.0])
    """

    @jax.custom_vjp
    def normalise(rows: Rows) -> tuple[Rows, Lengths]:
        return forward(rows)[0]

    def forward(rows: Rows) -> tuple[tuple[Rows, Lengths], tuple[Rows, Lengths]]:
        largest = jnp.max(jnp.abs(rows), axis=1, keepdims=True)
        rows = rows / jnp.where(largest > 0, largest, 1.0)  # so that p-th powers neither overflow nor vanish
        powers = 1.0 if math.isinf(p) else jnp.sum(jnp.abs(rows) ** p, axis=1, keepdims=True)
        norms = jnp.where(largest > 0, powers, 1.0) ** (1.0 / p)
        result = rows / norms, (largest * norms)[:, 0]
        return result, result

    def backward(result: tuple[Rows, Lengths], cotangents: tuple[Rows, Lengths]) -> tuple[Rows]:
        (units, norms), (units_ct, _) = result, cotangents
        if math.isinf(p):
            slope = jnp.sign(units) * (jnp.abs(units) == 1)
            slope = slope / jnp.maximum(jnp.sum(jnp.abs(slope), axis=1, keepdims=True), 1.0)
        else:
            slope = jnp.sign(units) * jnp.abs(units) ** (p - 1)
        along = jnp.sum(units_ct * units, axis=1, keepdims=True)
        inverse = jnp.where(norms > 0, 1.0 / jnp.where(norms > 0, norms, 1.0), 0.0)
        return ((units_ct - along * slope) * inverse[:, None],)

    normalise.defvjp(forward, backward)
    return normalise(rows)
