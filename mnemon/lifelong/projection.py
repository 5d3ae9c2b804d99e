"""Projections of a gradient that harm no earlier task: of GEM and of A-GEM."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from ._quadratic import minimise_nonnegative


def project(
    gradient: PyTree[Array],
    previous: PyTree[Array],
    *,
    margin: float = 0.5,
    margin_rule: Literal["added", "bound"] = "added",
    ridge: float = 1e-4,
    relative_ridge: bool = True,
) -> tuple[PyTree[Array], Bool[Array, ""]]:
    r"""The gradient nearest to g that raises no earlier task's loss, and whether g itself would have raised one.

    $$ \tilde g = g + G^T v^\star, \qquad
    v^\star = \arg\min_{v \geq 0} \frac{1}{2} v^T (G G^T + R) v + (G g)^T v $$

    (thesis 5.4), with the earlier tasks' gradients as rows of G. If \(G g \geq 0\), g is returned as it is.

    **Arguments:**

    - `gradient`: g, a vector or any tree of arrays.
    - `previous`: the same with a leading axis of tasks in every array.
    - `margin`: \(\gamma\), which favours the earlier tasks.
    - `margin_rule`: `added` to the solution, \(v^\star + \gamma\), as the paper and the thesis say, or a `bound`,
      \(v \geq \gamma\), as in the authors' code.
    - `ridge`: size of R, which keeps the solution unique when gradients depend on each other or vanish.
    - `relative_ridge`: R is `ridge` times the diagonal of \(G G^T\). False: times the identity, as in the authors' code
      (with 0.001), which has no effect on large gradients and turns the projection off for small ones.

    **Notes.** The thesis defines G with a minus sign, with which 5.4 and the recovery of \(\tilde g\) do not hold.

    >>> project(jnp.array([1.0, 1.0]), jnp.array([[-2.0, 0.0]]), margin=0.0, ridge=0.0)
    (Array([0., 1.], dtype=float32), Array(True, dtype=bool))
    """
    products = _products(previous, gradient)

    def projected() -> PyTree[Array]:
        gram = _gram(previous)
        size = jnp.diagonal(gram) if relative_ridge else jnp.ones_like(products)
        matrix = gram + jnp.diag(ridge * size)
        inside = margin * jnp.sum(matrix, 1) if margin_rule == "bound" else jnp.zeros_like(products)
        weights = margin + minimise_nonnegative(matrix, products + inside)
        return jax.tree.map(lambda g, rows: g + jnp.tensordot(weights, rows, 1), gradient, previous)

    violated = jnp.any(products < 0)
    return jax.lax.cond(violated, projected, lambda: gradient), violated


def project_average(gradient: PyTree[Array], reference: PyTree[Array]) -> tuple[PyTree[Array], Bool[Array, ""]]:
    r"""The gradient without its part against one reference, the mean gradient of all earlier tasks.

    $$ \tilde g = g - \frac{g^T g_r}{g_r^T g_r} g_r \quad\text{if } g^T g_r < 0 $$

    >>> project_average(jnp.array([1.0, 1.0]), jnp.array([-2.0, 0.0]))
    (Array([0., 1.], dtype=float32), Array(True, dtype=bool))
    """
    rows = jax.tree.map(lambda leaf: leaf[None], reference)
    product, square = _products(rows, gradient)[0], _gram(rows)[0, 0]
    violated = (product < 0) & (square > 0)
    excess = jnp.where(violated, product / jnp.where(square > 0, square, 1.0), 0.0)
    return jax.tree.map(lambda g, r: g - excess * r, gradient, reference), violated


def _products(rows: PyTree[Array], vector: PyTree[Array]) -> Float[Array, " tasks"]:
    """The inner product of each row with the vector."""
    of_leaves = jax.tree.map(lambda r, v: jnp.dot(_flat(r), v.ravel(), precision="highest"), rows, vector)
    return jax.tree.reduce(jnp.add, of_leaves)


def _gram(rows: PyTree[Array]) -> Float[Array, "tasks tasks"]:
    """The inner products of all rows with each other."""
    of_leaves = jax.tree.map(lambda r: jnp.dot(_flat(r), _flat(r).T, precision="highest"), rows)
    return jax.tree.reduce(jnp.add, of_leaves)


def _flat(leaf: Array) -> Float[Array, "tasks entries"]:
    return leaf.reshape(leaf.shape[0], -1)
