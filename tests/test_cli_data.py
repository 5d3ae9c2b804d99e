"""The command line on tasks that read data, on small synthetic files."""

import json

import pytest

from mnemon.cli import main

pytestmark = pytest.mark.usefixtures("synthetic_data")


def _last(capsys, *words: str):
    main([*words, "--json"])
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_train_sample_and_evaluate_a_language_model(capsys, tmp_path):
    run = str(tmp_path / "run")
    words = ["train", "char-lm", "gru", "--window", "20", "--hidden-size", "8", "--embedding-size", "5"]
    trained = _last(capsys, *words, "--steps", "4", "--log-every", "2", "--batch", "4", "--out", run)
    assert {"loss", "bits", "accuracy"} <= set(trained["metrics"])
    written = _last(capsys, "sample", run, "--length", "12", "--prompt", "It was", "--temperature", "0.5")
    assert len(written["text"]) == 12
    test = _last(capsys, "evaluate", run, "--split", "test", "--batch", "2")
    assert test["task_options"]["split"] == "test"
    other = tmp_path / "other.txt"
    other.write_text("xyz" * 200)
    with pytest.raises(SystemExit):
        main(["evaluate", run, "--text", str(other)])
    assert "input_size=3 cannot work" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["sample", run, "--prompt", "€"])
    assert "'€' is not among" in capsys.readouterr().err


def test_parts_are_scored_apart(capsys, tmp_path):
    run = str(tmp_path / "run")
    _last(capsys, "train", "babi", "rnn", "--hidden-size", "4", "--steps", "1", "--log-every", "1", "--out", run)
    result = _last(capsys, "evaluate", run, "--split", "test", "--batch", "20")
    assert set(result["parts"]) == {"task 1", "task 8"}
    assert result["failed"] == ["task 1", "task 8"]
    main(["evaluate", run, "--split", "test", "--batch", "20"])
    assert "2 of 2 not solved" in " ".join(capsys.readouterr().out.split())


def test_only_language_models_write(capsys, tmp_path):
    run = str(tmp_path / "run")
    _last(capsys, "train", "copying", "rnn", "--hidden-size", "3", "--delay", "2", "--steps", "1", "--out", run)
    with pytest.raises(SystemExit):
        main(["sample", run])
    assert "train char-lm" in capsys.readouterr().err
