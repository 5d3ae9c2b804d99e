"""The solver of the dual problem against SciPy's."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from mnemon.lifelong._quadratic import minimise_nonnegative

solve = jax.jit(minimise_nonnegative)


def _oracle(matrix: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """The same problem as non-negative least squares: |L^T v + L^-1 q|^2 with P = L L^T."""
    lower = np.linalg.cholesky(matrix)
    return nnls(lower.T, -np.linalg.solve(lower, linear), maxiter=10_000)[0]


def _value(matrix, linear, v) -> float:
    v = np.asarray(v, np.float64)
    return float(0.5 * v @ matrix @ v + linear @ v)


@pytest.mark.parametrize("size", [1, 2, 7, 20, 64])
def test_agrees_with_nnls_in_double_precision(size: int):
    with jax.enable_x64(True):
        for seed in range(4):
            rng = np.random.default_rng(seed)
            rows = rng.normal(size=(size, size + 5)) + 2.0 * rng.normal(size=(size + 5,))[None] * (seed % 2)
            matrix, linear = rows @ rows.T + 1e-3 * np.eye(size), rows @ rng.normal(size=size + 5)
            np.testing.assert_allclose(solve(matrix, linear), _oracle(matrix, linear), rtol=1e-7, atol=1e-9)


def test_agrees_with_slsqp():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(6, 9))
    matrix, linear = rows @ rows.T, rows @ rng.normal(size=9)
    result = minimize(
        lambda v: _value(matrix, linear, v),
        np.ones(6),
        jac=lambda v: matrix @ v + linear,
        bounds=[(0, None)] * 6,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    np.testing.assert_allclose(solve(matrix.astype(np.float32), linear.astype(np.float32)), result.x, atol=2e-4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_single_precision_reaches_the_minimum_whatever_the_scale(scale: float):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(64, 30)) * scale  # more rows than dimensions: dependent
        gram = rows @ rows.T
        matrix, linear = gram + 1e-4 * np.diag(np.diag(gram)), rows @ rng.normal(size=30) * scale
        found, best = solve(matrix.astype(np.float32), linear.astype(np.float32)), _oracle(matrix, linear)
        assert np.all(np.asarray(found) >= 0)
        assert _value(matrix, linear, found) <= _value(matrix, linear, best) * (1 - 1e-4)  # the value is negative


def test_rows_of_very_different_sizes():
    rng = np.random.default_rng(0)
    sizes = np.logspace(-4, 4, 12)
    rows = rng.normal(size=(12, 40)) * sizes[:, None]
    matrix, linear = rows @ rows.T, rows @ rng.normal(size=40)
    found = np.asarray(solve(matrix.astype(np.float32), linear.astype(np.float32)))
    np.testing.assert_allclose(found * sizes, _oracle(matrix, linear) * sizes, atol=1e-4)


def test_zero_rows_and_zero_problems():
    matrix = np.zeros((3, 3), np.float32)
    assert np.all(np.asarray(solve(matrix, np.zeros(3, np.float32))) == 0)
    matrix[1, 1] = 2.0
    np.testing.assert_allclose(solve(matrix, np.array([0.0, -4.0, 0.0], np.float32)), [0.0, 2.0, 0.0], rtol=1e-6)
