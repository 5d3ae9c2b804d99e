"""Every experiment: what it says of itself, and its smallest preset from run to picture."""

import dataclasses
import fcntl
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mnemon._errors import BadValue, MnemonError, UnknownName
from mnemon.experiments import EXPERIMENTS, Job, Training, get_experiment, reproduce
from mnemon.experiments._contract import Arm, Experiment, Preset, Score, settings_of
from mnemon.experiments._report import curves_chart, write_report
from mnemon.experiments._results import result_rows, stored_seeds, write_results
from mnemon.experiments._runner import RESULT_FILE, Waiting, _places, chosen_runs, do, job_folder, read_result
from mnemon.experiments.copy_lengths import SharedTraining
from mnemon.experiments.th_fig_4_2 import TracedTraining
from mnemon.training.runs import RunConfig

TARGETS = """fwr-table gfw-table-1 gfw-fig-2 gfw-table-2 th-table-3.1 th-table-3.2 th-table-3.3 th-table-3.4 th-fig-3.3
th-fig-3.5 th-fig-4.1 th-fig-4.2 th-fig-4.3 th-fig-4.4 th-fig-4.5 th-table-4.2 th-table-4.3 th-fig-4.6 th-table-4.1
th-fig-4.7 th-fig-4.8 th-stability th-forgetting nsm-theorem-2 dnc-traversal dnc-shortest-path dnc-inference
babi-joint th-fig-5.1 th-fig-5.2 th-fig-5.3 th-fig-5.4 th-fig-5.5"""


def test_every_target_is_an_experiment():
    assert set(TARGETS.split()) <= set(EXPERIMENTS)
    with pytest.raises(UnknownName, match=r"did you mean 'th-fig-4.1'"):
        get_experiment("th-fig-41")


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
        assert preset.cost is None or preset.cost
        assert preset.note
        for arm in preset.arms:
            assert arm.name.startswith(arm.group)
            if arm.home is not None:  # the run is another experiment's own
                (owner,) = [other for other in EXPERIMENTS[arm.home].presets.values() if arm.job in _jobs(other)]
                assert owner.seeds >= 1


def _jobs(preset: Preset) -> list[Job]:
    return [arm.job for arm in preset.arms]


def _run_smoke(name: str, folder: Path) -> dict:
    """The smoke preset in this process (`reproduce` starts processes, which is slow)."""
    experiment = EXPERIMENTS[name]
    for arm in experiment.presets["smoke"].arms:
        do(Waiting(arm.name, arm.job, 0, job_folder(folder / "runs", experiment.id, "smoke", arm, 0)))
    return json.loads(write_results(experiment, "smoke", folder / "runs", folder / "results").read_text())


