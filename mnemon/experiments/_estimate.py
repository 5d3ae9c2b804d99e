"""How long the grid of an experiment would take on this machine, from a few seconds of each of its networks."""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .._errors import require
from .._files import write_atomically
from .._provenance import provenance
from ._contract import Arm, Estimated, Experiment, Job
from ._registry import get_experiment
from ._results import COSTS_FILE
from ._runner import chosen_runs, get_preset


def estimate(
    name: str,
    preset: str,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    results: Path = Path("results"),
    report: Callable[[str], None] = print,
) -> Path:
    """Time each arm for a few seconds, say how long all would take one after another, and write it beside the results.

    Arms that were estimated before, here or for the experiment that they belong to, and have not changed are not timed
    again. The smoke preset is no longer than an estimate: it is done.
    """
    experiment = get_experiment(name)
    runs = chosen_runs(experiment, preset, seeds, only)
    arms = {arm.name: arm for arm, _ in runs}
    timed = {arm.name: arm for arm in arms.values() if preset == "smoke" or isinstance(arm.job, Estimated)}
    wanted = "an experiment that trains networks one task at a time"
    require(bool(timed), "id", name, f"{wanted}: of others only a run tells", "mnemon reproduce th-fig-4.1 --estimate")
    known = {}
    for arm in timed.values():
        path = _costs_file(results, experiment, arm)
        costs = _read(path)
        stored = costs.setdefault(preset, {})
        if _key(arm) not in stored:
            with tempfile.TemporaryDirectory() as folder:
                seconds = _seconds(arm.job, preset, Path(folder) / "run")
            stored[_key(arm)] = {"seconds": round(seconds, 1), **provenance()}
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(costs, indent=1))
        known[arm.name] = stored[_key(arm)]["seconds"]
        report(f"{arm.name}: {as_time(known[arm.name])} a run")
    total = sum(known[arm.name] for arm, _ in runs if arm.name in known)
    untimed = f"; {len(arms) - len(timed)} arms not estimated" if len(timed) < len(arms) else ""
    report(f"{experiment.id} {preset}: {len(runs)} runs, {as_time(total)} in all one after another{untimed}")
    return _costs_file(results, experiment, runs[0][0])


def _seconds(job: Job, preset: str, folder: Path) -> float:
    if preset != "smoke" and isinstance(job, Estimated):
        return job.estimate(folder)
    begun = time.perf_counter()
    job.run(0, folder)
    return time.perf_counter() - begun


def estimated_seconds(name: str, preset: str, results: Path) -> float | None:
    """What the whole preset would take by the stored estimates, if each of its arms has one."""
    experiment = get_experiment(name)
    known = {}
    for arm in get_preset(experiment, preset).arms:
        stored = _read(_costs_file(results, experiment, arm)).get(preset, {})
        if _key(arm) not in stored:
            return None
        known[arm.name] = stored[_key(arm)]["seconds"]
    return sum(known[arm.name] for arm, _ in chosen_runs(experiment, preset, None, ()))


def _costs_file(results: Path, experiment: Experiment, arm: Arm) -> Path:
    """Where the estimate of an arm is kept: with the experiment that its runs belong to."""
    return results / (arm.home or experiment.id) / COSTS_FILE


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def as_time(seconds: float) -> str:
    """A time as people say it.

    >>> as_time(40), as_time(4000), as_time(40_000)
    ('40 s', '67 min', '11 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def _key(arm: Arm) -> str:
    """An arm with its settings: a changed one is another."""
    return f"{arm.name}-{arm.settings}"
