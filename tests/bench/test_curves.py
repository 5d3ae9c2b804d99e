"""Cost curves: which are measured, what is fitted, what is written."""

import json
from pathlib import Path

import pytest

from mnemon._errors import MnemonError
from mnemon.bench._curves import cost_curves, exponent


def test_the_exponent_is_that_of_the_upper_half():
    sizes = [1, 2, 4, 8, 16, 32]
    assert exponent(sizes, [5.0, 5.0, 5.0, *(3.0 * size**1.5 for size in sizes[3:])]) == pytest.approx(1.5)


def test_curves_are_measured_over_the_sizes_that_a_cell_has(tmp_path: Path):
    points = {"time": (2, 4, 8), "memory_slots": (4, 5, 6)}
    rows = cost_curves(["rnn"], ["time", "memory_slots"], 0.001, tmp_path, points)
    assert [(row["cell"], row["over"], row["values"]) for row in rows] == [("rnn", "time", [2, 4, 8])]
    rows = cost_curves(["dnc"], ["memory_slots", "programs"], 0.001, tmp_path, points)
    assert [(row["cell"], row["over"], row["values"]) for row in rows] == [("dnc", "memory_slots", [4, 5, 6])]
    assert rows[0]["expected memory"] == 2
    assert all(min(row["update_ms"]) > 0 and min(row["memory_mb"]) > 0 for row in rows)
    stored = json.loads((tmp_path / "bench" / "curves.json").read_text())
    assert list(stored) == ["rnn over time", "dnc over memory_slots"]  # what was measured before stays
    assert stored["dnc over memory_slots"]["curve"] == rows[0]
    assert {"commit", "machine"} <= set(stored["dnc over memory_slots"]["provenance"])
    assert "memory exponent" in (tmp_path / "bench" / "curves.md").read_text()
    assert "ms an update" in (tmp_path / "bench" / "curves.svg").read_text()


def test_an_unknown_axis_is_refused(tmp_path: Path):
    with pytest.raises(MnemonError, match="unknown axis 'slots'"):
        cost_curves(["ntm"], ["slots"], 0.001, tmp_path)
    assert not list(tmp_path.iterdir())