@pytest.fixture(scope="module")
def shared_runs(tmp_path_factory) -> Path:
    """Where runs that several experiments show are made once, whichever process of the tests makes them."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "smoke"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.usefixtures("synthetic_data")
@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_the_smoke_preset_runs_and_is_drawn(name, shared_runs):
    content = _run_smoke(name, shared_runs)
    assert content["provenance"]["commit"]
    assert all(arm["seeds"] for arm in content["arms"].values())
    written = write_report(name, shared_runs / "results")
    assert {path.suffix for path in written} == {".md", ".csv", ".svg", ".png", ".pdf"}
    page = (shared_runs / "results" / name / "smoke.md").read_text()
    assert "![curves](smoke.svg)" in page
    assert content["published"] in page
    # A picture of nothing is small.
    assert (shared_runs / "results" / name / "smoke.png").stat().st_size > 8_000


def test_where_a_shared_run_may_be_found_is_no_setting_of_it():
    config = RunConfig("ntm-copy", "gru", {"max_length": 2}, steps=2)
    here, there = (Arm(name, Training(config)) for name in ("a", "b"))
    names = {Arm("x", SharedTraining(config, {}, "table", arm)).settings for arm in (here, there)}
    assert len(names) == 1
    assert Arm("x", SharedTraining(dataclasses.replace(config, lr=0.1), {}, "table", here)).settings not in names


def test_networks_that_another_experiment_trained_are_not_trained_again(tmp_path):
    config = RunConfig("ntm-copy", "gru", {"max_length": 2}, {"hidden_size": 4}, steps=2, batch=2)
    scores = {"wrong bits at 3": Score("bit_error", {"min_length": 3, "max_length": 3}, 4, 4)}
    arm = Arm("ntm-copy-gru", Training(config))
    job = SharedTraining(config, scores, "table", arm)
    there = job_folder(tmp_path, "table", "smoke", arm, 0)
    own = tmp_path / "copy-lengths" / "smoke" / "gru-seed0"
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
    where = {"runs": tmp_path / "runs", "results": tmp_path / "results", "report": said.append}
    path = reproduce("th-fig-3.5", "smoke", **where)
    reproduce("th-fig-3.5", "smoke", only=["urmann"], **where)
    assert said == ["th-fig-3.5 smoke: 3 of 3 done", "th-fig-3.5 smoke: 1 of 1 done"]
    assert path.exists()
    with pytest.raises(BadValue, match="only='nonet' cannot work"):
        reproduce("th-fig-3.5", "smoke", only=["nonet"], **where)
    with pytest.raises(BadValue, match="on='clouds' cannot work"):
        reproduce("th-fig-3.5", "smoke", on="clouds", **where)


def test_runs_that_the_results_have_need_not_be_made_again(tmp_path):
    _run_smoke("th-fig-3.5", tmp_path)
    path = tmp_path / "results" / "th-fig-3.5" / "smoke.json"
    content = json.loads(path.read_text())
    first, second, third = content["arms"].values()
    content["arms"] |= {"tardis": first, "umann": {**second, "settings": "other"}, "urmann": {**third, "seeds": {}}}
    path.write_text(json.dumps(content))
    shutil.rmtree(tmp_path / "runs")
    arms = EXPERIMENTS["th-fig-3.5"].presets["smoke"].arms

    def stored() -> dict[str, list[str]]:
        found = stored_seeds(arms, "th-fig-3.5", "smoke", tmp_path / "results")
        return {name: list(seeds) for name, seeds in found.items()}

    assert stored() == {"tardis": ["0"], "umann": [], "urmann": []}
    said: list[str] = []
    where = {"runs": tmp_path / "runs", "results": tmp_path / "results", "report": said.append}
    reproduce("th-fig-3.5", "smoke", missing=True, **where)
    assert said[0] == "th-fig-3.5 smoke: 1 of 3 done"
    assert sorted(said[1:]) == ["umann seed 0 done", "urmann seed 0 done"]
    assert stored() == {"tardis": ["0"], "umann": ["0"], "urmann": ["0"]}


def test_lent_runs_are_shown_by_those_who_borrow_them(tmp_path):
    """Whoever shows a run has its result, be it only in the results of the experiment that it belongs to."""
    lender, borrower = EXPERIMENTS["th-fig-4.1"], EXPERIMENTS["th-fig-4.4"]
    results, runs = tmp_path / "results", tmp_path / "runs"
    arms = {arm.name: arm for arm in lender.presets["laptop"].arms}
    lent = next(arm for arm in borrower.presets["laptop"].arms if arm.home == lender.id)

    def make(seed: int) -> None:
        folder = job_folder(runs, lender.id, "laptop", arms[lent.name], seed)
        folder.mkdir(parents=True)
        (folder / RESULT_FILE).write_text(json.dumps({"updates": 1, "number": seed}))

    def shown() -> dict[str, int]:
        seeds = json.loads((results / borrower.id / "laptop.json").read_text())["arms"][lent.name]["seeds"]
        return {seed: result["number"] for seed, result in seeds.items()}

    said: list[str] = []
    where = {"only": [lent.name], "missing": True, "runs": runs, "results": results, "report": said.append}
    make(0)
    reproduce(lender.id, "laptop", seeds=1, **where)
    shutil.rmtree(runs)
    reproduce(borrower.id, "laptop", seeds=1, **where)
    assert said[-1] == f"{borrower.id} laptop: 1 of 1 done"
    assert shown() == {"0": 0}
    make(1)
    reproduce(lender.id, "laptop", seeds=2, **where)
    assert said[-1].startswith(f"{borrower.id} shows runs of these too")
    assert shown() == {"0": 0, "1": 1}


def test_arms_are_named_by_their_names_or_by_parts_of_them():
    experiment = get_experiment("gfw-table-1")

    def names(*only: str) -> list[str]:
        return [arm.name for arm, _ in chosen_runs(experiment, "laptop", 1, only)]

    assert names("lstm") == ["lstm"]
    assert names("stm") == ["lstm", "hyper-lstm"]
    assert names("lstm", "fw") == ["attention-fw", "lstm"]


def test_each_process_has_cores_of_its_own(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 1, 0, 2})
    assert _places(1) == [[0, 1, 2, 3]]
    assert _places(2) == [[0, 2], [1, 3]]
    assert _places(5) == [[0], [1], [2], [3], [0]]


def test_a_job_that_another_process_does_is_left_alone_and_what_is_done_is_not_done_again(tmp_path):
    class Once:
        def run(self, seed: int, folder: Path) -> dict:
            del seed
            folder.mkdir()
            return {"made": str(folder)}

    waiting = Waiting("once", Once(), 0, tmp_path / "once-seed0")
    lock = tmp_path / "once-seed0.lock"
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert do(waiting, wait=False) == ""
        assert not waiting.folder.exists()
    assert [do(waiting), do(waiting)] == ["once", "once"]
    result = read_result(waiting.folder) or {}
    assert result["made"] == str(waiting.folder)
    assert set(result["provenance"]) >= {"command", "commit", "machine", "versions"}


_STARTS_A_WORKER = """
import os, signal, time
from mnemon.experiments._runner import _pool
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it begins in the background
    with _pool(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600).result()
