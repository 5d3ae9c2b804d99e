"""The soft orthogonality penalty."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon.cells import GRU, LSTM, RNN, AbstractCell, Stack, orthogonality_penalty
from tests.tiny import NAMES, tiny_cell

_gradient = eqx.filter_jit(eqx.filter_grad(orthogonality_penalty))


@pytest.mark.parametrize("name", NAMES)
def test_recurrent_matrices_are_square_and_carry_gradients(name):
    cell = tiny_cell(name)
    matrices = eqx.filter_eval_shape(lambda: cell.recurrent_matrices())
    assert all(matrix.shape[0] == matrix.shape[1] for matrix in matrices)
    if matrices:
        gradient = _gradient(cell)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


def test_one_matrix_for_each_gate():
    key = jax.random.key(0)
    cells = RNN(3, 5, key=key), LSTM(5, 7, key=key), GRU(7, 4, key=key)
    assert [len(cell.recurrent_matrices()) for cell in cells] == [1, 4, 3]
    sizes = [matrix.shape for matrix in Stack(*cells).recurrent_matrices()]
    assert sizes == [(5, 5)] + 4 * [(7, 7)] + 3 * [(4, 4)]


def test_penalty_is_zero_for_orthogonal_matrices_and_descends_to_them():
    assert orthogonality_penalty(LSTM(3, 5, key=jax.random.key(0))) < 1e-9
    cell: AbstractCell = RNN(3, 5, key=jax.random.key(0))
    before = orthogonality_penalty(cell)
    for _ in range(200):
        gradient = _gradient(cell)
        cell = eqx.apply_updates(cell, jax.tree.map(lambda g: -0.02 * g, gradient))
    assert before > 1 > 1e-3 > orthogonality_penalty(cell)
    (w,) = cell.recurrent_matrices()
    np.testing.assert_allclose(w.T @ w, jnp.eye(5), atol=0.02)
