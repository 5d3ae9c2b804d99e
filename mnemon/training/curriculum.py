"""Lessons in order, each until it is passed (Graves et al. 2016)."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int

from .._errors import require
from ..model import Model
from ..tasks import AbstractTask
from ._records import Log, Record
from ._stopping import Diverged, Interrupted, interrupt_flag
from ._updates import TrainState, close_window, compiled_advance, init_state
from .checkpoints import Checkpoints
from .evaluation import evaluate
from .fit import FitResult
from .objectives import AbstractObjective, default_objective
from .optimizers import make_optimizer


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


def graph_lessons(
    task: Any, *, last: int | None = None, options: Mapping[str, Any] | None = None, **changes: Any
) -> Lessons:
    """The curriculum of a graph task, as published (the `exam` of the task), up to lesson `last`.

    `options` are options of the task; `changes` replace fields of the result.

    >>> from mnemon.tasks import Traversal
    >>> lessons = graph_lessons(Traversal, last=3)
    >>> len(lessons.train), lessons.train[2].replay, lessons.pass_mark
    (3, 0.1, 0.9)
    """
    known = getattr(task, "lessons", ())
    last = len(known) if last is None else last
    require(1 <= last <= len(known), "lessons", last, f"1 to {len(known)} lessons of {task.__name__}", "traversal, 14")
    exam, given = task.exam, {"replay": task.exam.replay, **(options or {})}
    lessons = Lessons(
        train=[task(**{**given, "lesson": number}) for number in range(1, last + 1)],
        examine=[task(**{**given, "lesson": number, "replay": 0.0}) for number in range(1, last + 1)],
        score=exam.score,
        pass_mark=exam.pass_mark,
        check_every=exam.check_every,
        episodes=exam.episodes,
    )
    return dataclasses.replace(lessons, **changes)


@dataclasses.dataclass(frozen=True)
class Passed:
    """A lesson that was passed."""

    lesson: int
    update: int  # updates in all when it was
    metrics: Record  # the record of its examination


@dataclasses.dataclass(frozen=True)
class CurriculumResult(FitResult):
    """What [`train_curriculum`][] returns; solved if the last lesson was passed.

    There is a record for each examination: its `lesson`, the means since the one before, and the scores of the
    examination with `valid_` before their names.
    """

    passed: list[Passed]


class Progress(eqx.Module):
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
    in_lesson: Callable[[Model, int], Model] | None = None,
    folder: Path | None = None,
    on_record: Callable[[Record], None] | None = None,
    on_progress: Callable[[int, float], None] | None = None,
    report: Callable[[str], None] = print,
) -> CurriculumResult:
    """Train a model lesson by lesson, for at most so many updates in all.

    The optimiser's state goes along. `in_lesson` gives the network for a lesson (from 1), which may differ from the one
    before in whatever is no array, as the slots of its memory. With a `folder` the run is saved at every examination
    and goes on from there when it is called again. Ctrl-C stops after the next examination.
    """
    require(updates >= 0, "updates", updates, "a number of updates, 0 or more", "updates=100000")
    optimizer = make_optimizer() if optimizer is None else optimizer
    objective = default_objective(lessons.train[0]) if objective is None else objective
    progress = Progress(init_state(model, lessons.train[0], optimizer, objective, batch, seed), jnp.asarray(0))
    started, trained_updates, trained_seconds = time.perf_counter(), 0, 0.0
    with contextlib.ExitStack() as stack:
        log = Log(folder)
        checkpoints = None if folder is None else stack.enter_context(Checkpoints(folder / "checkpoints"))
        restored = checkpoints.restore(progress, report) if checkpoints else None
        progress = progress if restored is None else restored[1]
        state, lesson = progress.state, int(progress.lesson)
        log.cut_after(int(state.update))
        interrupted = stack.enter_context(interrupt_flag())
        advance: dict[int, Any] = {}  # the compiled update of the lesson at hand
        while lesson < len(lessons.train) and int(state.update) < updates:
            if lesson not in advance:
                if in_lesson is not None:
                    model = in_lesson(state.model, lesson + 1)
                    other = init_state(model, lessons.train[lesson], optimizer, objective, batch, seed)
                    state = jax.tree.unflatten(jax.tree.structure(other), jax.tree.leaves(state))
                advance = {lesson: compiled_advance(state, lessons.train[lesson], optimizer, objective, batch)}
            count, before = min(lessons.check_every, updates - int(state.update)), time.perf_counter()
            state, sound = advance[lesson](state, count)
            if not bool(sound):
                kept = [checkpoints.path(update) for update in checkpoints.updates()] if checkpoints else []
                raise Diverged(int(state.update) + 1, kept[-1] if kept else None)
            state, record = close_window(state, int(state.update), count)
            trained_updates, trained_seconds = trained_updates + count, trained_seconds + time.perf_counter() - before
            scores = evaluate(
                state.model,
                lessons.examine[lesson],
                episodes=lessons.episodes,
                batch=min(lessons.episodes, 50),
                seed=int(jax.random.randint(jax.random.fold_in(state.key, state.update), (), 0, 2**30)),
                objective=objective,
            )
            record |= {"lesson": lesson + 1, **{f"valid_{name}": value for name, value in scores.items()}}
            log.append(record)
            lesson += scores[lessons.score] >= lessons.pass_mark
            if checkpoints is not None:
                log.sync()
                checkpoints.save(int(state.update), Progress(state, jnp.asarray(lesson)))
            if on_record is not None:
                on_record(record)
            if on_progress is not None:
                on_progress(int(state.update), trained_updates / trained_seconds)
            if interrupted.is_set():
                raise Interrupted(f"stopped after update {int(state.update)}, in lesson {lesson + 1}")
        if checkpoints is not None:
            checkpoints.save(int(state.update), Progress(state, jnp.asarray(lesson)))
    return CurriculumResult(
        state.model,
        int(state.update),
        log.records,
        lesson == len(lessons.train),
        time.perf_counter() - started,
        trained_updates / trained_seconds if trained_seconds else 0.0,
        state.carry,
        state.optimizer,
        _passed(log.records, lessons),
    )


def _passed(records: list[Record], lessons: Lessons) -> list[Passed]:
    return [
        Passed(int(record["lesson"]), int(record["step"]), record)
        for record in records
        if record[f"valid_{lessons.score}"] >= lessons.pass_mark
    ]