"""


def test_workers_end_when_their_command_is_killed(tmp_path):
    script = tmp_path / "command.py"
    script.write_text(_STARTS_A_WORKER)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        worker = int(command.stdout.readline())
        command.kill()
    end = time.monotonic() + 60
    while _lives(worker) and time.monotonic() < end:
        time.sleep(0.1)
    assert not _lives(worker)


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody has asked how it ended


def test_results_stay_when_their_runs_are_gone_and_go_when_their_settings_change(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Told:
        value: int
        new_option: str = "as before"

        def run(self, seed: int, folder: Path) -> dict:
            folder.mkdir(parents=True)
            return {"updates": self.value, "number": self.value + seed}

    def run(value: int, seeds: int) -> dict[str, Any]:
        preset = Preset((Arm("told", Told(value)),), seeds, None, "-")
        experiment = Experiment("told", "-", "-", "-", {"smoke": preset})
        for seed in range(seeds):
            folder = job_folder(tmp_path / "runs", "told", "smoke", preset.arms[0], seed)
            do(Waiting("told", preset.arms[0].job, seed, folder))
        path = write_results(experiment, "smoke", tmp_path / "runs", tmp_path / "results")
        seeds_found = json.loads(path.read_text())["arms"]["told"]["seeds"]
        return {seed: result["number"] for seed, result in seeds_found.items()}

    assert run(5, 2) == {"0": 5, "1": 6}
    shutil.rmtree(tmp_path / "runs")
    assert run(5, 1) == {"0": 5, "1": 6}
    assert run(7, 1) == {"0": 7}
    # An option that did not exist when a run was made does not make it another run.
    assert Arm("told", Told(7)).settings != Arm("told", Told(7, "new")).settings
    assert "new_option" not in str(settings_of(Told(7)))


def test_a_report_says_where_each_run_comes_from(tmp_path):
    content = _run_smoke("th-fig-3.5", tmp_path)
    path = tmp_path / "results" / "th-fig-3.5" / "smoke.json"
    write_report("th-fig-3.5", tmp_path / "results")
    page = tmp_path / "results" / "th-fig-3.5" / "smoke.md"
    assert page.read_text().count("Made by") == 1
    other = content["arms"]["umann"]["seeds"]["0"]["provenance"]
    other |= {"command": "mnemon reproduce th-fig-3.5 --only umann", "date": "2001-01-01"}
    path.write_text(json.dumps(content))
    write_report("th-fig-3.5", tmp_path / "results")
    first, second = [line for line in page.read_text().splitlines() if "Made by" in line]
    assert first.startswith("- umann (0): Made by `mnemon reproduce th-fig-3.5 --only umann`")
    assert second.startswith("- tardis (0), urmann (0): Made by")


def test_a_run_that_diverges_is_a_result(tmp_path):
    config = RunConfig("copying", "rnn", {"delay": 3}, steps=50, batch=2, lr=1e30, clip=None, log_every=1)
    result = Training(config).run(0, tmp_path / "run")
    assert 1 < result["diverged"] < 50
    content = {"arms": {"rnn": {"seeds": {"0": result}, "published": "-"}}}
    assert result_rows(content)[0]["diverged"] == f"at update {result['diverged']}"


def test_the_table_says_which_lesson_a_run_ended_in():
    def result(**last: float) -> dict[str, Any]:
        return {"updates": 9, "last": {"loss": 1.0, **last}}

    taught = {"seeds": {"0": result(lesson=5), "1": result(lesson=7)}, "published": "-"}
    rows = result_rows({"arms": {"dnc": taught, "lstm": {"seeds": {"0": result(lesson=1)}, "published": "-"}}})
    assert [row["in lesson (median, range)"] for row in rows] == ["6 [5, 7]", "1"]
    (row,) = result_rows({"arms": {"lstm": {"seeds": {"0": result()}, "published": "-"}}})
    assert "in lesson (median, range)" not in row


def test_an_error_of_a_job_reaches_other_processes(tmp_path):
    job = Training(RunConfig("char-lm", "rnn", {"text": str(tmp_path / "missing.txt")}, steps=1))
    with pytest.raises(MnemonError) as caught:
        do(Waiting("bad seed 0", job, 0, tmp_path / "bad-seed0"))
    said = str(pickle.loads(pickle.dumps(caught.value)))
    assert said.startswith("bad seed 0: ")
    assert "missing.txt" in said


def test_arms_without_results_are_named_and_not_drawn(tmp_path):
    experiment = EXPERIMENTS["th-fig-3.5"]
    first, *rest = experiment.presets["smoke"].arms
    do(Waiting(first.name, first.job, 0, job_folder(tmp_path / "runs", experiment.id, "smoke", first, 0)))
    write_results(experiment, "smoke", tmp_path / "runs", tmp_path / "results")
    write_report("th-fig-3.5", tmp_path / "results")
    page = (tmp_path / "results" / "th-fig-3.5" / "smoke.md").read_text()
    assert f"Not run: {', '.join(arm.name for arm in rest)}." in page


def _curves(panels: dict[str, list[str]]) -> dict:
    curve = {"step": [1, 2], "loss": [0.5, 0.4]}
    arms = {
        f"{group}-{label}": {"group": group, "seeds": {"0": {"curve": curve}}}
        for group, labels in panels.items()
        for label in labels
    }
    return curves_chart({"source": "s", "arms": arms}).to_dict()


def test_panels_share_a_legend_if_there_are_colours_for_all():
    six, others = [[str(n) for n in range(start, start + 6)] for start in (1, 7)]
    assert _curves({"a": six, "b": six})["resolve"]["scale"]["color"] == "shared"
    apart = _curves({"a": six, "b": others})
    assert apart["resolve"]["scale"]["color"] == "independent"
    # In the order of the arms, which need not be that of the alphabet.
    assert apart["hconcat"][1]["layer"][0]["encoding"]["color"]["sort"] == ["7", "8", "9", "10", "11", "12"]


def test_the_change_of_a_memory_is_measured_by_phase(tmp_path):
    config = RunConfig("copying", "nru", {"delay": 4, "length": 2}, {"hidden_size": 4, "memory_size": 16}, steps=2)
    result = TracedTraining(config, part="memory").run(0, tmp_path)
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
    assert "wrong bits at 3, published" not in rows[0]
    arms["scored"]["numbers"] = {"wrong bits at 3": 1.25}
    rows = result_rows({"arms": arms})
    assert [row["wrong bits at 3, published"] for row in rows] == ["1.25", "–"]


@pytest.mark.usefixtures("synthetic_data")
def test_scores_of_parts_and_units(tmp_path):
    config = RunConfig("babi", "rnn", {}, {"hidden_size": 3}, steps=1, batch=2)
    test = {"split": "test"}
    scores = {
        "mean": Score("error", test, 4, 4, of="parts"),
        "mean %": Score("error", test, 4, 4, unit="%", of="parts"),
        "right %": Score("error", test, 4, 4, unit="% wrong", of="parts"),
        "failed": Score("error", test, 4, 4, of="failed parts"),
    }
    found = Training(config, scores).run(0, tmp_path)["scores"]
    assert found["mean %"] == pytest.approx(100 * found["mean"])
    assert found["right %"] == pytest.approx(100 - found["mean %"])
    assert found["failed"] == 2.0  # the two tasks of the synthetic files, after one update


def _lifelong_result(seed: int) -> dict:
    return {
        "cleared": 1,
        "lengths": [5, 8, 11],
        "current": [0.9, 0.6 + 0.01 * seed],
        "expanded": {"2": [9]},
        "previous_by_level": [None, 0.8],
        "previous": 0.8,
        "future_by_level": [0.6, 0.5],
        "future": 0.5,
        "ACC": 0.7,
        "BWT": -0.1,
        "FWT": 0.05,
        "matrix": [[0.9, 0.6, 0.5], [0.8, 0.6, 0.5]],
        "parameters": {"first": 10, "last": 20},
    }


@pytest.mark.parametrize("name", ["th-fig-5.1", "th-fig-5.2", "th-fig-5.3", "th-fig-5.4", "th-fig-5.5"])
def test_figures_of_the_lifelong_benchmark_are_tabled_and_drawn(name):
    experiment = EXPERIMENTS[name]
    arms = {
        arm.name: {
            "group": arm.group,
            "published": arm.published,
            "seeds": {str(n): _lifelong_result(n) for n in range(2)},
        }
        for arm in experiment.presets["paper"].arms
    }
    assert experiment.table is not None
    assert experiment.draw is not None
    rows = experiment.table({"arms": arms})
    assert len(rows) == 2 * len(arms)
    assert (rows[0]["levels cleared"], rows[0]["grew at level"], rows[0]["BWT"]) == ("1 of 3", "2", "-0.100")
    experiment.draw({"arms": arms}).to_dict()


def test_figures_of_the_lifelong_benchmark_share_their_runs(tmp_path):
    jobs = {arm.name: arm.job for arm in EXPERIMENTS["th-fig-5.2"].presets["laptop"].arms}
    for name in ("th-fig-5.1", "th-fig-5.3", "th-fig-5.4", "th-fig-5.5"):
        for arm in EXPERIMENTS[name].presets["laptop"].arms:
            assert arm.home == "th-fig-5.2"
            assert arm.job == jobs[arm.name]
    experiment = EXPERIMENTS["th-fig-5.5"]
    done = [(arm, seed) for arm in experiment.presets["laptop"].arms for seed in range(arm.seeds or 3)]
    for arm, seed in done:
        own = job_folder(tmp_path / "runs", experiment.id, "laptop", arm, seed)
        own.mkdir(parents=True)
        (own / RESULT_FILE).write_text(json.dumps(_lifelong_result(seed)))
    said: list[str] = []
    reproduce("th-fig-5.5", "laptop", runs=tmp_path / "runs", results=tmp_path / "results", report=said.append)
    assert said == [f"th-fig-5.5 laptop: {len(done)} of {len(done)} done"]


def test_the_cost_of_gem_is_drawn():
    experiment = EXPERIMENTS["gem-cost"]
    row = {"units": 16, "parameters": 2000, "earlier tasks": 3, "plain updates": 3.5, "memory_mb": 0.1}
    content = {"arms": {"lstm-16": {"published": "new", "seeds": {"0": {"rows": [row]}}}}}
    assert experiment.table is not None
    assert experiment.draw is not None
    assert experiment.table(content) == [row]
    experiment.draw(content).to_dict()
