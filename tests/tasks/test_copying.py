"""The variants of copying that test stability and forgetting."""

import jax
import numpy as np
import pytest

from mnemon import Copying, fit, make_model
from mnemon._errors import MnemonError


def test_random_labels_are_no_function_of_the_inputs():
    plain, random = Copying(delay=5), Copying(delay=5, random_labels=True)
    key = jax.random.key(0)
    a, b = plain.batch(key, 0, 50), random.batch(key, 0, 50)
    np.testing.assert_array_equal(a.inputs, b.inputs)
    wanted = np.asarray(b.targets)[:, -10:]
    assert wanted.min() >= 1
    assert np.mean(wanted == np.asarray(a.targets)[:, -10:]) < 0.25
    np.testing.assert_array_equal(np.asarray(b.targets)[:, :-10], 0)


def test_the_state_is_reset_before_every_kth_episode_only():
    task = Copying(delay=2, length=1, reset_every=3)
    assert task.carries_state
    resets = [np.asarray(task.batch(jax.random.key(0), update, 2).reset) for update in range(7)]
    assert [reset.tolist() for reset in resets] == [[n % 3 == 0] * 2 for n in range(7)]
    assert not Copying(delay=2).carries_state
    assert Copying(delay=2).batch(jax.random.key(0), 0, 2).reset is None


def test_a_network_trains_on_the_stream():
    task = Copying(delay=2, length=1, symbols=2, reset_every=2)
    model = make_model(task, "gru", hidden_size=4, key=jax.random.key(0))
    records = fit(model, task, updates=4, batch=2, log_every=2).records
    assert [record["step"] for record in records] == [2, 4]


def test_bad_input():
    with pytest.raises(MnemonError, match="reset_every=0"):
        Copying(reset_every=0)
