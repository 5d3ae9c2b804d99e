"""What runs cost: from a few seconds of a network, and from runs that are done."""

import dataclasses
import json
from pathlib import Path

import pytest

from mnemon._errors import BadValue, MnemonError
from mnemon.experiments import EXPERIMENTS, Training, _contract, _lifelong, estimate, get_experiment
from mnemon.experiments._contract import Estimated
from mnemon.experiments._estimate import Costs, as_time
from mnemon.experiments._lifelong import Lifelong
from mnemon.experiments._report import write_report
from mnemon.experiments.gem_cost import GemMeasurement
from mnemon.experiments.jacobian_decay import JacobianDecay
from mnemon.lifelong.benchmark import LifelongConfig
from mnemon.report.listings import experiment_rows
from mnemon.training import Diverged, fit
from mnemon.training.runs import RunConfig


def _silent(message: str) -> None:
    """For reports that nobody reads."""


def test_an_estimate_does_each_smoke_once_and_is_listed(tmp_path):
    said: list[str] = []
    path = estimate("lr-window", "smoke", only=["lstm-0.001"], results=tmp_path, report=said.append)
    assert "1 runs" in said[-1]
    assert Costs(tmp_path).of("lr-window", "smoke")[1:] == (1, 2)
    before = json.loads(path.read_text())
    estimate("lr-window", "smoke", results=tmp_path, report=said.append)
    after = json.loads(path.read_text())
    assert len(before) == 1
    assert len(after) == 2
    assert before.items() <= after.items()  # not timed again
    assert all(cost["commit"] and cost["machine"] for cost in after.values())
    cost = Costs(tmp_path).of("lr-window", "smoke")
    assert cost == (sum(about["seconds"] for about in after.values()), 2, 2)
    (listed,) = experiment_rows(tmp_path, ["lr-window"])
    assert [row["id"] for row in experiment_rows(tmp_path)] == list(EXPERIMENTS)
    assert f"smoke: 2 x 1 runs, about {as_time(cost.seconds)} for all" in listed["presets"]
    assert "laptop: 36 x 3 runs, cost not measured" in listed["presets"]
    with pytest.raises(MnemonError, match="holds no results"):  # an estimate is none
        write_report("lr-window", tmp_path)
    with pytest.raises(BadValue, match="only a run tells"):
        estimate("th-fig-3.3", "laptop", results=tmp_path)


def test_networks_that_are_as_fast_are_timed_once(tmp_path, monkeypatch):
    timed: list[str] = []

    def time_updates(self: Training, folder: Path) -> tuple[float, float]:
        timed.append(self.config.cell)
        return 5.0, 0.01

    monkeypatch.setattr(Training, "time_updates", time_updates)
    estimate("lr-window", "laptop", only=["lstm", "gru"], results=tmp_path, report=_silent)
    assert timed == ["lstm", "gru"]  # at six learning rates each
    cost = Costs(tmp_path).of("lr-window", "laptop")
    assert cost.seconds == pytest.approx(2 * 6 * 3 * (5.0 + 6_000 * 0.01))
    assert cost[1:] == (12, 36)
    owner = estimate("gfw-table-1", "laptop", results=tmp_path, report=_silent)
    assert Costs(tmp_path).of("gfw-fig-2", "laptop") == Costs(tmp_path).of("gfw-table-1", "laptop")
    count = len(timed)
    assert estimate("gfw-fig-2", "laptop", results=tmp_path, report=_silent) == owner
    assert len(timed) == count


def test_runs_tell_the_cost_of_others_until_they_are_timed(tmp_path):
    experiment = get_experiment("lr-window")
    arms = {
        arm.name: {"settings": arm.settings, "seeds": {"0": {"seconds": 30.0, "updates": 3_000}}}
        for arm in experiment.presets["laptop"].arms
        if arm.name == "nru-0.001"
    }
    path = tmp_path / "lr-window" / "laptop.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"arms": arms}))
    assert Costs(tmp_path).of("lr-window", "laptop") == (6 * 3 * 60.0, 6, 36)
    arms["nru-0.001"]["settings"] = "other"
    path.write_text(json.dumps({"arms": arms}))
    assert Costs(tmp_path).of("lr-window", "laptop") == (0.0, 0, 36)


