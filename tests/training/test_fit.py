"""The trainer learns, resumes exactly, and stops when it should."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemon import Copying, choose_plan, evaluate, fit, make_model, make_optimizer
from mnemon.training import Diverged, Interrupted, Supervised, optimizer_names
from mnemon.training._updates import compiled_advance, init_state
from mnemon.training.checkpoints import Checkpoints

TASK = Copying(delay=3, length=2)


def _model(seed: int = 0):
    return make_model(TASK, "gru", hidden_size=6, key=jax.random.key(seed))


def _arrays(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))]


def test_training_lowers_the_loss_and_repeats_itself():
    first = fit(_model(), TASK, updates=300, log_every=50, optimizer=make_optimizer(lr=1e-2))
    again = fit(_model(), TASK, updates=300, log_every=50, optimizer=make_optimizer(lr=1e-2))
    assert first.records == again.records
    assert [record["step"] for record in first.records] == [50, 100, 150, 200, 250, 300]
    assert first.records[-1]["loss"] < 0.8 * first.records[0]["loss"]
    assert set(first.records[0]) == {"step", "loss", "accuracy", "recall", "gradient_norm"}


def test_a_run_is_compiled_once():
    """Also where parameters were made from Python numbers, as the gains of a layer norm often are."""
    model = make_model(TASK, "gru", hidden_size=6, key=jax.random.key(0))
    weak = eqx.tree_at(lambda m: m.readout_bias, model, jnp.full((9,), 0.0))
    assert weak.readout_bias.weak_type
    optimizer, objective = make_optimizer(), Supervised()
    state = init_state(weak, TASK, optimizer, objective, 2, 0)
    traced = []

    class Counted(Copying):
        def batch(self, key, update, size):
            traced.append(size)
            return super().batch(key, update, size)

    advance = compiled_advance(state, Counted(delay=3, length=2), optimizer, objective, 2)
    before = len(traced)
    state, _ = advance(state, 1)
    once = len(traced) - before
    state, _ = advance(state, 2)
    assert once >= 1
    assert len(traced) - before == once


@pytest.mark.slow
def test_nru_learns_to_copy():
    """A loss under a tenth of the baseline: the network remembers."""
    task = Copying(delay=5, symbols=4, length=3)
    model = make_model(task, "nru", hidden_size=40, memory_size=36, heads=4, key=jax.random.key(0))
    result = fit(model, task, updates=6_000, batch=20, optimizer=make_optimizer(lr=3e-3), stop_when_solved=True)
    assert result.solved
    assert evaluate(result.model, task, episodes=500)["loss"] < 0.1 * task.chance["loss"]


def test_the_last_record_may_be_short():
    assert [record["step"] for record in fit(_model(), TASK, updates=25, log_every=10).records] == [10, 20, 25]


def test_resuming_gives_the_undisturbed_run(tmp_path: Path):
    whole = fit(_model(), TASK, updates=90, log_every=20)
    fit(_model(), TASK, updates=50, log_every=20, folder=tmp_path)
    resumed = fit(_model(), TASK, updates=90, log_every=20, folder=tmp_path)
    # The first part ended inside a window, whose record it wrote as short; the rest is the same to the last bit.
    assert [record for record in resumed.records if record["step"] % 20 == 0 and record["step"] != 60] == [
        record for record in whole.records if record["step"] % 20 == 0 and record["step"] != 60
    ]
    for a, b in zip(_arrays(whole.model), _arrays(resumed.model), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_that_shares_its_batches_among_cores_resumes_and_can_be_used(tmp_path: Path):
    task = Copying(delay=100)
    model = make_model(task, "gru", hidden_size=64, key=jax.random.key(0))
    assert choose_plan(model.cell, 10, 120).share
    whole = fit(model, task, updates=6, log_every=3)
    fit(model, task, updates=3, log_every=3, folder=tmp_path)
    resumed = fit(model, task, updates=6, log_every=3, folder=tmp_path)
    assert resumed.records == whole.records
    for leaf in jax.tree.leaves(eqx.filter(resumed.model, eqx.is_array)):
        assert len(leaf.sharding.device_set) == 1
    assert evaluate(resumed.model, task, episodes=20, batch=20)["loss"] > 0


def test_a_damaged_newest_checkpoint_is_reported_and_the_one_before_is_used(tmp_path: Path):
    whole = fit(_model(), TASK, updates=60, log_every=20)
    fit(_model(), TASK, updates=20, log_every=20, folder=tmp_path)
    fit(_model(), TASK, updates=40, log_every=20, folder=tmp_path)
    for path in (tmp_path / "checkpoints" / "40").rglob("*"):
        if path.is_file() and path.stat().st_size > 1000:
            content = bytearray(path.read_bytes())
            middle = len(content) // 2
            content[middle : middle + 64] = bytes(64)
            path.write_bytes(content)
    messages: list[str] = []
    resumed = fit(_model(), TASK, updates=60, log_every=20, folder=tmp_path, report=messages.append)
    assert len(messages) == 1
    assert "checkpoints/40 is damaged" in messages[0]
    assert (tmp_path / "damaged-checkpoint-40").is_dir()
    assert resumed.records == whole.records


class _Exploding(Supervised):
    """A loss that is not finite at the update of a given number of calls."""

    def __call__(self, model, task, episodes, carry, *, key):
        loss, aux = super().__call__(model, task, episodes, carry, key=key)
        # the readout's bias starts at zero and grows: NaN once it has moved far enough
        moved = jnp.abs(model.readout_bias).max() > 0.02
        return jnp.where(moved, jnp.nan, 1.0) * loss, aux


def test_a_nan_stops_the_run_and_keeps_the_last_good_state(tmp_path: Path):
    with pytest.raises(Diverged, match=r"was not finite at update (\d+); the last good checkpoint is (.*)") as caught:
        fit(_model(), TASK, updates=200, log_every=10, folder=tmp_path, objective=_Exploding())
    with Checkpoints(tmp_path / "checkpoints") as checkpoints:
        newest = checkpoints.updates()[-1]
    assert f"at update {newest + 1};" in str(caught.value)
    assert str(checkpoints.path(newest)) in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # as from the process of a run
    undisturbed = fit(_model(), TASK, updates=newest, log_every=10)
    # going on stops at the same update again: nothing after the last good state was kept
    with pytest.raises(Diverged, match=f"at update {newest + 1};"):
        fit(_model(), TASK, updates=200, log_every=10, folder=tmp_path, objective=_Exploding())
    assert all(np.isfinite(array).all() for array in _arrays(undisturbed.model))


class _Long(Supervised):
    """A loss whose gradient is too long for the square of its norm in float32."""

    def __call__(self, model, task, episodes, carry, *, key):
        loss, aux = super().__call__(model, task, episodes, carry, key=key)
        return 1e25 * loss, aux


def test_a_gradient_too_long_for_its_square_gives_a_step_of_zero_if_clipped_and_stops_the_run_if_not():
    clipped = fit(_model(), TASK, updates=3, log_every=1, objective=_Long(), optimizer=make_optimizer(clip=1.0))
    assert 1e20 < clipped.records[-1]["gradient_norm"] < 1e30
    for before, after in zip(_arrays(_model()), _arrays(clipped.model), strict=True):
        np.testing.assert_array_equal(before, after)
    with pytest.raises(Diverged, match="not finite at update 1;"):
        fit(_model(), TASK, updates=3, log_every=1, objective=_Long(), optimizer=make_optimizer(clip=None))


def test_ctrl_c_saves_and_the_run_can_go_on(tmp_path: Path):
    whole = fit(_model(), TASK, updates=400, log_every=100)

    def interrupt(done: int, rate: float) -> None:
        if done >= 30:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match=r"stopped after update \d+; the last good checkpoint is"):
        fit(_model(), TASK, updates=400, log_every=100, folder=tmp_path, on_progress=interrupt)
    assert fit(_model(), TASK, updates=400, log_every=100, folder=tmp_path).records == whole.records


def test_killing_the_process_at_random_moments_changes_nothing(tmp_path: Path):
    command = [sys.executable, "-m", "mnemon", "train", "copying", "gru", "--hidden-size", "6", "--delay", "3"]
    command += ["--steps", "2000", "--log-every", "50", "--save-seconds", "0.1", "--json"]
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    # Killed while it writes, a process leaves half a program in the folder of compiled ones: not in that of all tests.
    env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    subprocess.run([*command, "--out", str(undisturbed)], check=True, capture_output=True, env=env)
    rng, kills = random.Random(0), 0
    for _ in range(3):
        process = subprocess.Popen(
            [*command, "--out", str(disturbed), "--resume"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        assert process.stdout is not None
        process.stdout.readline()  # training has begun
        time.sleep(rng.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert kills >= 1
    again = [*command, "--out", str(disturbed), "--resume"]
    done = subprocess.run(again, check=True, capture_output=True, text=True, env=env)
    assert (disturbed / "metrics.jsonl").read_text() == (undisturbed / "metrics.jsonl").read_text()
    assert json.loads(done.stdout.splitlines()[-1])["step"] == 2000
    assert (disturbed / "model.safetensors").read_bytes() == (undisturbed / "model.safetensors").read_bytes()


def test_stopping_when_solved():
    class Easy(Copying):
        def solved(self, metrics):
            return metrics["step"] >= 20

    assert fit(_model(), Easy(delay=3, length=2), updates=100, log_every=10, stop_when_solved=True).update == 20


def test_evaluation_is_repeatable_and_on_other_data_than_training():
    model = _model()
    assert evaluate(model, TASK, episodes=50, batch=20) == evaluate(model, TASK, episodes=50, batch=20)
    assert evaluate(model, TASK, episodes=50, seed=1) != evaluate(model, TASK, episodes=50, seed=2)


def test_optimizers_by_name():
    assert {"adam", "amsgrad", "nadam", "rmsprop", "sgd"} <= set(optimizer_names())
    clipped = make_optimizer("sgd", lr=1.0, clip=1.0)
    gradient = {"w": jnp.array([30.0, 40.0])}
    steps, _ = clipped.update(gradient, clipped.init(gradient))
    np.testing.assert_allclose(optax.tree.norm(steps), 1.0, rtol=1e-5)


def test_a_learning_rate_that_rises_and_falls():
    optimizer = make_optimizer("sgd", lr=1.0, clip=None, schedule="warmup-cosine", steps=200)
    gradient = jnp.ones(())

    def update(state, _):
        step, state = optimizer.update(gradient, state)
        return state, step

    _, steps = jax.lax.scan(update, optimizer.init(gradient), None, length=200)
    rates = -np.asarray(steps)
    np.testing.assert_allclose(rates[:5], [0.0, 0.25, 0.5, 0.75, 1.0], atol=1e-6)
    assert np.all(rates[5:] < rates[4:-1])
    assert 0.0 < rates[-1] < 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"updates": -1}, "updates=-1"),
        ({"updates": 1, "batch": 0}, "batch=0"),
        ({"updates": 1, "log_every": 0}, "log_every=0"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        fit(_model(), TASK, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"name": "adom"}, "did you mean 'adam'"), ({"lr": 0.0}, "lr=0.0"), ({"clip": -1.0}, "clip=-1.0")],
)
def test_bad_optimizers(options, message):
    with pytest.raises((ValueError, KeyError), match=message):
        make_optimizer(**options)
