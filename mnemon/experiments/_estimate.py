"""How long the grid of an experiment would take on this machine, from a few seconds of each of its networks."""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .._errors import require
from .._files import write_atomically
from .._provenance import provenance
from ._contract import Arm, Estimated, Preset
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

    Arms that were estimated before and have not changed are not timed again.
    """
    experiment = get_experiment(name)
    runs = chosen_runs(experiment, preset, seeds, only)
    arms = {arm.name: arm for arm, _ in runs}
    timed = {arm.name: arm.job for arm in arms.values() if isinstance(arm.job, Estimated)}
    wanted = "an experiment that trains networks one task at a time"
    require(bool(timed), "id", name, f"{wanted}: of others only a run tells", "mnemon reproduce th-fig-4.1 --estimate")
    path = results / experiment.id / COSTS_FILE
    costs: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    known = costs.get(preset, {})
    for arm_name, job in timed.items():
        key = _key(arms[arm_name])
        if key not in known:
            with tempfile.TemporaryDirectory() as folder:
                known[key] = {"seconds": round(job.estimate(Path(folder) / "run"), 1), **provenance()}
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps({**costs, preset: known}, indent=1))
        report(f"{arm_name}: {as_time(known[key]['seconds'])} a run")
    total = sum(known[_key(arm)]["seconds"] for arm, _ in runs if arm.name in timed)
    untimed = f"; {len(arms) - len(timed)} arms not estimated" if len(timed) < len(arms) else ""
    report(f"{experiment.id} {preset}: {len(runs)} runs, {as_time(total)} in all one after another{untimed}")
    return path


def estimated_seconds(name: str, preset: str, results: Path) -> float | None:
    """What the whole preset would take by the stored estimates, if each of its arms has one."""
    experiment, path = get_experiment(name), results / name / COSTS_FILE
    grid: Preset = get_preset(experiment, preset)
    known = json.loads(path.read_text()).get(preset, {}) if path.exists() else {}
    if not all(_key(arm) in known for arm in grid.arms):
        return None
    return sum(known[_key(arm)]["seconds"] for arm, _ in chosen_runs(experiment, preset, None, ()))


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
