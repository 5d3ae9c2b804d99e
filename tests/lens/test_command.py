"""`mnemon lens`: what it prints, what it writes, what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from mnemon.cli import main
from mnemon.lens import Trace, load_trace, save_trace
from mnemon.training.runs import RunConfig, train_run


def _json(capsys, *words: str):
    main(["lens", *words, "--json"])
    return json.loads(capsys.readouterr().out)


def _refusal(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(["lens", *words])
    assert exit_.value.code == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("lens") / "run"
    config = RunConfig("copying", "gru", {"delay": 3, "length": 2}, {"hidden_size": 4}, steps=2, log_every=1)
    train_run(config, folder, report=lambda message: None)
    return str(folder)


def test_jacobian_of_a_cell_and_of_a_run(capsys, run, tmp_path):
    found = _json(capsys, "jacobian", "rnn", "--steps", "5", "--start", "2")
    assert found["distance"] == [3, 2, 1, 0]
    assert found["top"]["hidden"][-1] == pytest.approx(1.0)
    assert len(found["bound"]) == 4
    trained = _json(capsys, "jacobian", run, "--out", str(tmp_path / "flow.svg"))
    assert trained["end"] == 7
    assert "<svg" in (tmp_path / "flow.svg").read_text()
    main(["lens", "jacobian", run])
    assert "steps between" in capsys.readouterr().out


def test_trace_is_written_and_can_be_read(capsys, run):
    found = _json(capsys, "trace", run)
    assert found["state"] == {"hidden": [7, 4]}
    traced = load_trace(Path(found["file"]))
    assert (traced.about["cell"], traced.about["step"]) == ("gru", 2)
    assert traced.about["shown"].startswith("in   ")


def test_paths_simulated_and_of_a_trace(capsys, tmp_path):
    rows = _json(capsys, "paths", "--networks", "tardis", "--slots", "2", "20", "--simulations", "20")
    assert [row["slots"] for row in rows] == [2, 20]
    assert rows[0]["shortest path"] > rows[1]["shortest path"]
    zeros = np.zeros(4, int)
    state = {"read_weights": np.eye(4)[[3, 3, 3, 0]], "write_weights": np.eye(4)}
    path = save_trace(Trace(zeros, zeros, zeros == 0, zeros[:, None], state), tmp_path / "trace.safetensors")
    out = str(tmp_path / "arcs.svg")
    found = _json(capsys, "paths", "--trace", str(path), "--start", "0", "--end", "3", "--out", out)
    assert found == {"sources": [-1, -1, -1, 0], "path": [3, 0], "length": 1}


def test_programs(capsys):
    rows = _json(capsys, "programs", "--steps", "1", "2", "--products", "2", "5", "--samples", "100")
    assert [row["many beat one"] for row in rows] == ["no", "no", "no", "yes"]
    assert rows[0]["they do above"] is None


def test_refusals(capsys, run, tmp_path):
    assert "did you mean 'paths'" in _refusal(capsys, "path")
    assert "did you mean 'rnn'" in _refusal(capsys, "jacobian", "rn")
    assert "is not a run" in _refusal(capsys, "jacobian", str(tmp_path / "none"))
    assert "is not a run" in _refusal(capsys, "trace", str(tmp_path / "none"))
    assert "within the sequence" in _refusal(capsys, "jacobian", run, "--end", "8")
    assert "does not exist" in _refusal(capsys, "paths", "--trace", str(tmp_path / "none"))
    assert "'hidden'" in _refusal(capsys, "jacobian", run, "--parts", "hiden")
