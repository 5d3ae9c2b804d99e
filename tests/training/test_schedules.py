"""Schedules: their values, what they reach, and that a resumed run goes on with them."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Copying, Model, fit, make_cell
from mnemon._errors import BadValue, UnknownName
from mnemon.cells import RNN, Fixed
from mnemon.training import Schedule, Supervised
from mnemon.training.runs import RunConfig, open_run, train_run
from mnemon.training.schedules import exponential, inverse_sqrt, linear, set_scheduled

TASK = Copying(delay=2, symbols=3, length=1)
SIZES = {"hidden_size": 5, "memory_slots": 3, "address_size": 2, "word_size": 4}
CURRICULUM = "dial=linear(1, 0, 4)"


class Dialled(RNN):
    """A cell with something to set."""

    dial: Fixed

    def __init__(self, key):
        super().__init__(TASK.input_size, 3, key=key)
        self.dial = Fixed(jnp.asarray(0.5), "dial")


class _Seen(Supervised):
    """Reports what the schedule set."""

    def __call__(self, model, task, episodes, carry, *, key):
        loss, outcome = super().__call__(model, task, episodes, carry, key=key)
        cell: Any = model.cell
        return loss, outcome._replace(metrics={"seen": cell.dial.value})


def _seen(text: str, updates: int) -> list[float]:
    cell_key, model_key = jax.random.split(jax.random.key(0))
    model = Model(Dialled(cell_key), TASK.output_size, symbols=TASK.input_size, key=model_key)
    schedules = [Schedule.parse(text)]
    result = fit(model, TASK, updates=updates, batch=2, objective=_Seen(), schedules=schedules, log_every=1)
    return [record["seen"] for record in result.records]


def _parameters(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))]


def test_values():
    assert [float(linear(t, 2.0, 1.0, 4)) for t in (0, 1, 4, 9)] == [2.0, 1.75, 1.0, 1.0]
    np.testing.assert_allclose([exponential(t, 1.0, 0.01, 4) for t in (0, 2, 4, 9)], [1.0, 0.1, 0.01, 0.01], rtol=1e-5)
    np.testing.assert_allclose(inverse_sqrt(jnp.array(1000), rate=0.0015), 1 / np.sqrt(2.5), rtol=1e-6)


def test_every_update_uses_the_value_of_its_number():
    np.testing.assert_allclose(_seen(CURRICULUM, 6), [1.0, 0.75, 0.5, 0.25, 0.0, 0.0])


def test_a_drawn_value_is_drawn_once_an_update():
    seen = _seen("dial~constant(0.5)", 24)
    assert set(seen) == {0.0, 1.0}
    assert 4 <= sum(seen) <= 20


@pytest.mark.parametrize(
    ("cell", "options", "name"),
    [
        ("dntm-discrete", {"address_size": 2}, "soft_probability"),
        ("tardis", {"temperature": 2.0}, "temperature"),
        ("tardis", {}, "gate_temperature"),
    ],
)
def test_what_cells_let_a_schedule_set(cell, options, name):
    made = make_cell(cell, 3, hidden_size=5, word_size=4, **options, key=jax.random.key(0))
    later = set_scheduled(made, [Schedule.parse(f"{name}=exponential(1, 0.1, 2)")], 9, jax.random.key(0))
    assert float(getattr(later, name).value) == pytest.approx(0.1)


def test_a_resumed_run_goes_on_with_its_schedule(tmp_path):
    config = RunConfig(
        "copying", "dntm-discrete", {"delay": 2, "symbols": 3, "length": 1}, SIZES, steps=6, batch=2, log_every=2,
        schedule=("soft_probability~linear(1, 0, 8)",),
    )  # fmt: skip
    whole = train_run(config, tmp_path / "whole")
    train_run(dataclasses.replace(config, steps=4), tmp_path / "cut")
    assert open_run(tmp_path / "cut").config.schedule == config.schedule
    resumed = train_run(config, tmp_path / "cut", resume=True)
    assert resumed.records == whole.records
    for a, b in zip(_parameters(whole.model), _parameters(resumed.model), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("soft_probability", BadValue, r"wanted NAME=FUNCTION\(NUMBERS\)"),
        ("soft_probability=linear(1, much, 3)", BadValue, r"e\.g\. soft_probability=linear"),
        ("soft_probability=linear(1)", BadValue, r"wanted linear\(start, end, updates\)"),
        ("soft_probability=linear(1, 0, 0)", BadValue, "updates=0.0 cannot work"),
        ("soft_probability=inverse_sqrt(-1)", BadValue, "rate=-1.0 cannot work"),
        ("temperature=exponential(1, 0, 9)", BadValue, "a positive start and end"),
        ("soft_probability=liner(1, 0, 3)", UnknownName, "did you mean 'linear'"),
        ("soft_probabilty=constant(1)", UnknownName, "did you mean 'soft_probability'"),
    ],
)
def test_bad_schedules_are_refused_before_anything_is_written(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        train_run(RunConfig("copying", "dntm-discrete", schedule=(text,)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("cell", "objective"),
    [("gru", "supervised"), ("dntm-discrete", "reinforce"), ("tardis-reinforce", "reinforce-auxiliary")],
)
def test_a_name_stands_for_its_objective(cell, objective):
    assert RunConfig("copying", cell).objective == objective
    assert RunConfig("copying", cell, objective="supervised").objective == "supervised"


def test_an_objective_that_the_cell_cannot_have_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(BadValue, match="a cell with a log_probability"):
        train_run(RunConfig("copying", "gru", objective="reinforce"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
