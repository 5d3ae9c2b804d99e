"""Run the grid of an experiment in processes of their own or on a Ray cluster; go on where it was interrupted."""

import contextlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from .._cores import keep_memory, use_cores
from .._errors import BadValue, MnemonError, require
from .._files import write_atomically
from .._provenance import commit, provenance
from ..training import Interrupted
from ._beside import with_cells
from ._contract import Arm, Experiment, Job, Preset
from ._registry import EXPERIMENTS, get_experiment
from ._results import stored_seeds, write_results

RESULT_FILE = "result.json"
_TO_SAVE = 5.0  # seconds that a run has to save its state


class Waiting(NamedTuple):
    """A job that is not done."""

    name: str  # for people
    job: Job
    seed: int
    folder: Path


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
    only: Sequence[str] = (),
    on: str = "processes",
    missing: bool = False,
    beside: Sequence[str] = (),
    like: str = "lstm",
    runs: Path = Path("runs"),
    results: Path = Path("results"),
    report: Callable[[str], None] = print,
) -> Path:
    """Run what is not done yet, `jobs` at a time, and write the results of all that is done.

    `only` names arms, by their names or by parts of them. With `missing`, runs that the results have, made elsewhere
    with the same settings, count as done. `on` is `processes` of this machine, `ray` for a cluster that is started
    here (or that of `RAY_ADDRESS`), or `ray://address`; the nodes of a cluster must see the folder of the runs under
    the same path.

    `beside` are cells, of mnemon or of your own, that are put among those of the experiment, each trained as the
    network `like` is, with as many parameters; then these alone are run, unless `only` says otherwise.
    """
    experiment = get_experiment(name)
    if beside:
        get_preset(experiment, preset)
        experiment, added = with_cells(experiment, preset, beside, like)
        only = only or added
    return run_experiment(
        experiment,
        preset,
        seeds=seeds,
        jobs=jobs,
        only=only,
        on=on,
        missing=missing,
        runs=runs,
        results=results,
        report=report,
    )


def run_experiment(
    experiment: Experiment,
    preset: str,
    *,
    seeds: int | None = None,
    jobs: int = 1,
    only: Sequence[str] = (),
    on: str = "processes",
    missing: bool = False,
    runs: Path,
    results: Path,
    report: Callable[[str], None] = print,
) -> Path:
    """[`reproduce`][mnemon.experiments.reproduce] for an experiment that need not be registered."""
    require(jobs >= 1, "jobs", jobs, "at least one process", "--jobs 2")
    require(on == "processes" or on == "ray" or on.startswith("ray://"), "on", on, "processes or Ray", "--on ray")
    found = [
        (arm, seed, job_folder(runs, experiment.id, preset, arm, seed))
        for arm, seed in chosen_runs(experiment, preset, seeds, only)
    ]
    arms = get_preset(experiment, preset).arms
    stored = stored_seeds(arms, experiment.id, preset, results) if missing else {}
    waiting = [
        Waiting(f"{arm.name} seed {seed}", arm.job, seed, folder.absolute())
        for arm, seed, folder in found
        if not (folder / RESULT_FILE).exists() and str(seed) not in stored.get(arm.name, {})
    ]
    report(f"{experiment.id} {preset}: {len(found) - len(waiting)} of {len(found)} done")
    if waiting:
        if on == "processes":
            done = _in_processes(waiting, jobs)
        else:
            from ._ray import on_ray

            done = on_ray(waiting, jobs, None if on == "ray" else on)
        for name in done:
            report(f"{name} done")
    path = write_results(experiment, preset, runs, results)
    for other in EXPERIMENTS.values():
        shown = other.presets[preset].arms if preset in other.presets else ()
        if any(arm.home == experiment.id for arm in shown) and (results / other.id / f"{preset}.json").exists():
            write_results(other, preset, runs, results)
            report(f"{other.id} shows runs of these too: its results are up to date, `mnemon report` draws them")
    return path


