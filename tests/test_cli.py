"""The command line: what it prints, what it writes, what it refuses."""

import json
import math
import re
from pathlib import Path

import pytest
from rich.console import Console

from mnemon.cells import CELLS
from mnemon.cli import COMMANDS, _output, main
from mnemon.tasks import TASKS

QUICK = ["--delay", "3", "--length", "2", "--hidden-size", "6", "--log-every", "10"]


def _json(capsys, *words: str):
    main([*words, "--json"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def _refusal(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(list(words))
    assert exit_.value.code == 2
    # messages may be folded in a box
    return re.sub(r"[│╭╮╰╯─\s]+", " ", capsys.readouterr().err)


def test_cells_and_tasks_are_listed(capsys):
    (cells,) = _json(capsys, "cells")
    assert [row["name"] for row in cells] == list(CELLS)
    assert list(cells[0])[:6] == ["name", "family", "paper", "state", "parameters", "file"]
    assert {row["name"]: row["parameters"] for row in cells}["nru"] == 23_569
    (tasks,) = _json(capsys, "tasks")
    assert [row["name"] for row in tasks] == list(TASKS)
    assert list(tasks[0])[:4] == ["name", "measures", "chance", "perfect"]
    lstm = next(row for row in cells if row["name"] == "lstm")
    assert lstm["time-varying"] == 140
    assert lstm["time-varying per parameter"] == 140 / lstm["parameters"]
    main(["cells"])
    assert "nru" in capsys.readouterr().out


def test_episodes_of_a_task_are_shown(capsys):
    (shown,) = _json(capsys, "tasks", "copying", "--delay", "3", "--length", "2", "--episodes", "2", "--seed", "1")
    first, second = shown["episodes"]
    assert first != second
    assert first.startswith("in ")
    assert shown["chance"]["loss"] == pytest.approx(2 * math.log(8) / (3 + 2 * 2))
    main(["tasks", "copying", "--delay", "3", "--length", "2", "--episodes", "2", "--seed", "1"])
    printed = capsys.readouterr().out
    assert first in printed
    assert "without a memory" in printed
    assert "copying" in _refusal(capsys, "tasks", "coping")
    assert "--episodes 3" in _refusal(capsys, "tasks", "copying", "--episodes", "0")


def test_train_evaluate_and_report(capsys, tmp_path: Path):
    run = str(tmp_path / "run")
    *records, last = _json(capsys, "train", "copying", "gru", *QUICK, "--steps", "20", "--seed", "1", "--out", run)
    assert [record["step"] for record in records] == [10, 20]
    wanted = {"step", "loss", "metrics", "baseline", "parameters", "seconds", "steps_per_second", "out"}
    assert wanted <= set(last)
    assert last["step"] == 20
    assert last["out"] == run

    (here,) = _json(capsys, "evaluate", run, "--episodes", "20")
    (longer,) = _json(capsys, "evaluate", run, "--episodes", "20", "--delay", "9")
    assert here["baseline"] > longer["baseline"]
    assert here["step"] == 20

    page = tmp_path / "page.html"
    _json(capsys, "report", run, "--out", str(page))
    text = page.read_text()
    assert "Learning curves" in text
    assert not re.search(r"""(src|href)=["']?https?:""", text)


@pytest.mark.parametrize(
    ("task", "trained", "longer"),
    [
        ("ntm-copy", ["--max-length", "2"], ["--min-length", "5", "--max-length", "5"]),
        ("associative-recall", ["--max-items", "2"], ["--max-items", "4"]),
    ],
)
def test_runs_are_evaluated_at_other_lengths(capsys, tmp_path: Path, task, trained, longer):
    run = str(tmp_path / "run")
    _json(capsys, "train", task, "gru", *trained, "--hidden-size", "6", "--steps", "2", "--out", run)
    (scores,) = _json(capsys, "evaluate", run, "--episodes", "10", *longer)
    assert 0 < scores["metrics"]["bit_error"] < 60
    assert scores["views"] == {}


def test_tardis_is_trained_by_its_own_objective_and_evaluated_from_its_memory_alone(capsys, tmp_path: Path):
    run = str(tmp_path / "run")
    sizes = ["--hidden-size", "5", "--word-size", "3", "--memory-slots", "3", "--delay", "2", "--length", "1"]
    words = ["train", "copying", "tardis-reinforce", *sizes, "--steps", "3", "--log-every", "3", "--out", run]
    record, *_ = _json(capsys, *words, "--schedule", "gate_temperature=linear(1, 0.3, 3)")
    assert "auxiliary_loss" in record
    (scores,) = _json(capsys, "evaluate", run, "--episodes", "10")
    alone = scores["views"]["from memory"]
    assert set(alone) == set(scores["metrics"])
    assert alone["loss"] != scores["loss"]


def test_synthetic_gradients_are_an_option(capsys, tmp_path: Path):
    words = ["train", "copying", "gru", *QUICK, "--steps", "10", "--out", str(tmp_path / "run")]
    record, *_ = _json(capsys, *words, "--objective", "synthetic-gradients", "--truncate", "2")
    assert record["synthetic_error"] > 0


def test_resuming_and_refusing_to_mix_runs(capsys, tmp_path: Path):
    run = str(tmp_path / "run")
    words = ["train", "copying", "gru", *QUICK, "--out", run]
    _json(capsys, *words, "--steps", "10")
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert "holds a run already" in _refusal(capsys, *words, "--steps", "20")
    assert "holds another run (lr 0.001 not 0.01)" in _refusal(
        capsys, *words, "--steps", "20", "--lr", "0.01", "--resume"
    )
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before
    assert _json(capsys, *words, "--steps", "20", "--resume")[-1]["step"] == 20
    assert _json(capsys, *words, "--steps", "10", "--lr", "0.01", "--overwrite")[-1]["step"] == 10
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    assert "is not a run" in _refusal(capsys, "train", "copying", "gru", "--out", str(tmp_path / "mine"), "--overwrite")
    assert (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "copyng", "gru"], "unknown task 'copyng': did you mean 'copying'"),
        (["train", "copying", "gruu"], "unknown cell 'gruu': did you mean 'gru'"),
        (["train", "copying", "gru", "--hiden-size", "3"], "--hidden-size"),
        (["train", "copying", "nru", "--heads", "3"], "to be a square, e.g. memory_size=75 with heads=3"),
        (["train", "copying", "gru", "--delay", "0"], "delay=0 cannot work: wanted at least one step, e.g. delay=100"),
        (["train", "copying", "gru", "--budget", "10"], "the smallest gru"),
        (["train", "copying", "gru", "--steps", "-5"], "steps=-5 cannot work"),
        (["train", "copying", "gru", "--optimizer", "adom"], "did you mean 'adam'"),
        (["train", "copying", "gru", "--objective", "synthetic"], "did you mean 'synthetic-gradients'"),
        (["train", "copying", "gru", "--truncate", "0"], "truncate=0 cannot work"),
        (["train", "copying", "gru", "--schedule", "temperature=constant(1)"], "unknown fixed array 'temperature'"),
        (["trian"], "unknown command 'trian': did you mean 'train'"),
        (["evaluate", "nowhere"], "nowhere is not a run"),
        (["report", "nowhere"], "nowhere is not a run"),
        (["bench", "lsmt"], "unknown cell 'lsmt': did you mean 'lstm'"),
        (["reproduce", "th-fig-4.11"], "unknown experiment 'th-fig-4.11': did you mean 'th-fig-4.1'"),
        (["reproduce", "th-fig-4.1", "--preset", "huge"], "has smoke, laptop, paper"),
    ],
)
def test_bad_input_is_explained_and_nothing_is_written(capsys, tmp_path: Path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert message in _refusal(capsys, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_budget_sets_the_size(capsys, tmp_path: Path):
    words = ["train", "copying", "lstm", "--budget", "23500", "--steps", "0", "--out", str(tmp_path / "run")]
    assert _json(capsys, *words)[-1]["parameters"] == 23_529


def test_help_shows_the_options_of_task_and_cell(capsys):
    with pytest.raises(SystemExit):
        main(["train", "copying", "nru", "--help"])
    text = capsys.readouterr().out
    assert "--delay" in text
    assert "--memory-size" in text
    assert "k * m must be a square" in re.sub(r"[│\s]+", " ", text)
    main(["--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)


def test_bench_measures_and_compares(capsys):
    """A ratio that is a number, not a word, says that the rival's results were equal to ours."""
    words = ["bench", "lstm", "gru", "nru", "--sizes", "small", "--seconds", "0.05"]
    (rows,) = _json(capsys, *words, "--against", "torch", "equinox", "flax")
    assert [(row["cell"], row["by"]) for row in rows] == [
        ("lstm", "mnemon"),
        ("lstm", "torch.nn.LSTM"),
        ("lstm", "PyTorch loop"),
        ("lstm", "eqx.nn.LSTMCell"),
        ("lstm", "flax LSTM"),
        ("gru", "mnemon"),
        ("gru", "torch.nn.GRU"),
        ("gru", "PyTorch loop"),
        ("gru", "eqx.nn.GRUCell"),
        ("gru", "flax GRU"),
        ("nru", "mnemon"),
        ("nru", "PyTorch loop"),
    ]
    assert all(isinstance(row["speedup"], float) for row in rows)
    assert all(row["checked"] for row in rows if row["by"] != "mnemon")
    assert all(row["update_us"] > 0 and row["share_of_product_rate"] > 0 for row in rows)


def test_reproduce_runs_resumes_and_reports(capsys, tmp_path: Path):
    where = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    (done,) = _json(capsys, "reproduce", "th-fig-4.1", "--preset", "smoke", *where)
    content = json.loads(Path(done["results"]).read_text())
    assert {"command", "commit", "machine", "versions", "date"} <= set(content["provenance"])
    assert content["arms"]["copying-5-nru"]["seeds"]["0"]["updates"] == 40
    _json(capsys, "reproduce", "th-fig-4.1", "--preset", "smoke", *where)
    main(["report", "th-fig-4.1", "--results", str(tmp_path / "results")])
    files = capsys.readouterr().out.split()
    assert {Path(file).suffix for file in files} == {".svg", ".png", ".pdf", ".md", ".csv"}
    assert "solved by about 25k updates" in (tmp_path / "results" / "th-fig-4.1" / "smoke.md").read_text()


def test_rows_that_do_not_fit_are_printed_field_by_field(capsys, monkeypatch):
    monkeypatch.setattr(_output, "OUT", Console(width=60))
    rows = [{"id": "first", "says": "[a] " + 60 * "long "}, {"id": "second", "says": "short", "number": 1234}]
    _output.print_table(rows, False, "Things")
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == ["Things", "first"]
    assert lines[2].startswith("says    [a] long long")
    assert lines[-3:] == ["second", "says    short", "number  1,234"]
    _output.print_table([{f"heading{n}": n for n in range(5)}], False, "Five fit")
    assert "heading4" in capsys.readouterr().out.splitlines()[2]
    _output.print_table([{f"heading{n}": n for n in range(6)}], False, "Six do not")
    assert capsys.readouterr().out.splitlines()[2].split() == ["heading1", "1"]
