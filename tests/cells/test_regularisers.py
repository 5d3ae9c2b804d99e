"""Recurrent dropout and zoneout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon.cells import BNLSTM, GORU, GRU, JANET, LSTM, RNN, SRU, Zoneout

KEY = jax.random.key(0)
GATED = {"lstm": LSTM, "gru": GRU, "janet": JANET, "goru": GORU, "bn-lstm": BNLSTM}
EVERY_GATED = pytest.mark.parametrize("make", GATED.values(), ids=GATED)
INPUTS = jax.random.normal(jax.random.key(1), (4, 7, 3))


@EVERY_GATED
def test_recurrent_dropout_drops_in_training_alone(make):
    plain, dropping = make(3, 8, key=KEY), make(3, 8, recurrent_dropout=0.5, key=KEY)
    np.testing.assert_array_equal(unroll(plain, INPUTS).outputs, unroll(dropping, INPUTS).outputs)
    with_key = unroll(dropping, INPUTS, key=KEY).outputs
    assert not np.allclose(with_key, unroll(plain, INPUTS, key=KEY).outputs, atol=1e-4)
    with pytest.raises(ValueError, match=r"recurrent_dropout=1\.0.*below 1"):
        make(3, 8, recurrent_dropout=1.0, key=KEY)


def test_a_dropped_candidate_writes_nothing_and_the_mean_is_kept():
    cell = LSTM(3, 200, recurrent_dropout=0.25, key=KEY)
    x = INPUTS[0, 0]
    whole = cell(cell.init_state(), x)[0].cell
    dropped = cell(cell.init_state(), x, key=KEY)[0].cell
    kept = np.asarray(dropped) != 0
    np.testing.assert_allclose(np.asarray(dropped)[kept], np.asarray(whole)[kept] / 0.75, rtol=1e-5)
    assert 0.6 < kept.mean() < 0.9


@EVERY_GATED
def test_zoneout_keeps_some_of_the_old_state_and_takes_the_mean_without_a_key(make):
    inner = make(3, 8, key=KEY)
    cell = Zoneout(inner, hidden=0.3)
    batched = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (4, *leaf.shape)), inner.init_state())
    state = batched._replace(hidden=jnp.ones((4, 8)))
    step = {"inputs": INPUTS[:, :1], "state": state}
    new = unroll(inner, **step).outputs
    np.testing.assert_allclose(unroll(cell, **step).outputs, 0.3 + 0.7 * new, rtol=1e-4, atol=1e-5)
    zoned = unroll(cell, **step, key=KEY)
    new_in_training = unroll(inner, **step, key=KEY).outputs
    kept = np.asarray(zoned.outputs) == 1
    assert 0 < kept.mean() < 1
    np.testing.assert_allclose(
        np.asarray(zoned.outputs)[~kept], np.asarray(new_in_training)[~kept], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(zoned.outputs[:, 0], zoned.state.hidden)


def test_zoneout_has_a_rate_and_a_mask_for_each_part():
    inner = LSTM(3, 50, key=KEY)
    cell = Zoneout(inner, hidden=0.5, cell=0.5)
    ones = inner.init_state()._replace(hidden=jnp.ones(50), cell=jnp.ones(50))
    state, _ = cell(ones, INPUTS[0, 0], key=KEY)
    hidden_kept, cell_kept = np.asarray(state.hidden) == 1, np.asarray(state.cell) == 1
    assert 0.2 < hidden_kept.mean() < 0.8
    assert 0.2 < cell_kept.mean() < 0.8
    assert np.any(hidden_kept != cell_kept)
    untouched, _ = Zoneout(inner, cell=0.5)(ones, INPUTS[0, 0], key=KEY)
    np.testing.assert_allclose(untouched.hidden, inner(ones, INPUTS[0, 0])[0].hidden, rtol=1e-6)


def test_zoneout_passes_statistics_and_matrices_on():
    inner = BNLSTM(3, 5, max_steps=7, key=KEY)
    cell = Zoneout(inner, hidden=0.2, cell=0.2)
    after = cell.with_statistics(unroll(cell, INPUTS, key=KEY).statistics)
    assert isinstance(after, Zoneout)
    assert isinstance(after.inner, BNLSTM)
    assert float(after.inner.updates.value.sum()) == 7
    assert len(cell.recurrent_matrices()) == 4


def test_zoneout_refuses_what_cannot_work():
    with pytest.raises(ValueError, match=r"hidden=1\.0.*below 1"):
        Zoneout(RNN(3, 5, key=KEY), hidden=1.0)
    with pytest.raises(KeyError, match="part of the state of RNN 'cell'"):
        Zoneout(RNN(3, 5, key=KEY), cell=0.1)
    with pytest.raises(ValueError, match=r"inner='SRU'.*`hidden` part"):
        Zoneout(SRU(3, 5, key=KEY))
