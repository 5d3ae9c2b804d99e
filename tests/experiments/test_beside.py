"""Cells that a user puts beside those of a table."""

import json
from pathlib import Path

import pytest

from mnemon._errors import BadValue, UnknownName
from mnemon.cells import is_cell
from mnemon.experiments import get_experiment, reproduce
from mnemon.experiments._beside import with_cells
from mnemon.experiments._contract import Score, Training
from mnemon.experiments._report import write_report
from mnemon.experiments._runner import chosen_runs

OWN = "from mnemon.cells import GRU\n\n\nclass Mine(GRU):\n    pass\n"


def test_a_cell_among_its_baselines(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)
    said: list[str] = []
    where = {"runs": tmp_path / "runs", "results": tmp_path / "results", "report": said.append}
    path = reproduce("th-fig-4.1", "smoke", beside=["mine.py:Mine"], **where)
    assert said == ["th-fig-4.1 smoke: 0 of 1 done", "copying-5-Mine seed 0 done"]  # the baselines are not run again
    mine = json.loads(path.read_text())["arms"]["copying-5-Mine"]
    assert mine["beside"] == "mine.py:Mine"
    assert mine["numbers"] == {}
    assert mine["group"] == "copying-5"
    lstm = get_experiment("th-fig-4.1").presets["smoke"].arms[1].job
    assert isinstance(lstm, Training)
    assert mine["seeds"]["0"]["updates"] == lstm.config.steps
    assert abs(mine["parameters"] / 23_529 - 1) < 0.01  # as many as the LSTM has

    reproduce("th-fig-4.1", "smoke", only=["nru"], **where)  # a command that knows nothing of it
    stored = json.loads(path.read_text())["arms"]
    assert stored["copying-5-Mine"] == mine
    assert stored["copying-5-nru"]["seeds"]
    write_report("th-fig-4.1", tmp_path / "results")
    page = (tmp_path / "results" / "th-fig-4.1" / "smoke.md").read_text()
    assert "| copying-5-Mine | 23" in page
    assert "Runs: 1 of 2" in page  # of the experiment's own


def test_a_cell_that_was_changed_is_another(tmp_path: Path):
    settings = []
    for number in range(2):
        file = tmp_path / f"{number}.py"
        file.write_text(OWN + f"# version {number}\n")
        experiment, (name,) = with_cells(get_experiment("th-fig-4.1"), "smoke", [f"{file}:Mine"], "lstm")
        (arm,) = [arm for arm in experiment.presets["smoke"].arms if arm.name == name]
        settings.append(arm.settings)
    assert settings[0] != settings[1]


def test_what_was_chosen_for_the_other_cell_is_left_out():
    experiment, names = with_cells(get_experiment("dnc-traversal"), "laptop", ["gru", "ntm"], "dnc")
    assert names == ["gru", "ntm"]
    for arm, _ in chosen_runs(experiment, "laptop", 1, names):
        job = arm.job
        assert isinstance(job, Training)
        assert job.config.lesson_options == ()
        assert "memory_slots" not in job.config.cell_options
        assert all(
            score == Score(score.metric, score.options, score.episodes, 50, "%") for score in job.scores.values()
        )
    experiment, names = with_cells(get_experiment("th-table-3.3"), "laptop", ["gru"], "tardis-reinforce")
    assert names == ["ntm-copy-gru", "copy-to-10-gru", "associative-recall-gru", "recall-to-3-gru"]
    for job in (arm.job for arm, _ in chosen_runs(experiment, "laptop", 1, names)):
        assert isinstance(job, Training)
        assert job.config.objective == "supervised"


def test_what_cannot_be_put_there():
    with pytest.raises(BadValue, match=r"like='gru' cannot work: wanted one of nru, lstm, e\.g\. --like nru"):
        reproduce("th-fig-4.1", "smoke", beside=["rnn"], like="gru")
    with pytest.raises(BadValue, match=r"beside='copying-5-nru' cannot work"):
        reproduce("th-fig-4.1", "smoke", beside=["nru"])
    with pytest.raises(BadValue, match=r"beside='copying-5-GRU' cannot work.*each once"):
        reproduce("th-fig-4.1", "smoke", beside=["mnemon.cells:GRU", "mnemon.cells.gru:GRU"])
    with pytest.raises(BadValue, match="lr-window has a table or a figure of its own"):
        reproduce("lr-window", "smoke", beside=["rnn"])
    with pytest.raises(UnknownName, match="unknown cell 'rn'"):
        reproduce("th-fig-4.1", "smoke", beside=["rn"])
    assert not is_cell("rn")
