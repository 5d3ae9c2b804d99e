"""What the mechanisms of the gated and additive cells mean, and what they refuse."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import count_parameters, fit_size, make_cell, unroll
from mnemon.cells import CELLS, GRU, JANET, LSTM, NRU, RNN


def _with_bias(cell, values):
    """The cell with all weights zero and this bias, so that its gates are what the bias says."""
    zero = jax.tree.map(lambda leaf: jnp.zeros_like(leaf) if eqx.is_inexact_array(leaf) else leaf, cell)
    return eqx.tree_at(lambda c: c.bias, zero, jnp.asarray(values, cell.bias.dtype))


def test_lstm_keeps_its_cell_with_an_open_forget_and_a_closed_input_gate():
    n = 3
    cell = _with_bias(LSTM(2, n, key=jax.random.key(0)), [-100.0] * n + [100.0] * n + [0.0] * 2 * n)
    state = cell.init_state()._replace(cell=jnp.array([1.0, -2.0, 3.0]))
    after, _ = cell(state, jnp.ones(2))
    np.testing.assert_array_equal(after.cell, state.cell)


def test_gru_update_gate_chooses_between_old_and_candidate():
    n = 3
    keeping = _with_bias(GRU(2, n, key=jax.random.key(0)), [-100.0] * n + [0.0] * n + [1.0] * n)
    state = keeping.init_state()._replace(hidden=jnp.array([0.1, -0.2, 0.3]))
    np.testing.assert_array_equal(keeping(state, jnp.ones(2))[0].hidden, state.hidden)
    taking = _with_bias(keeping, [100.0] * n + [0.0] * n + [1.0] * n)
    np.testing.assert_allclose(taking(state, jnp.ones(2))[0].hidden, np.tanh(1.0), rtol=1e-6)


def test_janet_with_beta_accumulates_more_than_it_forgets():
    n = 3
    state = JANET(2, n, key=jax.random.key(0)).init_state()._replace(hidden=jnp.ones(n))
    for beta, share in ((0.0, 0.5), (1.0, 1 - 1 / (1 + np.e))):
        cell = _with_bias(JANET(2, n, beta=beta, key=jax.random.key(0)), [0.0] * n + [100.0] * n)
        np.testing.assert_allclose(cell(state, jnp.ones(2))[0].hidden, 0.5 + share, rtol=1e-6)


def test_chrono_biases_reach_up_to_the_horizon():
    cell = LSTM(2, 120, chrono=100, key=jax.random.key(0))
    write, forget, _, _ = np.split(np.asarray(cell.bias), 4)
    np.testing.assert_array_equal(write, -forget)
    assert np.exp(forget).min() >= 1
    assert 95 < np.exp(forget).max() <= 99


def test_rnn_starts_orthogonal_or_as_the_identity():
    orthogonal = RNN(2, 6, init="orthogonal", key=jax.random.key(0)).recurrent_weights
    np.testing.assert_allclose(orthogonal @ orthogonal.T, np.eye(6), atol=1e-5)
    identity = RNN(2, 6, init="identity", recurrent_scale=0.5, key=jax.random.key(0)).recurrent_weights
    np.testing.assert_array_equal(identity, 0.5 * np.eye(6))


def test_identity_rnn_keeps_a_positive_state_for_ever():
    cell = RNN(2, 4, activation="relu", init="identity", key=jax.random.key(0))
    start = jax.tree.map(lambda leaf: jnp.ones((1, 4)), cell.init_state())
    result = unroll(cell, jnp.zeros((1, 500, 2)), state=start)
    np.testing.assert_array_equal(result.state.hidden, np.ones((1, 4)))


def test_nru_writes_a_unit_vector_and_nothing_with_zero_heads():
    cell = NRU(2, 4, memory_size=9, heads=1, key=jax.random.key(3))
    heads_only = eqx.tree_at(lambda c: (c.input_weights, c.head_weights), cell, replace_fn=jnp.zeros_like)
    # alpha = 1, beta = 0: the change is the write direction, of length 1 in the L5 norm
    writing = eqx.tree_at(lambda c: c.bias, heads_only, heads_only.bias.at[4].set(1.0).at[5].set(0.0))
    memory = writing(writing.init_state(), jnp.zeros(2))[0].memory
    np.testing.assert_allclose(np.sum(np.abs(memory) ** 5) ** 0.2, 1.0, rtol=1e-5)
    idle = eqx.tree_at(lambda c: c.bias, heads_only, heads_only.bias.at[4].set(0.0).at[5].set(0.0))
    state = idle.init_state()._replace(memory=jnp.arange(9.0))
    np.testing.assert_array_equal(idle(state, jnp.zeros(2))[0].memory, state.memory)


def test_nru_relu_heads_only_add_when_writing():
    cell = NRU(2, 4, memory_size=16, heads=4, relu_heads=True, key=jax.random.key(0))
    no_erasing = eqx.tree_at(lambda c: c.bias, cell, cell.bias.at[4 + 4 : 4 + 8].set(-1e6))
    inputs = jax.random.normal(jax.random.key(1), (3, 20, 2))
    memories = unroll(no_erasing, inputs, observe=lambda state: state.memory).observed
    memories = np.asarray(memories)
    assert np.all(memories[:, 1:] >= memories[:, :-1])
    assert np.asarray(memories)[:, -1].max() > 0


# PEERS: the sizes of the thesis's authors, readout included.
@pytest.mark.parametrize(
    ("name", "hidden", "parameters"),
    [
        ("rnn-orth", 143, 23_604),
        ("rnn-id", 143, 23_604),
        ("lstm", 70, 23_529),
        ("lstm-chrono", 70, 23_529),
        ("gru", 82, 23_625),
        ("janet", 101, 23_542),
        ("nru", 80, 23_569),
    ],
)
def test_the_authors_sizes_and_counts_are_found_from_the_budget(name, hidden, parameters):
    options = fit_size(name, 23_500, input_size=10, output_size=9)
    assert options == {"hidden_size": hidden}
    cell = eqx.filter_eval_shape(lambda key: make_cell(name, 10, key=key), jax.random.key(0))
    assert count_parameters(cell) + (cell.output_size + 1) * 9 == parameters
    assert CELLS[name].options["hidden_size"] == hidden


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda k: NRU(3, 5, memory_size=10, heads=4, key=k), r"memory_size \* heads \(= 40\) to be a square"),
        (lambda k: NRU(3, 5, memory_size=16, heads=4, norm=0.5, key=k), "norm=0.5"),
        (lambda k: LSTM(3, 0, key=k), "hidden_size=0 cannot work: wanted at least one unit"),
        (lambda k: LSTM(3, 5, chrono=1, key=k), "chrono=1"),
        (lambda k: make_cell("nruu", 3, key=k), "did you mean 'nru'"),
        (lambda k: make_cell("nru", 3, hiden_size=4, key=k), "did you mean 'hidden_size'"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises((ValueError, KeyError), match=message):
        make(jax.random.key(0))


def test_a_budget_below_the_smallest_net_is_refused():
    with pytest.raises(ValueError, match=r"budget=10 cannot work: wanted at least \d+, the smallest gru"):
        fit_size("gru", 10, input_size=10, output_size=9)


def test_the_example_size_in_the_error_works():
    NRU(3, 5, memory_size=75, heads=3, key=jax.random.key(0))
