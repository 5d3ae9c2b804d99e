"""A small quadratic problem, solved exactly inside a compiled program."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class _Search(NamedTuple):
    point: Float[Array, " n"]  # feasible at all times
    free: Bool[Array, " n"]  # entries that may be positive
    refused: Bool[Array, " n"]  # entries that rounding keeps at zero; tried again once the point moves
    step: Int[Array, ""]
    done: Bool[Array, ""]


def minimise_nonnegative(matrix: Float[Array, "n n"], linear: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""The \(v \geq 0\) that minimises \(\frac{1}{2} v^T P v + q^T v\), for a positive definite P.

    The active-set method of Lawson & Hanson (1974): an entry with a descent direction is set free, the problem is
    solved for the free entries, and entries that would become negative are fixed at zero again. It ends after finitely
    many steps (about n of them, each one Cholesky factorisation) at the solution itself. P is scaled to a unit diagonal
    first, so that rows of very different sizes, and rows of zeros, do no harm.

    >>> minimise_nonnegative(jnp.eye(2), jnp.array([-3.0, 1.0]))
    Array([3., 0.], dtype=float32)
    """
    size = linear.size
    diagonal = jnp.diagonal(matrix)
    scale = jnp.where(diagonal > 0, jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)), 1.0)
    matrix = jnp.where(jnp.eye(size, dtype=bool), 1.0, matrix / jnp.outer(scale, scale))
    linear = linear / scale
    largest = jnp.max(jnp.abs(linear))
    unit = jnp.where(largest > 0, largest, 1.0)
    linear = linear / unit
    rounding = 8 * jnp.finfo(linear.dtype).eps

    def solve(free: Array) -> Array:
        kept = jnp.where(jnp.outer(free, free), matrix, jnp.eye(size, dtype=matrix.dtype))
        return jnp.where(free, jax.scipy.linalg.solve(kept, jnp.where(free, -linear, 0.0), assume_a="pos"), 0.0)

    def step_back(search: _Search, target: Array, blocked: Array) -> _Search:
        """Go towards `target` until the first entry is zero, and fix it there."""
        point = search.point
        ratios = jnp.where(blocked, point / jnp.where(blocked & (point > 0), point - target, 1.0), jnp.inf)
        fraction = jnp.min(ratios)
        free = search.free & ~(ratios <= fraction)
        moved = jnp.where(free, jnp.maximum(point + fraction * (target - point), 0.0), 0.0)
        refused = search.refused | (blocked & (point == 0))
        return _Search(moved, free, refused, search.step + 1, search.done)

    def step_on(search: _Search, target: Array, blocked: Array) -> _Search:
        """Take `target`, and free the entry along which the value falls fastest."""
        descent = -(matrix @ target + linear)
        refused = search.refused & jnp.all(target == search.point)
        candidates = ~search.free & ~refused & (descent > rounding * (1.0 + jnp.sum(target)))
        chosen = jnp.argmax(jnp.where(candidates, descent, -jnp.inf))
        free = search.free | (candidates & (jnp.arange(size) == chosen))
        return _Search(target, free, refused, search.step + 1, ~jnp.any(candidates))

    def step(search: _Search) -> _Search:
        target = solve(search.free)
        blocked = search.free & (target <= 0)
        return jax.lax.cond(jnp.any(blocked), step_back, step_on, search, target, blocked)

    none = jnp.zeros((size,), bool)
    start = _Search(jnp.zeros_like(linear), none, none, jnp.asarray(0), jnp.asarray(False))
    found = jax.lax.while_loop(lambda search: ~search.done & (search.step < 10 * size + 10), step, start)
    return found.point * unit / scale
