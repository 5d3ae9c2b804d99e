"""Levels one after the other: passed, failed, grown at, interrupted and gone on with."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from mnemon import Copying, make_model
from mnemon.lifelong import EWC, GEM, Anchor, Watch, largest_difference, learn, widen

LEVELS = [Copying(delay=delay, symbols=3, length=2) for delay in (1, 2)]
OPTIONS: dict[str, Any] = {"updates": 20, "window": 10, "episodes": 20}
QUIET = Watch(report=lambda message: None)


def _model():
    return make_model(LEVELS[0], "gru", hidden_size=5, key=jax.random.key(0))


def _second_level_needs_growth(task, record) -> float:
    """Level 2 fails after its first 20 updates and passes after the 40 that follow growing."""
    return -1.0 if task == LEVELS[1] and record.get("step") == 20 else record["accuracy"]


def _learn(folder, watch=QUIET):
    options = {**OPTIONS, "accuracy": _second_level_needs_growth, "sizes": [8], "save_seconds": 0.0}
    return learn(_model(), LEVELS, threshold=0.0, objective=GEM(), folder=folder, watch=watch, **options)


class _Stop(Exception):
    pass


def test_a_run_that_grows_and_is_interrupted_in_the_middle_of_a_level(tmp_path):
    seen = []
    whole = _learn(
        tmp_path / "whole", Watch(QUIET.report, lambda level, model, count: seen.append((level, count, model)))
    )
    # Passed, failed, grown: the failure costs one size and twice the updates.
    assert [(level, count, model.cell.output_size) for level, count, model in seen] == [
        (1, 20, 5),
        (2, 20, 5),
        (2, 40, 8),
    ]
    assert whole.cleared == 2
    assert whole.expanded == {2: [8]}
    assert [[attempt.accuracy >= 0.0 for attempt in level.attempts] for level in whole.levels] == [
        [True],
        [False, True],
    ]
    assert whole.matrix.shape == (2, 2)
    assert len(whole.untrained) == 2
    # The network before it grew is still there, and the grown one began with its outputs.
    assert any((tmp_path / "whole" / "level-02-size-5" / "checkpoints").iterdir())
    episodes = LEVELS[1].batch(jax.random.key(3), 0, 4)
    learned = learn(
        _model(),
        LEVELS,
        threshold=0.0,
        accuracy=_second_level_needs_growth,
        objective=GEM(),
        folder=tmp_path / "whole",
        watch=QUIET,
        **OPTIONS,
    )  # without a size to grow to, the same folder ends with the failed small network
    assert not learned.levels[-1].passed
    assert largest_difference(learned.model, seen[-1][2], episodes) < 1e-5
    # Interrupted after half of the updates of the grown network.
    records = []

    def stop(record):
        records.append(record["step"])
        if records.count(20) == 3:
            raise _Stop

    with pytest.raises(_Stop):
        _learn(tmp_path / "cut", Watch(QUIET.report, on_record=stop))
    assert records == [10, 20, 10, 20, 10, 20]
    again = []
    resumed = _learn(tmp_path / "cut", Watch(QUIET.report, on_record=lambda record: again.append(record["step"])))
    assert again[0] in (10, 20)  # from the middle of the level, where the last checkpoint was
    assert again[-1] == 40
    assert len(again) < len(records)
    assert resumed.levels == whole.levels
    assert resumed.untrained == whole.untrained
    leaves = [jax.tree.leaves(eqx.filter(result.model, eqx.is_array)) for result in (resumed, whole)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


def test_a_failure_that_nothing_cures_ends_the_run():
    result = learn(_model(), LEVELS, threshold=1.1, watch=QUIET, **OPTIONS)
    assert result.cleared == 0
    assert result.matrix.shape == (1, 2)


def test_anchors_gather_and_grow():
    objective, model = EWC(episodes=3), _model()
    for task in LEVELS:
        objective = objective.after_task(model, task, None, key=jax.random.key(0))
    assert len(objective.anchors) == 2
    moved = eqx.tree_at(lambda m: m.readout_bias, model, model.readout_bias + 0.5)
    wide, widening = widen(moved, 8, key=jax.random.key(1))
    grown = objective.after_growth(moved, wide, widening)
    for small, large in zip(objective.anchors, grown.anchors, strict=True):
        held, wider = (eqx.filter(m, eqx.is_array) for m in (moved, wide))
        assert isinstance(small, Anchor)
        np.testing.assert_allclose(large.distance(wider), small.distance(held), rtol=1e-3)
        assert float(small.distance(held)) > 0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"updates": 25}, "updates=25 cannot work: wanted whole windows of 10 updates"),
        ({"sizes": [4]}, "hidden_size=4 cannot work: wanted more than the 5 units of now"),
        ({"sizes": [8, 8]}, "wanted more than the 8 units of now"),
    ],
)
def test_bad_input_is_refused_before_training(change, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        learn(_model(), LEVELS, threshold=0.8, folder=tmp_path, **{**OPTIONS, **change})
    assert not list(tmp_path.iterdir())


def test_a_cell_that_cannot_be_widened_is_refused():
    model = make_model(LEVELS[0], "ntm", hidden_size=4, memory_slots=3, word_size=2, key=jax.random.key(0))
    with pytest.raises(ValueError, match="wanted a cell that can be widened"):
        learn(model, LEVELS, threshold=0.8, sizes=[8], **OPTIONS)
