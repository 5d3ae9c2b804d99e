"""Lessons in order, each until it is passed (Graves et al. 2016)."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int

from .._errors import require
from .._files import write_atomically
from ..model import Model
from ..tasks import AbstractTask
from .checkpoints import Checkpoints
from .fit import Diverged, Record, TrainState, _close_window, _compiled_advance, _init_state, evaluate
from .objectives import AbstractObjective, default_objective
from .optimizers import make_optimizer

LESSONS_FILE = "lessons.json"


@dataclasses.dataclass(frozen=True)
class Lessons:
    """What is taught, and when a lesson is passed.

    A lesson is trained on `train`, which may hold replay of earlier ones, and examined on `examine`, which does not. It
    is passed when `score` (a metric of the task) reaches `pass_mark` over `episodes` fresh episodes.
    """

    train: Sequence[AbstractTask]
    examine: Sequence[AbstractTask]
    score: str
    pass_mark: float
    check_every: int  # updates
    episodes: int

    def __post_init__(self):
        require(len(self.train) >= 1, "train", len(self.train), "at least one lesson", "graph_lessons(Traversal)")
        require(
            len(self.train) == len(self.examine),
            "examine",
            len(self.examine),
            f"one for each of the {len(self.train)} lessons",
            "graph_lessons(Traversal)",
        )
        require(self.check_every >= 1, "check_every", self.check_every, "at least one update", "check_every=100")


def graph_lessons(task: Any, *, last: int | None = None, **changes: Any) -> Lessons:
    """The curriculum of a graph task, as published, up to lesson `last`.

    Traversal and inference: 90 % right, examined every 100 updates, a tenth of the training episodes from earlier
    lessons. Shortest path: 80 % minimal over 50 episodes, examined every 2,000 updates, no replay. `changes` replace
    fields of the result.

    >>> from mnemon.tasks import Traversal
    >>> lessons = graph_lessons(Traversal, last=3)
    >>> len(lessons.train), lessons.train[2].replay, lessons.pass_mark
    (3, 0.1, 0.9)
    """
    from ..tasks import ShortestPath

    numbers = range(1, (last or len(task.lessons)) + 1)
    plans = task is ShortestPath
    replay = 0.0 if plans else 0.1
    lessons = Lessons(
        train=[task(lesson=number, replay=replay) for number in numbers],
        examine=[task(lesson=number) for number in numbers],
        score="minimal" if plans else "sequences",
        pass_mark=0.8 if plans else 0.9,
        check_every=2000 if plans else 100,
        episodes=50 if plans else 200,
    )
    return dataclasses.replace(lessons, **changes)


@dataclasses.dataclass(frozen=True)
class Passed:
    """A lesson that was passed."""

    lesson: int
    update: int  # updates in all when it was
    metrics: Record  # of the examination


@dataclasses.dataclass(frozen=True)
class CurriculumResult:
    """What [`train_curriculum`][] returns."""

    model: Model
    update: int
    passed: list[Passed]
    records: list[Record]  # one for each examination: update, lesson, and its metrics


class _Progress(eqx.Module):
    """Everything that an exact resume needs."""

    state: TrainState
    lesson: Int[Array, ""]  # from 0


def train_curriculum(
    model: Model,
    lessons: Lessons,
    *,
    updates: int,
    batch: int = 1,
    optimizer: optax.GradientTransformation | None = None,
    objective: AbstractObjective | None = None,
    seed: int = 0,
    folder: Path | None = None,
    on_check: Callable[[Record], None] | None = None,
    report: Callable[[str], None] = print,
) -> CurriculumResult:
    """Train a model lesson by lesson, for at most so many updates in all.

    The optimiser's state goes along. With a `folder` the run is saved at every examination and goes on from there
    when it is called again.
    """
    require(updates >= 0, "updates", updates, "a number of updates, 0 or more", "updates=100000")
    optimizer = make_optimizer() if optimizer is None else optimizer
    objective = default_objective(lessons.train[0]) if objective is None else objective
    progress = _Progress(_init_state(model, lessons.train[0], optimizer, objective, batch, seed), jnp.asarray(0))
    records = _read(folder)
    if folder is not None:
        with Checkpoints(folder / "checkpoints") as checkpoints:
            restored = checkpoints.restore(progress, report)
        progress = progress if restored is None else restored[1]
    state, lesson = progress.state, int(progress.lesson)
    records = [record for record in records if record["update"] <= int(state.update)]
    advance: dict[int, Any] = {}  # the compiled update of the lesson at hand
    while lesson < len(lessons.train) and int(state.update) < updates:
        if lesson not in advance:
            advance = {lesson: _compiled_advance(state, lessons.train[lesson], optimizer, objective, batch)}
        count = min(lessons.check_every, updates - int(state.update))
        state, sound = advance[lesson](state, lessons.train[lesson], count)
        if not bool(sound):
            raise Diverged(f"the loss or its gradient was not finite at update {int(state.update) + 1}")
        state, _ = _close_window(state, int(state.update), count)
        metrics = evaluate(
            state.model,
            lessons.examine[lesson],
            episodes=lessons.episodes,
            batch=min(lessons.episodes, 50),
            seed=int(jax.random.randint(jax.random.fold_in(state.key, state.update), (), 0, 2**30)),
            objective=objective,
        )
        record = {"update": int(state.update), "lesson": lesson + 1, **metrics}
        records.append(record)
        if on_check is not None:
            on_check(record)
        lesson += metrics[lessons.score] >= lessons.pass_mark
        if folder is not None:
            write_atomically(folder / LESSONS_FILE, json.dumps(records) + "\n")
            with Checkpoints(folder / "checkpoints") as checkpoints:
                checkpoints.save(int(state.update), _Progress(state, jnp.asarray(lesson)))
    return CurriculumResult(state.model, int(state.update), _passed(records, lessons), records)


def _passed(records: list[Record], lessons: Lessons) -> list[Passed]:
    return [
        Passed(int(record["lesson"]), int(record["update"]), record)
        for record in records
        if record[lessons.score] >= lessons.pass_mark
    ]


def _read(folder: Path | None) -> list[Record]:
    path = None if folder is None else folder / LESSONS_FILE
    return json.loads(path.read_text()) if path is not None and path.is_file() else []
