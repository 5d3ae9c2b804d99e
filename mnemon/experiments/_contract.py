"""What an experiment is: a grid of arms, the published numbers beside it, and presets of different cost."""

import dataclasses
import hashlib
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from .._elsewhere import is_elsewhere, source_of
from ..cells import AbstractCell
from ..model import Model
from ..tasks import make_task
from ..training import Diverged, evaluate
from ..training._records import Record
from ..training.runs import RunConfig, open_run, train_run, with_cell_options

# A stored curve has at most about this many points; the run's own metrics file has all.
_CURVE_POINTS = 150
# How long the updates of a run are timed to know their rate.
_SECONDS_TO_TIME = 4.0
# Enough that a run is not over before: its time would be that of compiling.
_UPDATES_TO_TIME = 100_000
# Options of a run that change what it learns and how long it is, but not how long an update takes.
_NO_MATTER_TO_SPEED: dict[str, Any] = {
    "steps": 1,
    "seed": 0,
    "lr": 1e-3,
    "clip": 1.0,
    "lr_schedule": "constant",
    "embedding_scale": 1.0,
    "log_every": 1,
    "stop_when_solved": False,
    "patience": None,
    "validation_episodes": None,
}


def settings_of(value: Any) -> Any:
    """What a job is to do, as plain data: of a dataclass, all fields that are compared and not at their defaults."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        default = {field.name: field.default for field in dataclasses.fields(value) if field.compare}
        empty = ({}, (), [])  # what the factories of defaults make
        fields = {name: getattr(value, name) for name in default}
        return [
            type(value).__name__,
            {k: settings_of(v) for k, v in sorted(fields.items()) if v != default[k] and v not in empty},
        ]
    if isinstance(value, Mapping):
        return {str(name): settings_of(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [settings_of(part) for part in value]
    return repr(value)


def short_name(settings: Any) -> str:
    """Of plain data."""
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]


@runtime_checkable
class Job(Protocol):
    """Something that can be done for a seed, in a folder of its own, again and again until it is done."""

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        """Do it, or go on with it; the result is plain JSON."""
        ...


@runtime_checkable
class Estimated(Protocol):
    """A job made of updates, or other pieces of about one length, that need not be done to tell how long it takes."""

    def pace(self) -> str:
        """A short name of all that decides how long an update takes: jobs that share it are as fast."""
        ...

    @property
    def updates(self) -> int:
        """How many of them there are at most."""
        ...

    def time_updates(self, folder: Path) -> tuple[float, float]:
        """Seconds to begin, and of an update on this machine, found by doing a little of it in an empty folder."""
        ...


@dataclasses.dataclass(frozen=True)
class Score:
    """A metric of the trained network on fresh data, or on its task, or with its cell, with other options."""

    metric: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the task
    episodes: int | None = 1000  # None: all that the task has
    batch: int = 100
    unit: Literal["", "%", "% wrong"] = ""  # as it is, as a percentage, or the percentage that is left to 100
    of: Literal["task", "parts", "failed parts"] = "task"  # the mean over the task's parts, or how many are not solved
    cell_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # e.g. more slots than in training

    def measure(self, model: Model, config: RunConfig) -> float:
        """The score of a network that was trained as `config` says."""
        task = make_task(config.task, **{**config.task_options, **self.options})
        model = with_cell_options(model, config, self.cell_options)
        tasks = [task] if self.of == "task" or not task.parts else list(task.parts.values())
        metrics = [evaluate(model, part, episodes=self.episodes, batch=self.batch) for part in tasks]
        if self.of == "failed parts":
            return float(sum(not part.solved(values) for part, values in zip(tasks, metrics, strict=True)))
        value = statistics.mean(values[self.metric] for values in metrics)
        return {"": value, "%": 100.0 * value, "% wrong": 100.0 * (1.0 - value)}[self.unit]


class _Enough(Exception):
    """A run has been watched for long enough."""


@dataclasses.dataclass(frozen=True)
class Training:
    """A training run. Its result has the learning curve, whether and when it solved the task (the first record that
    counts as a solution, or the last lesson passed), the last metrics, and the scores that are wanted after it; of a
    run that diverged, the update at which it did."""

    config: RunConfig
    scores: Mapping[str, Score] = dataclasses.field(default_factory=dict)

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        config = dataclasses.replace(self.config, seed=seed)
        try:
            result = train_run(config, folder, resume=True, report=lambda message: None)
        except Diverged as error:  # which is a result as well
            records = open_run(folder).records
            return {
                "updates": error.update,
                "diverged": error.update,
                "solved": False,
                "steps_to_solve": None,
                "last": records[-1] if records else {},
                "curve": thin_curve(records),
                "scores": {},
            }
        if config.lessons is None:
            task = config.make_task()
            solved_at = next((record["step"] for record in result.records if task.solved(record)), None)
        else:
            solved_at = result.update if result.solved else None
        return {
            "updates": result.update,
            "solved": solved_at is not None,
            "steps_to_solve": solved_at,
            "last": result.records[-1] if result.records else {},
            "curve": thin_curve(result.records),
            "scores": {name: score.measure(result.model, config) for name, score in self.scores.items()},
            "seconds": round(result.seconds, 1),
        }

    def pace(self) -> str:
        return short_name(settings_of(dataclasses.replace(self.config, **_NO_MATTER_TO_SPEED)))

    @property
    def updates(self) -> int:
        return self.config.steps

    def time_updates(self, folder: Path) -> tuple[float, float]:
        """Seconds to compile, and of an update; without validation, scores and whatever else comes after training."""
        # Also of a network that is trained for less, or not at all: one that is trained for longer may be as fast.
        steps = max(self.config.steps, _UPDATES_TO_TIME)
        config = dataclasses.replace(self.config, steps=steps, patience=None, validation_episodes=None)
        return time_training(lambda watch: train_run(config, folder, report=lambda message: None, on_progress=watch))


def time_training(train: Callable[[Callable[[int, float], None]], Any]) -> tuple[float, float]:
    """Seconds to begin, and of an update: `train` tells its progress and is ended when that is known."""
    calls: list[tuple[float, int]] = []  # when a compiled call was over, and the updates done by then

    def watch(done: int, rate: float) -> None:
        calls.append((time.perf_counter(), done))
        if len(calls) > 2 and calls[-1][0] - calls[0][0] > _SECONDS_TO_TIME:
            raise _Enough

    begun = time.perf_counter()
    try:
        train(watch)
    except _Enough:
        # The first call also compiles, and those after it are short: their rate is known from the later half.
        (before, done_before), (after, done_after) = calls[len(calls) // 2], calls[-1]
        return calls[0][0] - begun, (after - before) / (done_after - done_before)
    return 0.0, (time.perf_counter() - begun) / calls[-1][1]


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
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)  # published numbers by score
    # The panel of the figure that it is in; the name of the arm begins with it.
    group: str = ""
    # The experiment that the run belongs to, where several show the same runs: none is made twice.
    home: str | None = None
    # At most so many seeds, where the arm is too costly for all those of the preset.
    seeds: int | None = None
    # The cell, where a user has put it beside those of the experiment.
    beside: str | None = None

    @property
    def label(self) -> str:
        """Its name within its panel."""
        return self.name.removeprefix(f"{self.group}-") if self.group else self.name

    @property
    def settings(self) -> str:
        """A short name of all that the job is to do: runs with other settings are other runs."""
        settings = settings_of(self.job)
        if self.beside is not None and is_elsewhere(self.beside):  # a cell that is being worked on
            settings = [settings, source_of(self.beside, AbstractCell)]
        return short_name(settings)


@dataclasses.dataclass(frozen=True)
class Preset:
    """One size of an experiment."""

    arms: tuple[Arm, ...]
    seeds: int
    cost: str | None  # as measured on two cores; None: not measured
    note: str  # how it differs from the publication


def borrow(experiment: "Experiment", preset: str, wanted: Callable[[str], bool] = lambda name: True) -> tuple[Arm, ...]:
    """Arms of another experiment, whose runs serve both."""
    return tuple(
        dataclasses.replace(arm, home=arm.home or experiment.id)
        for arm in experiment.presets[preset].arms
        if wanted(arm.name)
    )


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure of the literature."""

    id: str
    source: str
    shows: str
    published: str
    presets: Mapping[str, Preset]
    curves: tuple[str, ...] = ("loss",)  # what the learning curves are drawn of
    # From the stored results of a preset to the rows of its table, and to its chart (an Altair chart; its file imports
    # Altair only there). Without them: measured beside published, and the learning curves.
    table: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None
    draw: Callable[[dict[str, Any]], Any] | None = None
