"""A curriculum goes on while levels are passed, grows once when one is not, and ends."""

import equinox as eqx
import jax
import numpy as np
import pytest

from mnemon import Copying, make_model
from mnemon.lifelong import EWC, GEM, learn

LEVELS = [Copying(delay=delay, symbols=3, length=2) for delay in (1, 2, 3)]
OPTIONS = {"updates": 20, "window": 10, "episodes": 20, "report": lambda message: None}


def _model():
    return make_model(LEVELS[0], "gru", hidden_size=5, key=jax.random.key(0))


def test_all_levels_are_passed_and_measured(tmp_path):
    result = learn(_model(), LEVELS, threshold=0.0, objective=GEM(), folder=tmp_path, **OPTIONS)
    assert result.cleared == 3
    assert result.matrix.shape == (3, 3)
    assert result.untrained.shape == (3,)
    assert result.expanded == {}
    again = learn(_model(), LEVELS, threshold=0.0, objective=GEM(), folder=tmp_path, **OPTIONS)
    assert np.array_equal(again.matrix, result.matrix)
    for a, b in zip(*(jax.tree.leaves(eqx.filter(r.model, eqx.is_array)) for r in (again, result)), strict=True):
        assert np.array_equal(a, b)


def test_a_failure_makes_the_network_grow_and_the_next_one_ends_the_run(tmp_path):
    result = learn(_model(), LEVELS, threshold=1.1, sizes=[8], folder=tmp_path, **OPTIONS)
    assert result.cleared == 0
    assert result.expanded == {0: 8}
    assert result.matrix.shape == (1, 3)
    assert result.model.cell.output_size == 8
    assert {path.name for path in tmp_path.iterdir()} == {"level-01", "level-01-size-8"}  # the small one is kept


def test_anchors_gather():
    objective = EWC(episodes=3)
    for task in LEVELS[:2]:
        objective = objective.after_task(_model(), task, None, key=jax.random.key(0))
    assert len(objective.anchors) == 2


def test_bad_input():
    with pytest.raises(ValueError, match="updates=5 cannot work: wanted at least the 10 of a window"):
        learn(_model(), LEVELS, threshold=0.8, updates=5, window=10)
