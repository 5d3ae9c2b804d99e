"""Dynamic allocation: which slots are in use, and which is free for the next word."""

from functools import reduce
from operator import mul

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# A usage of zero counts as this in logarithms, and products as small as that are zero.
_TINY = 1e-30


def retention(free_gates: Float[Array, " heads"], read_weights: Float[Array, "heads slots"]) -> Float[Array, " slots"]:
    r"""How much of each slot is kept after reading: $$ \psi = \prod_h (1 - f_h w^r_h) $$"""
    return reduce(mul, (1.0 - f * w for f, w in zip(free_gates, read_weights, strict=True)))


def update_usage(
    usage: Float[Array, " slots"], write_weights: Float[Array, " slots"], retention: Float[Array, " slots"]
) -> Float[Array, " slots"]:
    r"""Slots written to come into use, slots read and freed go out of use: $$ u' = (u + w - u w) \psi $$"""
    return (usage + write_weights - usage * write_weights) * retention


def allocation_weights(usage: Float[Array, " slots"]) -> Float[Array, " slots"]:
    r"""The least used slot, as far as it is free; then the next one with what is left, and so on.

    $$ a[\phi[j]] = (1 - u[\phi[j]]) \prod_{i < j} u[\phi[i]] $$

    with φ the slots in ascending order of usage, the lowest index first among equals. The order is a constant for
    the gradient.

    Nothing is sorted: a slot comes before another if it is used less, and the product is a sum of logarithms. That
    is N² comparisons, as many as a matrix of temporal links has entries, and they vectorise.

    >>> allocation_weights(jnp.array([1.0, 0.5, 1.0, 0.5])).round(3)
    Array([0.  , 0.5 , 0.  , 0.25], dtype=float32)
    """
    index = jnp.arange(usage.size)
    own, other = usage[:, None], usage[None, :]
    before = (other < own) | ((other == own) & (index[None, :] < index[:, None]))
    logs = jnp.where(before, jnp.log(usage + _TINY)[None, :], 0.0)
    product = jnp.exp(jnp.sum(logs, axis=-1))
    # Zero, exactly, behind an unused slot: what is left there would be the usage that decides the next allocation.
    # The gradient stays: one slot's usage is what the next one is allocated.
    product = product - jax.lax.stop_gradient(jnp.where(product < 1e5 * _TINY, product, 0.0))
    return (1.0 - usage) * product


def sorted_allocation_weights(usage: Float[Array, " slots"]) -> Float[Array, " slots"]:
    """[`allocation_weights`][mnemon.memory.allocation_weights] with a sort: N log N steps, for many slots."""
    order = jnp.argsort(jax.lax.stop_gradient(usage), stable=True)
    ascending = usage[order]
    before = jnp.concatenate([jnp.ones((1,), usage.dtype), jnp.cumprod(ascending[:-1])])
    return jnp.zeros_like(usage).at[order].set((1.0 - ascending) * before)
