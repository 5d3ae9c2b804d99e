"""What an experiment is: a grid of arms, the published numbers beside it, and presets of different cost."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..model import Model
from ..tasks import make_task
from ..training.fit import Record, evaluate
from ..training.runs import RunConfig, train_run

# A stored curve has at most about this many points; the run's own metrics file has all.
_CURVE_POINTS = 150


@runtime_checkable
class Job(Protocol):
    """Something that can be done for a seed, in a folder of its own, again and again until it is done."""

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        """Do it, or go on with it; the result is plain JSON."""
        ...


@dataclasses.dataclass(frozen=True)
class Score:
    """A metric of the trained network on fresh data, or on its task with other options."""

    metric: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    episodes: int = 1000
    batch: int = 100

    def of(self, model: Model, config: RunConfig) -> float:
        """The score of a network that was trained as `config` says."""
        task = make_task(config.task, **{**config.task_options, **self.options})
        return evaluate(model, task, episodes=self.episodes, batch=self.batch)[self.metric]


@dataclasses.dataclass(frozen=True)
class Training:
    """A training run. Its result has the learning curve, whether and when it solved the task, the last metrics, and
    the scores that are wanted after it."""

    config: RunConfig
    scores: Mapping[str, Score] = dataclasses.field(default_factory=dict)

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        config = dataclasses.replace(self.config, seed=seed)
        result = train_run(config, folder, resume=True, report=lambda message: None)
        task = config.make_task()
        solved_at = next((record["step"] for record in result.records if task.solved(record)), None)
        return {
            "updates": result.update,
            "solved": solved_at is not None,
            "steps_to_solve": solved_at,
            "last": result.records[-1] if result.records else {},
            "curve": thin_curve(result.records),
            "scores": {name: score.of(result.model, config) for name, score in self.scores.items()},
            "seconds": round(result.seconds, 1),
        }


def thin_curve(records: list[Record], points: int = _CURVE_POINTS) -> dict[str, list[float]]:
    """Columns `step`, `loss`, ... of at most about `points` records, each the mean of its neighbours."""
    if not records:
        return {}
    size = -(-len(records) // points)
    groups = [records[n : n + size] for n in range(0, len(records), size)]
    curve: dict[str, list[float]] = {"step": [group[-1]["step"] for group in groups]}
    for name in records[0]:
        if name != "step":
            curve[name] = [float(f"{sum(r[name] for r in group) / len(group):.5g}") for group in groups]
    return curve


@dataclasses.dataclass(frozen=True)
class Arm:
    """One row of the grid."""

    name: str
    job: Job
    published: str = "–"  # the published number or finding for this row
    seeds: int | None = None  # at most so many, where a row is too costly for all seeds of the preset


@dataclasses.dataclass(frozen=True)
class Preset:
    """One size of an experiment."""

    arms: tuple[Arm, ...]
    seeds: int
    cost: str  # measured on two cores
    note: str  # how it differs from the publication


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of the literature."""

    id: str
    source: str
    shows: str
    published: str
    presets: Mapping[str, Preset]
    # The experiment whose runs these are, where several figures show the same runs.
    runs_of: str | None = None
    # From the stored results of a preset to the rows of its table, and to its chart (an Altair chart; its file imports
    # Altair only there). Without them: measured beside published, and the learning curves.
    table: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None
    draw: Callable[[dict[str, Any]], Any] | None = None
