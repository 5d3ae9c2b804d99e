"""What is true of every registered task."""

import functools
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mnemon
from mnemon import evaluate, fit, make_model
from mnemon.tasks import TASKS, AbstractTask, make_task

pytestmark = pytest.mark.usefixtures("synthetic_data")
EVERY_TASK = pytest.mark.parametrize("name", sorted(TASKS))
EPISODES = 20


# Compiling is what takes time: one program for each task and purpose, the data of the task among its arguments.
@eqx.filter_jit
def _sample(task, keys):
    return jax.vmap(task.sample)(keys)


@eqx.filter_jit
def _perfect(task, episodes):
    """Outputs of the oracle, their loss and metrics, the metrics of each episode."""
    outputs = jax.vmap(task.oracle)(episodes)
    return outputs, task.score(outputs, episodes), jax.vmap(task.metrics)(outputs, episodes)


@eqx.filter_jit
def _losses(task, outputs, episode):
    return task.loss(outputs, episode), task.step_losses(outputs, episode)


@functools.cache
def _some_episodes(name):
    return _sample(make_task(name), jax.random.split(jax.random.key(0), EPISODES))


def _one_episode(name):
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), _some_episodes(name))


@EVERY_TASK
def test_the_oracle_is_perfect(name):
    task = make_task(name)
    # Where even the best network loses something, it scores what `perfect` says only in the mean of many episodes.
    certain = task.perfect["loss"] == 0.0
    episodes = _some_episodes(name) if certain else _sample(task, jax.random.split(jax.random.key(0), 1000))
    outputs, (loss, metrics), each = _perfect(task, episodes)
    assert outputs.shape == (*episodes.mask.shape, task.output_size)
    np.testing.assert_allclose(float(loss), float(metrics["loss"]), rtol=1e-5, atol=1e-5)
    spread = {} if certain else {metric: np.std(values) for metric, values in each.items()}
    for metric, value in task.perfect.items():
        error = 4.0 * spread.get(metric, 0.0) / np.sqrt(len(episodes.length))
        np.testing.assert_allclose(float(metrics[metric]), value, atol=1e-5 + error)
    assert task.solved({metric: float(value) for metric, value in metrics.items()})
    assert not task.solved(task.chance)


@EVERY_TASK
def test_sampling_is_a_pure_function_of_the_key(name):
    once = _some_episodes(name)
    again = _sample(make_task(name), jax.random.split(jax.random.key(0), EPISODES))
    for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(np.any(np.asarray(leaf)[1:] != np.asarray(leaf)[:-1]) for leaf in jax.tree.leaves(once))


@EVERY_TASK
def test_steps_that_are_not_read_out_are_not_scored(name):
    task = make_task(name)
    mask = np.asarray(_some_episodes(name).mask)
    if task.scored_steps is None:
        assert np.any(mask)
        return
    assert 1 <= task.scored_steps < mask.shape[1]
    assert not np.any(mask[:, : -task.scored_steps])
    model = make_model(task, "rnn", hidden_size=4, key=jax.random.key(0))
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)

    def loss(parameters, last):
        outputs, _ = eqx.combine(parameters, rest)(_some_episodes(name), last=last)
        return task.score(outputs, _some_episodes(name))[0]

    part, whole = (jax.value_and_grad(loss)(parameters, last) for last in (task.scored_steps, None))
    for a, b in zip(jax.tree.leaves(part), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@EVERY_TASK
def test_a_network_can_be_trained_on_it(name):
    """Data are held as arrays; streams carry state; answers are fed back: all through the same trainer."""
    task = make_task(name)
    model = make_model(task, "rnn", hidden_size=4, key=jax.random.key(0))
    result = fit(model, task, updates=2, batch=3, log_every=1)
    assert set(task.perfect) <= set(result.records[-1])
    scores = evaluate(result.model, task, episodes=4, batch=2)
    assert set(scores) == set(task.perfect)
    assert np.all(np.isfinite(list(scores.values())))


@EVERY_TASK
def test_inputs_fit_the_task(name):
    task, episodes = make_task(name), _some_episodes(name)
    if task.symbolic:
        assert int(episodes.inputs.max()) < task.input_size
        assert int(episodes.inputs.min()) >= 0
        assert task.symbol_names is None or len(task.symbol_names) == task.input_size
    else:
        assert episodes.inputs.shape[-1] == task.input_size


@EVERY_TASK
def test_scored_steps_are_real_steps(name):
    episodes = _some_episodes(name)
    time = episodes.mask.shape[1]
    assert not np.any(np.asarray(episodes.mask) & (np.arange(time) >= np.asarray(episodes.length)[:, None]))
    assert np.all(np.asarray(episodes.mask).any(axis=1))


@EVERY_TASK
def test_padding_and_unscored_steps_do_not_count(name):
    task, episode = make_task(name), _one_episode(name)
    outputs = np.random.default_rng(7).standard_normal((episode.mask.shape[0], task.output_size), np.float32)
    rubbish = np.where(np.asarray(episode.mask)[:, None], outputs, np.float32(-37.0))
    np.testing.assert_allclose(_losses(task, rubbish, episode)[0], _losses(task, outputs, episode)[0])


@EVERY_TASK
def test_the_loss_is_the_mean_of_the_losses_of_the_steps(name):
    task, episode = make_task(name), _one_episode(name)
    outputs = np.random.default_rng(7).standard_normal((episode.mask.shape[0], task.output_size), np.float32)
    loss, steps = _losses(task, outputs, episode)
    np.testing.assert_allclose(np.asarray(steps)[np.asarray(episode.mask)].mean(), loss, rtol=1e-4)


@EVERY_TASK
def test_it_can_be_shown(name):
    assert len(make_task(name).show(_one_episode(name)).splitlines()) >= 2


@EVERY_TASK
def test_it_says_what_it_measures_and_documents_its_options(name):
    cls = TASKS[name]
    assert cls.measures
    assert set(make_task(name).chance) == set(make_task(name).perfect)
    for option in inspect.signature(cls).parameters:
        assert f"- `{option}`:" in (cls.__doc__ or "") + (cls.__init__.__doc__ or "")


def test_every_task_class_is_registered():
    def subclasses(cls):
        for sub in cls.__subclasses__():
            yield sub
            yield from subclasses(sub)

    classes = {
        cls
        for cls in subclasses(AbstractTask)
        if cls.__module__.startswith(mnemon.__name__) and not inspect.isabstract(cls) and not _has_open_fields(cls)
    }
    assert set(TASKS.values()) == classes


def _has_open_fields(cls) -> bool:
    return cls.__name__.startswith("Abstract")


def test_options_of_tasks_cells_and_trainer_do_not_collide():
    """They share one command line."""
    import dataclasses

    from mnemon.cells import CELLS, cell_options
    from mnemon.cli.training import _Training
    from mnemon.tasks import task_options

    trainer = {field.name for field in dataclasses.fields(_Training)}
    for task in TASKS:
        for entry in CELLS.values():
            names = [*task_options(task), *cell_options(entry)]
            assert len(set(names)) == len(names), (task, entry.name)
            assert not trainer & set(names), (task, entry.name)
