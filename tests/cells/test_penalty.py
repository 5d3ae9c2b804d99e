"""The soft orthogonality penalty."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mnemon.cells import GRU, LSTM, RNN, AbstractCell, Stack, orthogonality_penalty
from tests.tiny import NAMES, tiny_cell

_gradient = eqx.filter_jit(eqx.filter_grad(orthogonality_penalty))


def test_recurrent_matrices_are_square_and_carry_gradients():
    cells = {name: tiny_cell(name) for name in NAMES}
    matrices = eqx.filter_eval_shape(lambda: {name: cell.recurrent_matrices() for name, cell in cells.items()})
    for name, of_cell in matrices.items():
        assert all(matrix.shape[0] == matrix.shape[1] for matrix in of_cell), name
    gradients = eqx.filter_jit(eqx.filter_grad(lambda cells: sum(map(orthogonality_penalty, cells.values()))))(
        {name: cell for name, cell in cells.items() if matrices[name]}
    )
    for name, gradient in gradients.items():
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)), name
        assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient)) or orthogonality_penalty(cells[name]) < 1e-9, (
            name
        )


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
