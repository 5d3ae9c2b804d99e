"""The grid of an experiment on a small Ray cluster, of which a worker is killed."""

import dataclasses
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mnemon.experiments import Arm, Experiment, Preset, Training, run_experiment
from mnemon.experiments._runner import job_folder
from mnemon.training.runs import RunConfig

COUNT = 30


@dataclasses.dataclass(frozen=True)
class Counting:
    """Counts slowly, remembers where it was, and notes who began it and who ended it."""

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        place, log = folder / "count", folder / "log"
        with log.open("a") as file:
            file.write(f"begin {os.getpid()}\n")
        start = count = int(place.read_text()) if place.exists() else 0
        while count < COUNT:
            time.sleep(0.05)
            count += 1
            place.write_text(str(count))
        with log.open("a") as file:
            file.write(f"end {os.getpid()}\n")
        return {"seed": seed, "count": count, "from": start}


TRAINING = Training(RunConfig("copying", "rnn", {"delay": 2, "length": 2}, {"hidden_size": 3}, steps=20, log_every=10))
EXPERIMENT = Experiment(
    "test",
    "here",
    "that nothing is lost",
    "nowhere",
    {"smoke": Preset((Arm("counting", Counting()), Arm("training", TRAINING)), 1, None, "tiny")},
)


def _kill_a_worker(log: Path) -> None:
    """Wait until a job has counted for a while, then kill its process."""
    place = log.with_name("count")
    while not (place.exists() and int(place.read_text() or 0) >= 5):
        time.sleep(0.02)
    os.kill(int(log.read_text().split()[1]), signal.SIGKILL)


@pytest.mark.filterwarnings("default")  # Ray's own
def test_a_killed_worker_loses_nothing_and_nothing_is_done_twice(tmp_path):
    (counting,) = (arm for arm in EXPERIMENT.presets["smoke"].arms if arm.name == "counting")
    folder = job_folder(tmp_path / "runs", "test", "smoke", counting, 0)
    killer = threading.Thread(target=_kill_a_worker, args=(folder / "log",), daemon=True)
    killer.start()
    said: list[str] = []
    where = {"runs": tmp_path / "runs", "results": tmp_path / "results", "report": said.append}
    path = run_experiment(EXPERIMENT, "smoke", jobs=2, on="ray", **where)
    assert not killer.is_alive()
    assert sorted(said[1:]) == ["counting seed 0 done", "training seed 0 done"]
    arms = json.loads(path.read_text())["arms"]
    (counted,) = arms["counting"]["seeds"].values()
    assert counted["count"] == COUNT
    assert counted["from"] >= 5  # it went on where it was
    log = [line.split() for line in (folder / "log").read_text().splitlines()]
    assert [word for word, _ in log] == ["begin", "begin", "end"]
    assert log[0][1] != log[1][1] == log[2][1]  # another process

    here = TRAINING.run(0, tmp_path / "here")
    assert arms["training"]["seeds"]["0"]["curve"]["loss"] == pytest.approx(here["curve"]["loss"], rel=1e-4)
    run_experiment(EXPERIMENT, "smoke", jobs=2, on="ray", **where)
    assert said[-1] == "test smoke: 2 of 2 done"
