"""Vectors of length one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon.cells._lengths import unit_rows

ROWS = np.array([[0.3, -1.2, 0.7, 0.1], [-2.0, 0.4, 0.9, 1.1], [5.0, -0.2, 0.6, -3.0]])


def _plainly(rows, p):
    return rows / jnp.linalg.norm(rows, p, axis=1, keepdims=True)


@pytest.mark.parametrize("p", [1, 2, 2.5, 5, jnp.inf])
def test_units_and_gradients_are_those_of_the_plain_quotient(p):
    with jax.enable_x64(True):
        rows, weights = jnp.asarray(ROWS), jnp.arange(12.0).reshape(3, 4)
        ours, norms = unit_rows(rows, p)
        np.testing.assert_allclose(ours, _plainly(rows, p), rtol=1e-12)
        np.testing.assert_allclose(norms, jnp.linalg.norm(rows, p, axis=1), rtol=1e-12)
        gradient = jax.grad(lambda rows: jnp.sum(weights * unit_rows(rows, p)[0]))(rows)
        wanted = jax.grad(lambda rows: jnp.sum(weights * _plainly(rows, p)))(rows)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("p", [1, 5, jnp.inf])
def test_rows_of_zeros_stay_zero_without_a_gradient(p):
    rows = jnp.asarray([[0.0, 0.0], [3.0, 4.0]])
    units, norms = unit_rows(rows, p)
    gradient = jax.grad(lambda rows: jnp.sum(unit_rows(rows, p)[0] * jnp.asarray([[1.0, 2.0]])))(rows)
    np.testing.assert_array_equal(units[0], 0)
    np.testing.assert_array_equal(gradient[0], 0)
    assert norms[0] == 0
    assert jnp.all(jnp.isfinite(gradient))
    assert jnp.any(gradient[1] != 0)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_powers_neither_overflow_nor_vanish(scale):
    rows = jnp.asarray(ROWS, jnp.float32)
    units, norms = unit_rows(scale * rows, 5)
    np.testing.assert_allclose(units, _plainly(rows, 5), rtol=1e-5)
    np.testing.assert_allclose(norms, scale * jnp.linalg.norm(rows, 5, axis=1), rtol=1e-5)
