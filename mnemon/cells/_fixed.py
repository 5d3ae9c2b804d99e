"""Arrays of a cell that are not trained."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Inexact, PyTree

from .._errors import unknown


class Fixed(eqx.Module):
    """An array that training leaves as it is: random addresses, statistics, a probability that a schedule sets.

    Gradients stop at its `value`, and [`trained`][mnemon.cells.trained] does not name it, so neither an optimiser
    nor weight decay moves it, and it is no parameter. With a `name` it can be set by
    [`set_fixed`][mnemon.cells.set_fixed].
    """

    array: Inexact[Array, "..."]
    name: str | None = eqx.field(static=True, default=None)

    @property
    def value(self) -> Inexact[Array, "..."]:
        """The array, without a gradient."""
        return jax.lax.stop_gradient(self.array)


def _is_fixed(node: Any) -> bool:
    return isinstance(node, Fixed)


def trained(tree: PyTree) -> PyTree[bool]:
    """Which leaves training changes: the inexact arrays that are not `Fixed`.

    It is a filter for `eqx.partition` and a mask for `optax.masked`.

    >>> trained({"weights": jnp.ones(3), "count": jnp.arange(3), "addresses": Fixed(jnp.ones(3))})
    {'addresses': False, 'count': False, 'weights': True}
    """
    return jax.tree.map(lambda leaf: not _is_fixed(leaf) and _is_inexact(leaf), tree, is_leaf=_is_fixed)


def _is_inexact(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact)


def set_fixed(tree: PyTree, **values: ArrayLike) -> PyTree:
    """The same tree with other values in the named `Fixed` arrays, wherever they are in it.

    This is how a schedule of the trainer reaches a cell: it knows a name, not a cell. Values may be traced.

    >>> set_fixed([Fixed(jnp.ones(()), "soft_probability")], soft_probability=0.25)[0].value
    Array(0.25, dtype=float32)
    """
    known = {node.name for node in jax.tree.leaves(tree, is_leaf=_is_fixed) if _is_fixed(node) and node.name}
    for name in values:
        if name not in known:
            raise unknown("fixed array", name, known)

    def replace(node: Any) -> Any:
        if not _is_fixed(node) or node.name not in values:
            return node
        value = jnp.asarray(values[node.name], node.array.dtype)
        return Fixed(jnp.broadcast_to(value, node.array.shape), node.name)

    return jax.tree.map(replace, tree, is_leaf=_is_fixed)
