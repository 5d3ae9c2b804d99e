"""Run the grid of an experiment in processes of their own; go on where it was interrupted."""

import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from .._errors import BadValue, require
from .._files import write_atomically
from ._contract import Experiment, Preset
from ._registry import get_experiment
from ._results import write_results

RESULT_FILE = "result.json"


def get_preset(experiment: Experiment, name: str) -> Preset:
    """A preset by name."""
    if name not in experiment.presets:
        wanted = ", ".join(experiment.presets)
        raise BadValue(f"preset={name!r} cannot work: {experiment.id} has {wanted}, e.g. --preset smoke")
    return experiment.presets[name]


def reproduce(
    name: str,
    preset: str,
    *,
    seeds: int | None = None,
    jobs: int = 1,
    runs: Path = Path("runs"),
    results: Path = Path("results"),
    report: Callable[[str], None] = print,
) -> Path:
    """Run what is not done yet, `jobs` at a time, and write the results of all that is done."""
    experiment = get_experiment(name)
    grid = get_preset(experiment, preset)
    count = grid.seeds if seeds is None else seeds
    require(count >= 1, "seeds", count, "at least one seed", "--seeds 3")
    require(jobs >= 1, "jobs", jobs, "at least one process", "--jobs 2")
    folder = runs / (experiment.runs_of or name) / preset
    wanted = [
        (arm.name, seed)
        for seed in range(count)
        for arm in grid.arms
        if arm.seeds is None or seed < arm.seeds or seeds is not None
    ]
    waiting = [(arm, seed) for arm, seed in wanted if not _done(folder, arm, seed)]
    report(f"{name} {preset}: {len(wanted) - len(waiting)} of {len(wanted)} done")
    if waiting:
        _one_thread_each(jobs)
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(_do, name, preset, arm, seed, folder): (arm, seed) for arm, seed in waiting}
            for future in as_completed(futures):
                arm, seed = futures[future]
                future.result()
                report(f"{arm} seed {seed} done")
    return write_results(experiment, preset, count, folder, results)


def job_folder(folder: Path, arm: str, seed: int) -> Path:
    """Where one job works."""
    return folder / f"{arm}-seed{seed}"


def read_result(folder: Path, arm: str, seed: int) -> dict[str, Any] | None:
    """The result of a job, if it is done."""
    path = job_folder(folder, arm, seed) / RESULT_FILE
    return json.loads(path.read_text()) if path.exists() else None


def _done(folder: Path, arm: str, seed: int) -> bool:
    return (job_folder(folder, arm, seed) / RESULT_FILE).exists()


def _do(name: str, preset: str, arm_name: str, seed: int, folder: Path) -> None:
    """One job, in a process of its own."""
    arm = next(arm for arm in get_experiment(name).presets[preset].arms if arm.name == arm_name)
    own = job_folder(folder, arm_name, seed)
    result = arm.job.run(seed, own)
    write_atomically(own / RESULT_FILE, json.dumps(result))


def _one_thread_each(jobs: int) -> None:
    """Several processes on few cores only get in each other's way if each of them uses all cores."""
    if jobs > 1:
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
