"""Usage and allocation against the sorted definition, with ties, empty and full memories."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.memory import allocation_weights, retention, sorted_allocation_weights, update_usage

BOTH = pytest.mark.parametrize("allocate", [allocation_weights, sorted_allocation_weights])


def _by_definition(usage):
    usage = np.asarray(usage, np.float64)
    allocation, product = np.zeros_like(usage), 1.0
    for slot in sorted(range(len(usage)), key=lambda i: (usage[i], i)):
        allocation[slot] = (1 - usage[slot]) * product
        product *= usage[slot]
    return allocation


@BOTH
@settings(max_examples=60, deadline=None)
@given(
    usage=st.lists(
        st.sampled_from([0.0, 0.1, 0.1, 0.5, 0.9, 0.999, 1.0]) | st.floats(0, 1, allow_subnormal=False),
        min_size=6,
        max_size=6,
    )
)
def test_allocation_is_its_definition(allocate, usage):
    with jax.enable_x64(True):
        np.testing.assert_allclose(allocate(jnp.array(usage)), _by_definition(usage), rtol=1e-9, atol=1e-15)


@settings(max_examples=30, deadline=None)
@given(
    usage=st.lists(st.sampled_from([0.0, 0.3, 1.0]) | st.floats(0, 1, allow_subnormal=False), min_size=6, max_size=6)
)
def test_with_and_without_a_sort_have_the_same_gradient(usage):
    with jax.enable_x64(True):
        first, second = (
            jax.jit(jax.grad(lambda u, f=f: jnp.sum(f(u) * jnp.arange(1.0, 7.0))))(jnp.array(usage))
            for f in (allocation_weights, sorted_allocation_weights)
        )
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-10)


@functools.partial(jax.jit, static_argnums=0)
def _gradient_and_allocation(allocate, usage):
    def loss(usage):
        allocation = allocate(usage)
        return jnp.sum(allocation * jnp.arange(1.0, 6.0, dtype=usage.dtype)), allocation

    return jax.grad(loss, has_aux=True)(usage)


@BOTH
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("usage", [[0.0] * 5, [1.0] * 5, [1.0, 0.0, 1.0, 0.0, 1.0], [1e-30] * 5])
def test_finite_and_the_lowest_free_slot_for_empty_and_full_memories(allocate, dtype, usage):
    usage = jnp.array(usage, dtype)
    gradient, allocation = _gradient_and_allocation(allocate, usage)
    assert allocation.dtype == dtype
    free = np.asarray(usage, np.float32) < 0.5
    expected = np.zeros(5)
    if free.any():
        expected[free.argmax()] = 1.0
    np.testing.assert_allclose(np.asarray(allocation, np.float32), expected, atol=1e-20)
    assert np.all(np.isfinite(np.asarray(gradient, np.float32)))
    assert np.max(np.abs(np.asarray(gradient, np.float32))) < 100


@BOTH
def test_gradient_at_zero_usage_is_the_true_one(allocate):
    """u = [0, 0.5]: a[0] = 1 - u0, a[1] = (1 - u1) u0."""
    slope = jax.jacrev(allocate)(jnp.array([0.0, 0.5]))
    np.testing.assert_allclose(slope, [[-1.0, 0.0], [0.5, 0.0]], atol=1e-5)


def test_usage_and_retention_are_their_equations():
    rng = np.random.default_rng(0)
    gates, reads = rng.uniform(0, 1, 3), rng.dirichlet(np.ones(5), 3)
    usage, write = rng.uniform(0, 1, 5), rng.dirichlet(np.ones(5))
    kept = np.ones(5)
    for f, w in zip(gates, reads, strict=True):
        kept = kept * (1 - f * w)
    with jax.enable_x64(True):
        gates, reads, usage, write = (jnp.asarray(a) for a in (gates, reads, usage, write))
        psi = retention(gates, reads)
        np.testing.assert_allclose(psi, kept, rtol=1e-12)
        np.testing.assert_allclose(update_usage(usage, write, psi), (usage + write - usage * write) * kept, rtol=1e-12)
