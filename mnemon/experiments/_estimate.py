"""How long the grid of an experiment takes, from a few seconds of each of its networks and from runs that are done."""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._errors import require
from .._files import write_atomically
from .._provenance import provenance
from ..training import Diverged
from ._contract import Arm, Estimated, Experiment, Job
from ._registry import EXPERIMENTS, get_experiment
from ._runner import chosen_runs, get_preset

# One file for all experiments: many of their networks are as fast as another's, and are timed once.
COSTS_FILE = "costs.json"


class Cost(NamedTuple):
    """What the runs of a preset take one after another, as far as it is known."""

    seconds: float
    known: int  # arms whose cost is
    arms: int


class Costs:
    """What is known of the time that runs take: timed here before, or told by the results of runs."""

    def __init__(self, results: Path):
        self.path = results / COSTS_FILE
        self.timed: dict[str, dict[str, Any]] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self._results = results
        self._told: dict[str, float] | None = None

    def seconds(self, experiment: Experiment, preset: str, arm: Arm) -> float | None:
        """Of one run of an arm, if it is known."""
        key = _key(experiment, preset, arm)
        if key in self.timed:
            return self.timed[key]["seconds"] * _updates(preset, arm.job) + self.timed[key]["to begin"]
        if self._told is None:
            self._told = _told_by_runs(self._results)
        return self._told[key] * _updates(preset, arm.job) if key in self._told else None

    def add(self, experiment: Experiment, preset: str, arm: Arm, folder: Path) -> None:
        """Time an arm and store it."""
        begun = time.perf_counter()
        if preset != "smoke" and isinstance(arm.job, Estimated):
            to_begin, seconds = arm.job.time_updates(folder)
        else:  # no longer than an estimate: it is done
            arm.job.run(0, folder)
            to_begin, seconds = 0.0, time.perf_counter() - begun
        about = {"of": f"{experiment.id} {preset} {arm.name}", "to begin": round(to_begin, 1)}
        self.timed[_key(experiment, preset, arm)] = {"seconds": float(f"{seconds:.3g}"), **about, **provenance()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, json.dumps(dict(sorted(self.timed.items())), indent=1) + "\n")

    def of(self, name: str, preset: str) -> Cost:
        """The cost of a whole preset."""
        experiment = get_experiment(name)
        arms = get_preset(experiment, preset).arms
        known = {arm.name: self.seconds(experiment, preset, arm) for arm in arms}
        runs = [known[arm.name] for arm, _ in chosen_runs(experiment, preset, None, ())]
        return Cost(sum(filter(None, runs)), sum(cost is not None for cost in known.values()), len(arms))


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

    Networks that were timed before, for whatever experiment, are not timed again. The smoke preset is no longer than an
    estimate: it is done.
    """
    experiment = get_experiment(name)
    runs = chosen_runs(experiment, preset, seeds, only)
    arms = {arm.name: arm for arm, _ in runs}
    timed = {arm.name: arm for arm in arms.values() if preset == "smoke" or isinstance(arm.job, Estimated)}
    wanted = "an experiment that trains networks one task at a time"
    require(bool(timed), "id", name, f"{wanted}: of others only a run tells", "mnemon reproduce th-fig-4.1 --estimate")
    costs, known = Costs(results), {}
    for arm in timed.values():
        if _key(experiment, preset, arm) not in costs.timed:
            try:
                with tempfile.TemporaryDirectory() as folder:
                    costs.add(experiment, preset, arm, Path(folder) / "run")
            except Diverged as error:  # too early to be timed
                report(f"{arm.name}: diverges at update {error.update}")
                continue
        known[arm.name] = costs.seconds(experiment, preset, arm) or 0.0
        report(f"{arm.name}: {as_time(known[arm.name])} a run")
    total = sum(known[arm.name] for arm, _ in runs if arm.name in known)
    untimed = f"; {len(arms) - len(known)} arms not estimated" if len(known) < len(arms) else ""
    report(f"{experiment.id} {preset}: {len(runs)} runs, {as_time(total)} in all one after another{untimed}")
    return costs.path


def _told_by_runs(results: Path) -> dict[str, float]:
    """Seconds, of an update or of a run that has none, by what decides on them."""
    found: dict[str, list[float]] = {}
    for experiment in EXPERIMENTS.values():
        for preset, grid in experiment.presets.items():
            path = results / experiment.id / f"{preset}.json"
            stored = json.loads(path.read_text())["arms"] if path.exists() else {}
            for arm in grid.arms:
                about = stored.get(arm.name, {})
                if about.get("settings") != arm.settings:
                    continue
                for result in about["seeds"].values():
                    planned = _updates(preset, arm.job)
                    updates = result.get("updates", planned) if planned > 1 else planned
                    if updates and "seconds" in result:
                        found.setdefault(_key(experiment, preset, arm), []).append(result["seconds"] / updates)
    return {key: statistics.median(seconds) for key, seconds in found.items()}


def _key(experiment: Experiment, preset: str, arm: Arm) -> str:
    """What decides how long an update takes, or, of jobs that are not made of updates, the job itself."""
    if preset != "smoke" and isinstance(arm.job, Estimated):
        return arm.job.pace()
    return f"{arm.home or experiment.id}-{preset}-{arm.name}-{arm.settings}"


def _updates(preset: str, job: Job) -> int:
    return job.updates if preset != "smoke" and isinstance(job, Estimated) else 1


def as_time(seconds: float) -> str:
    """A time as people say it.

    >>> as_time(40), as_time(4000), as_time(40_000), as_time(400_000)
    ('40 s', '67 min', '11 h', '5 days')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 360_000 else f"{seconds / 86_400:.0f} days"
