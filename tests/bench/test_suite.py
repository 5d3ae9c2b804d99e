"""The suite: what is measured, kept and written."""

import json
from pathlib import Path

import pytest

from mnemon._errors import MnemonError
from mnemon.bench import _suite


def test_parts_are_measured_and_the_rest_is_kept(tmp_path: Path, monkeypatch):
    def fast(seconds: float):
        return [_suite._row("theirs", "us a step", 2.0, 2.0 * 8, 8.0, "at least 8", True)]

    def slow(seconds: float):
        return [_suite._row("theirs", "us a step", 2.0, 2.0 * seconds, seconds, "at least 8", False)]

    monkeypatch.setattr(_suite, "SUITE", {"fast": fast, "slow": slow})
    assert [row["comparison"] for row in _suite.run_suite(2.0, tmp_path)] == ["fast", "slow"]
    (again,) = _suite.run_suite(3.0, tmp_path, only=("slow",))
    assert again["ratio"] == 3.0
    stored = json.loads((tmp_path / "bench" / "suite.json").read_text())
    assert [about["rows"][0]["ratio"] for about in stored.values()] == [8.0, 3.0]
    table = (tmp_path / "bench" / "suite.md").read_text()
    assert "| slow | theirs | us a step | 2.0 | 6.0 | 3.0 | at least 8 | **no** |" in table
    with pytest.raises(MnemonError, match="unknown comparison 'slwo': did you mean 'slow'"):
        _suite.run_suite(1.0, tmp_path, only=("slwo",))


def test_the_memory_of_long_sequences():
    """The one row of the suite that does not depend on the machine."""
    (row,) = _suite.SUITE["lstm-memory-over-time"](0.0)
    assert row["reached"]
    assert row["ratio"] < 5