def chosen_runs(experiment: Experiment, preset: str, seeds: int | None, only: Sequence[str]) -> list[tuple[Arm, int]]:
    """The arms and seeds that a command names."""
    grid = get_preset(experiment, preset)
    count = grid.seeds if seeds is None else seeds
    require(count >= 1, "seeds", count, "at least one seed", "--seeds 3")
    whole = {arm.name for arm in grid.arms}
    arms = [
        arm
        for arm in grid.arms
        if not only or any(part == arm.name if part in whole else part in arm.name for part in only)
    ]
    names = ", ".join(arm.name for arm in grid.arms)
    require(bool(arms), "only", " ".join(only), f"a part of a name among {names}", f"--only {grid.arms[0].name}")
    return [
        (arm, seed)
        for seed in range(count)
        for arm in arms
        if arm.seeds is None or seed < arm.seeds or seeds is not None
    ]


def job_folder(runs: Path, experiment: str, preset: str, arm: Arm, seed: int) -> Path:
    """Where one job works."""
    return runs / (arm.home or experiment) / preset / f"{arm.name}-seed{seed}-{arm.settings}"


def read_result(folder: Path) -> dict[str, Any] | None:
    """The result of a job, if it is done."""
    path = folder / RESULT_FILE
    return json.loads(path.read_text()) if path.exists() else None


def do(waiting: Waiting, wait: bool = True) -> str:
    """One job, in a process of its own: gives its name. What is done is not done again.

    Whoever else has begun it is waited for, or, without `wait`, left alone: then no name is given.
    """
    folder = waiting.folder
    with _lock(folder.with_name(f"{folder.name}.lock"), wait) as free:
        if not free:
            return ""
        if read_result(folder) is None:
            use_cores()
            begun = time.perf_counter()
            try:
                result = waiting.job.run(waiting.seed, folder)
            except Interrupted:
                raise
            except MnemonError as error:  # in a form that every process understands
                raise MnemonError(f"{waiting.name}: {error}") from None
            seconds = round(time.perf_counter() - begun, 1)  # unless the job knows better: it may have been resumed
            content = {"seconds": seconds, **result, "provenance": provenance()}
            write_atomically(folder / RESULT_FILE, json.dumps(content))
    return waiting.name


@contextlib.contextmanager
def _lock(path: Path, wait: bool) -> Iterator[bool]:
    """A lock that its process, however it ends, lets go; false if another has it and is not waited for."""
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def _in_processes(waiting: list[Waiting], jobs: int) -> Iterator[str]:
    with environment(thread_flags(jobs)), _pool(jobs) as pool:
        # Two commands may work on one grid: what the other has begun is left for the end.
        for_the_end: list[Waiting] = []
        try:
            first = {pool.submit(do, job, wait=False): job for job in waiting}
            for future in as_completed(first):
                if name := future.result():
                    yield name
                else:
                    for_the_end.append(first[future])
            for future in as_completed([pool.submit(do, job) for job in for_the_end]):
                yield future.result()
        except BrokenProcessPool as error:
            raise MnemonError(
                "a process was killed, perhaps for want of memory; the same command goes on with what is left"
            ) from error


def _pool(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    places = context.SimpleQueue()
    for place in _places(jobs):
        places.put(place)
    return ProcessPoolExecutor(jobs, context, _begin, (places,))


def _places(jobs: int) -> list[list[int]]:
    """Cores for each process of several: threads that wait for work, as XLA's do, would take those of the others."""
    if not hasattr(os, "sched_getaffinity"):
        return [[]] * jobs
    cores = sorted(os.sched_getaffinity(0))
    return [cores[n % len(cores) :: jobs] for n in range(jobs)]


def _begin(places) -> None:
    """What a new process does first. When the command that started it is gone, its run is to save its state and end."""
    if place := places.get():
        os.sched_setaffinity(0, place)
    commit()  # that of the code which is being loaded
    keep_memory()  # before there is another thread
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGINT)  # ignored by all but a run if the command was begun in the background
            time.sleep(_TO_SAVE)
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def thread_flags(jobs: int) -> dict[str, str]:
    """Several processes on few cores only get in each other's way if each of them uses all cores."""
    if jobs == 1:
        return {}
    flags = os.environ.get("XLA_FLAGS", "")
    return {"JAX_NUM_CPU_DEVICES": "1", "XLA_FLAGS": f"{flags} --xla_cpu_multi_thread_eigen=false".strip()}


@contextlib.contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes that are started in between."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