@pytest.mark.parametrize("steps", [10**9, 0])
def test_an_update_is_timed_without_making_the_run(tmp_path, monkeypatch, steps):
    monkeypatch.setattr(_contract, "_SECONDS_TO_TIME", 0.0)
    config = RunConfig("copying", "gru", {"delay": 2}, {"hidden_size": 4}, steps=steps, batch=2)
    to_begin, an_update = Training(config).time_updates(tmp_path / "run")
    assert to_begin > 0  # to compile it is no part of an update, of a network that stays untrained neither
    assert 1e-6 < an_update < 1


def test_levels_are_timed_with_all_levels_before_them_in_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_contract, "_SECONDS_TO_TIME", 0.0)
    options: dict = {"cell_options": {"hidden_size": 4}, "levels": 3, "updates": 1000, "batch": 2}
    job = Lifelong(LifelongConfig.enter("copy", "small-lstm-gem", **options))
    levels: list[tuple[int, int]] = []

    def watched(model, task, *, objective, **others):
        levels.append((task.max_length, objective.memory.tasks))
        return fit(model, task, objective=objective, **others)

    monkeypatch.setattr(_lifelong, "fit", watched)
    to_begin, an_update = job.time_updates(tmp_path)
    assert levels == [(5, 0), (8, 1), (11, 2)]  # rows, and tasks in the memory
    assert job.updates == 3000
    assert to_begin > 0
    assert 1e-6 < an_update < 1
    # By Simpson's rule, which is exact for what grows with the square of the level.
    monkeypatch.setattr(Lifelong, "_time_level", lambda self, level: (1.0, float(level**2)))
    assert job.time_updates(tmp_path) == (3.0, pytest.approx((1 + 4 * 4 + 9) / 6))


def test_a_measurement_of_gem_is_timed_by_one_of_its_parts(tmp_path, monkeypatch):
    measured: list[tuple] = []
    monkeypatch.setattr("mnemon.bench._gem.gem_rows", lambda units, tasks, seconds: measured.append((units, tasks)))
    job = GemMeasurement(16, (1, 3, 7), 0.1)
    job.time_updates(tmp_path)
    assert measured == [([16], (3,))]
    assert job.updates == 3


def test_jacobians_count_as_a_part_of_what_a_network_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(_contract, "_SECONDS_TO_TIME", 0.0)
    untrained = JacobianDecay(RunConfig("copying", "rnn", {"delay": 2}, {"hidden_size": 4}, steps=0))
    longer = dataclasses.replace(untrained, config=dataclasses.replace(untrained.config, steps=10**6))
    assert untrained.pace() == longer.pace() != Training(longer.config).pace()
    assert isinstance(untrained, Estimated)
    to_begin, an_update = longer.time_updates(tmp_path)
    training, _ = Training(longer.config).time_updates(tmp_path / "training")
    assert to_begin > training
    assert 1e-6 < an_update < 1


def test_a_network_that_diverges_is_left_out_of_an_estimate(tmp_path, monkeypatch):
    def time_updates(self: Training, folder: Path) -> tuple[float, float]:
        if self.config.cell == "gru":
            raise Diverged(3, None)
        return 5.0, 0.01

    monkeypatch.setattr(Training, "time_updates", time_updates)
    said: list[str] = []
    estimate("lr-window", "laptop", seeds=1, only=["gru-0.001", "lstm-0.001"], results=tmp_path, report=said.append)
    assert "gru-0.001: diverges at update 3" in said
    assert said[-1] == "lr-window laptop: 2 runs, 65 s in all one after another; 1 arms not estimated"
    assert Costs(tmp_path).of("lr-window", "laptop").known == 6  # the LSTM at all rates
