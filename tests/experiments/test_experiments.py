"""Every experiment: what it says of itself; the cheap ones from run to picture."""

import json
from pathlib import Path

import pytest

from mnemon.experiments import EXPERIMENTS, Job, Training, reproduce
from mnemon.experiments._contract import Arm, Experiment, Preset, Score
from mnemon.experiments._report import write_report
from mnemon.experiments._results import result_rows, write_results
from mnemon.experiments._runner import RESULT_FILE, job_folder
from mnemon.experiments.copy_lengths import SharedTraining
from mnemon.experiments.th_fig_4_2 import TracedTraining
from mnemon.training.runs import RunConfig

SIMULATED = ["th-fig-3.3", "th-fig-3.5", "nsm-theorem-2"]


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_experiment_says_what_it_is_and_has_three_presets(name):
    experiment = EXPERIMENTS[name]
    assert experiment.source
    assert experiment.shows
    assert experiment.published
    assert list(experiment.presets) == ["smoke", "laptop", "paper"]
    for preset in experiment.presets.values():
        names = [arm.name for arm in preset.arms]
        assert len(set(names)) == len(names) > 0
        assert preset.seeds >= 1
        assert preset.cost
        assert preset.note


def _run_smoke(name: str, folder: Path) -> dict:
    """The smoke preset in this process (`reproduce` starts processes, which is slow)."""
    experiment = EXPERIMENTS[name]
    for arm in experiment.presets["smoke"].arms:
        own = job_folder(folder / "runs", arm.name, 0)
        result = arm.job.run(0, own)
        own.mkdir(parents=True, exist_ok=True)
        (own / RESULT_FILE).write_text(json.dumps(result))
    return json.loads(write_results(experiment, "smoke", 1, folder / "runs", folder / "results").read_text())


@pytest.mark.parametrize("name", SIMULATED)
def test_simulations_run_and_are_drawn(name, tmp_path):
    content = _run_smoke(name, tmp_path)
    assert content["provenance"]["commit"]
    written = write_report(name, tmp_path / "results")
    assert {path.suffix for path in written} == {".md", ".csv", ".svg", ".png", ".pdf"}
    page = (tmp_path / "results" / name / "smoke.md").read_text()
    assert "![curves](smoke.svg)" in page
    assert content["published"] in page


def test_networks_that_another_experiment_trained_are_not_trained_again(tmp_path):
    config = RunConfig("ntm-copy", "gru", {"max_length": 2}, {"hidden_size": 4}, steps=2, batch=2)
    scores = {"wrong bits at 3": Score("bit_error", {"min_length": 3, "max_length": 3}, 4, 4)}
    job = SharedTraining(config, scores, "table", "ntm-copy-gru")
    there = job_folder(tmp_path / "table" / "smoke", "ntm-copy-gru", 0)
    own = job_folder(tmp_path / "copy-lengths" / "smoke", "gru", 0)
    first = Training(config).run(0, there)
    (there / RESULT_FILE).write_text(json.dumps(first))
    shared = job.run(0, own)
    assert not own.exists()
    assert shared["curve"] == first["curve"]
    (there / RESULT_FILE).unlink()  # not finished there: trained here
    assert job.run(0, own)["scores"] == shared["scores"]
    assert own.exists()


def test_results_of_done_jobs_are_not_made_again(tmp_path):
    _run_smoke("th-fig-3.5", tmp_path)
    said: list[str] = []
    runs = tmp_path / "again"
    (runs / "th-fig-3.5").mkdir(parents=True)
    (tmp_path / "runs").rename(runs / "th-fig-3.5" / "smoke")
    path = reproduce("th-fig-3.5", "smoke", runs=runs, results=tmp_path / "results", report=said.append)
    assert said == ["th-fig-3.5 smoke: 3 of 3 done"]
    assert path.exists()


def test_the_change_of_a_memory_is_measured_by_phase(tmp_path):
    config = RunConfig("copying", "nru", {"delay": 4, "length": 2}, {"hidden_size": 4, "memory_size": 16}, steps=2)
    result = TracedTraining(config, "memory").run(0, tmp_path)
    assert len(result["moved"]) == 8
    assert list(result["mean_moved"]) == ["while reading", "while waiting", "from the marker on"]
    experiment = EXPERIMENTS["th-fig-4.2"]
    content = {"arms": {"nru": {"published": "p", "seeds": {"0": result}}}}
    assert experiment.table is not None
    assert experiment.draw is not None
    assert experiment.table(content)[0]["solved"] == "no"
    experiment.draw(content).to_dict()
    assert (tmp_path / "trace.safetensors").exists()


def test_jacobian_decay_is_tabled_and_drawn():
    experiment = EXPERIMENTS["jacobian-decay"]
    result = {"solved": False, "eta": 1.5, "distance": [2, 1, 0], "top": {"hidden": [0.2, 0.5, 1.0]}}
    content = {"arms": {f"lstm-chrono-{n}": {"published": "new", "seeds": {"0": result}} for n in (0, 20)}}
    assert experiment.table is not None
    assert experiment.draw is not None
    rows = experiment.table(content)
    assert [(row["cell"], row["updates"], row["over 2 steps"]) for row in rows] == [
        ("lstm-chrono", 0, "0.2"),
        ("lstm-chrono", 20, "0.2"),
    ]
    experiment.draw(content).to_dict()


def test_the_protocol_fits_trainings_and_simulations():
    jobs: list[Job] = [arm.job for e in EXPERIMENTS.values() for p in e.presets.values() for arm in p.arms]
    assert any(isinstance(job, Training) for job in jobs)
    assert not all(isinstance(job, Training) for job in jobs)
    assert Experiment("x", "s", "w", "p", {"smoke": Preset((Arm("a", jobs[0]),), 1, "c", "n")}).draw is None


def test_scores_after_training_are_in_the_table(tmp_path):
    config = RunConfig("ntm-copy", "rnn", {"max_length": 1, "bits": 2}, {"hidden_size": 3}, steps=2)
    longer = Score("bit_error", {"min_length": 3, "max_length": 3}, episodes=40, batch=20)
    training = Training(config, {"wrong bits at 3": longer})
    result = json.loads(json.dumps(training.run(0, tmp_path)))
    assert 0.0 < result["scores"]["wrong bits at 3"] <= 6.0
    plain = {"seeds": {"0": {**result, "scores": {}}}, "published": "-"}
    arms = {"scored": {"seeds": {"0": result}, "published": "-"}, "plain": plain}
    rows = result_rows({"arms": arms})
    assert float(rows[0]["wrong bits at 3"]) == pytest.approx(result["scores"]["wrong bits at 3"], rel=1e-3)
    assert rows[1]["wrong bits at 3"] == "–"
