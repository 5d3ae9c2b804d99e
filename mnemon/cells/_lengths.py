"""Vectors of length one in an L_p norm."""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def unit_rows(rows: Float[Array, "rows n"], p: float) -> tuple[Float[Array, "rows n"], Float[Array, " rows"]]:
    r"""Each row over its L_p norm, and the norm, which passes no gradient. Rows of zeros stay zero.

    The gradient is written by hand, so that of all values on the way only the results are kept for it: with
    $y = v / |v|_p$ and its gradient $g$, that of $v$ is $(g - (g \cdot y)\, \mathrm{sign}(y) |y|^{p-1}) / |v|_p$.
    """
    largest = jnp.max(jnp.abs(rows), axis=1, keepdims=True)
    rows = rows / jnp.where(largest > 0, largest, 1.0)  # so that p-th powers neither overflow nor vanish
    powers = 1.0 if math.isinf(p) else jnp.sum(jnp.abs(rows) ** p, axis=1, keepdims=True)
    norms = jnp.where(largest > 0, powers, 1.0) ** (1.0 / p)
    return rows / norms, (largest * norms)[:, 0]


def _forward(rows: Array, p: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    units, norms = unit_rows(rows, p)
    return (units, norms), (units, norms)


def _backward(p: float, residuals: tuple[Array, Array], cotangents: tuple[Array, Array]) -> tuple[Array]:
    units, norms = residuals
    units_ct, _ = cotangents
    if math.isinf(p):
        slope = jnp.sign(units) * (jnp.abs(units) == 1)
        slope = slope / jnp.maximum(jnp.sum(jnp.abs(slope), axis=1, keepdims=True), 1.0)
    else:
        slope = jnp.sign(units) * jnp.abs(units) ** (p - 1)
    along = jnp.sum(units_ct * units, axis=1, keepdims=True)
    inverse = jnp.where(norms > 0, 1.0 / jnp.where(norms > 0, norms, 1.0), 0.0)
    return ((units_ct - along * slope) * inverse[:, None],)


unit_rows.defvjp(_forward, _backward)
