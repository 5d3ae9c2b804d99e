"""Copying, variable-lag copying and denoising mean what the thesis says."""

import jax
import numpy as np
import pytest

from mnemon.tasks import Copying, Denoising, VariableCopying, make_task


def test_copying_layout():
    task = Copying(delay=5, symbols=3, length=2)
    episode = task.sample(jax.random.key(0))
    data = np.asarray(episode.inputs[:2])
    assert set(data) <= {1, 2, 3}
    # data, T - 1 blanks, marker, k blanks
    np.testing.assert_array_equal(episode.inputs, [*data, 0, 0, 0, 0, 4, 0, 0])
    np.testing.assert_array_equal(episode.targets, [0] * 7 + [*data])
    assert bool(episode.mask.all())


@pytest.mark.parametrize(("delay", "published"), [(100, 0.17), (200, 0.09)])
def test_copying_baseline_is_the_published_one(delay, published):
    chance = Copying(delay=delay).chance["loss"]
    np.testing.assert_allclose(chance, 10 * np.log(8) / (delay + 20))
    assert round(chance, 2) == published


@pytest.mark.parametrize("task", [Copying(delay=9), VariableCopying(delay=9), Denoising(delay=19)])
def test_chance_is_what_a_network_without_memory_scores(task):
    """Certain of the blanks, uniform over the data where data are wanted."""
    episodes = task.batch(jax.random.key(0), 0, 4000)
    wanted = np.asarray(episodes.targets != 0)[..., None]
    blank = np.where(np.arange(task.output_size) == 0, 100.0, 0.0)
    data = np.where(np.arange(task.output_size) == 0, -100.0, 0.0)
    _, metrics = task.score(jax.numpy.asarray(np.where(wanted, data, blank), "float32"), episodes)
    np.testing.assert_allclose(float(metrics["loss"]), task.chance["loss"], rtol=0.02)


def test_variable_lags_are_uniform_and_marked():
    task = VariableCopying(delay=6, symbols=4, length=3)
    episodes = task.batch(jax.random.key(0), 0, 3000)
    lags = np.asarray(episodes.length) - 6
    counts = np.bincount(lags, minlength=7)[1:]
    assert counts.min() > 400
    assert lags.min() == 1
    assert lags.max() == 6
    inputs = np.asarray(episodes.inputs)
    np.testing.assert_array_equal(np.argmax(inputs == task.marker, axis=1), 3 + lags - 1)
    for example in range(20):
        start = 3 + lags[example]
        np.testing.assert_array_equal(episodes.targets[example, start : start + 3], inputs[example, :3])


def test_denoising_hides_the_symbols_in_order():
    task = Denoising(delay=12, symbols=4, length=5)
    episode = task.sample(jax.random.key(1))
    inputs = np.asarray(episode.inputs)
    hidden = inputs[:12][inputs[:12] > 0]
    assert len(hidden) == 5
    assert inputs[12] == task.marker
    np.testing.assert_array_equal(episode.targets[13:], hidden)
    np.testing.assert_array_equal(np.flatnonzero(episode.mask), np.arange(13, 18))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("copying", {"delay": 0}, "delay=0 cannot work: wanted at least one step, e.g. delay=100"),
        ("copying", {"symbols": 1}, "symbols=1"),
        ("variable-copying", {"length": 0}, "length=0"),
        ("denoising", {"delay": 3}, "delay=3 cannot work: wanted room for the 10 symbols"),
    ],
)
def test_bad_sizes(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_task(name, **options)


def test_unknown_names_name_the_nearest():
    with pytest.raises(KeyError, match="did you mean 'copying'"):
        make_task("copyin")
    with pytest.raises(KeyError, match="did you mean 'delay'"):
        make_task("copying", dealy=3)
