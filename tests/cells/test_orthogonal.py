"""What must hold of every cell with an orthogonal or unitary recurrent matrix, before and after training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemon import unroll
from mnemon.cells import EURNN, GORU, URNN, FullURNN, SpectralRNN
from mnemon.cells._rotations import Rotations
from tests.oracles._dense import rotation_matrix

KEY = jax.random.key(0)
CELLS = {
    "spectral-rnn": lambda: SpectralRNN(3, 24, margin=0.0, key=KEY),
    "urnn": lambda: URNN(3, 20, key=KEY),
    "full-urnn": lambda: FullURNN(3, 12, key=KEY),
    "eurnn": lambda: EURNN(3, 32, key=KEY),
    "eurnn-complex": lambda: EURNN(3, 16, complex_valued=True, key=KEY),
    "eurnn-tunable": lambda: EURNN(3, 18, capacity=8, key=KEY),
    "eurnn-tunable-complex": lambda: EURNN(3, 10, capacity=10, complex_valued=True, key=KEY),
    "goru": lambda: GORU(3, 16, key=KEY),
}
EVERY_CELL = pytest.mark.parametrize("name", CELLS)


_recurrent_matrices = eqx.filter_jit(lambda cell: cell.recurrent_matrices())


def _matrix(cell) -> np.ndarray:
    return np.asarray(_recurrent_matrices(cell)[-1])


def _trained(cell, updates: int = 30):
    """The cell after some updates of Adam, with a learning rate large enough to move every parameter."""
    inputs = jax.random.normal(jax.random.key(1), (8, 12, cell.input_size))
    targets = jax.random.normal(jax.random.key(2), (8, 12, cell.output_size))
    optimiser = optax.adam(0.03)

    @eqx.filter_jit
    def update(cell, memory):
        gradient = eqx.filter_grad(lambda c: jnp.mean((unroll(c, inputs).outputs - targets) ** 2))(cell)
        change, memory = optimiser.update(gradient, memory)
        return eqx.apply_updates(cell, change), memory

    memory = optimiser.init(eqx.filter(cell, eqx.is_inexact_array))
    for _ in range(updates):
        cell, memory = update(cell, memory)
    return cell


@EVERY_CELL
def test_stays_orthogonal_under_training(name):
    cell = CELLS[name]()
    trained = _trained(cell)
    before, after = _matrix(cell), _matrix(trained)
    assert np.abs(after - before).max() > 0.05, "training moves the matrix"
    np.testing.assert_allclose(after.T @ after, np.eye(len(after)), atol=1e-5)


@EVERY_CELL
def test_jacobian_of_the_linear_transition_keeps_norm_one_over_1000_steps(name):
    matrix = jnp.asarray(_matrix(CELLS[name]()))
    jacobian = jax.lax.fori_loop(0, 1000, lambda _, product: product @ matrix, jnp.eye(len(matrix)))
    np.testing.assert_allclose(np.linalg.svd(jacobian)[1], 1.0, atol=2e-3)


def test_jacobian_through_unroll_keeps_norm_one_over_1000_steps():
    cell = SpectralRNN(3, 6, margin=0.0, activation="identity", key=KEY)

    def last(hidden):
        state = cell.init_state()._replace(hidden=hidden[None])
        return unroll(cell, jnp.zeros((1, 1000, 3)), state=state).state.hidden[0]

    jacobian = jax.jacrev(last)(jnp.ones(6))
    np.testing.assert_allclose(np.linalg.svd(jacobian)[1], 1.0, atol=1e-3)


@pytest.mark.parametrize("margin", [0.05, 0.5, 1.0])
def test_singular_values_stay_within_the_margin(margin):
    trained = _trained(SpectralRNN(3, 16, margin=margin, key=KEY), updates=60)
    singular_values = np.linalg.svd(_matrix(trained))[1]
    assert np.all(np.abs(singular_values - 1) <= margin + 1e-5)
    assert np.abs(singular_values - 1).max() > margin / 4, "training uses the margin"


def test_margins_outside_zero_to_one_are_refused():
    for margin in (-0.1, 1.5):
        with pytest.raises(ValueError, match=rf"margin={margin}.*between 0 and 1"):
            SpectralRNN(3, 5, margin=margin, key=KEY)


@eqx.filter_jit
def _turned_and_matrix(rotations, vector):
    return rotations(rotations.turn(), vector), rotations.matrix()


@pytest.mark.parametrize(("size", "capacity"), [(2, None), (8, None), (32, None), (8, 2), (8, 6), (8, 8)])
@pytest.mark.parametrize("complex_valued", [False, True])
def test_rotations_are_the_dense_matrix_they_stand_for(size, capacity, complex_valued):
    rotations = Rotations(size, capacity=capacity, complex_valued=complex_valued, key=KEY)
    vector = np.random.default_rng(0).standard_normal(size)
    vector = vector + 1j * vector[::-1] if complex_valued else vector
    turned, matrix = _turned_and_matrix(rotations, vector.astype(np.complex64 if complex_valued else np.float32))
    expected = rotation_matrix(rotations)
    np.testing.assert_allclose(turned, vector @ expected, atol=1e-5)
    np.testing.assert_allclose(matrix, expected, atol=1e-5)


def test_every_entry_reaches_every_other_in_log_n_layers():
    rotations = Rotations(16, complex_valued=False, key=KEY)
    assert rotations.angles.shape == (4, 8)
    assert np.all(np.abs(rotations.matrix()) > 0)
    few = Rotations(16, capacity=2, complex_valued=False, key=KEY)
    assert np.sum(np.abs(few.matrix()) > 0) < 16 * 5


def test_sizes_that_rotations_cannot_take_are_refused_with_the_nearest_that_work():
    for make in (EURNN, GORU):
        with pytest.raises(ValueError, match=r"hidden_size=100.*power of two.*hidden_size=64 or hidden_size=128"):
            make(3, 100, key=KEY)
        with pytest.raises(ValueError, match=r"hidden_size=7.*even.*hidden_size=6 or hidden_size=8"):
            make(3, 7, capacity=2, key=KEY)
        for capacity in (0, 3, 10):
            with pytest.raises(ValueError, match=f"capacity={capacity}.*even.*from 2 to the size, 8"):
                make(3, 8, capacity=capacity, key=KEY)


def test_goru_gates():
    cell = GORU(3, 8, key=KEY)
    state = cell.init_state()._replace(hidden=jnp.arange(8.0))
    drive = jnp.zeros(24).at[8:16].set(50.0)  # g = 1 keeps
    np.testing.assert_allclose(cell.step(state, drive)[0].hidden, state.hidden, rtol=1e-6)
    drive = jnp.zeros(24).at[:8].set(50.0).at[8:16].set(-50.0)  # r = 1, g = 0 rotates
    cell = eqx.tree_at(lambda c: c.bias, cell, jnp.zeros(24))
    np.testing.assert_allclose(
        cell.step(state, drive)[0].hidden, state.hidden @ cell.rotations.matrix(), rtol=1e-4, atol=1e-5
    )
