"""Tasks of growing difficulty, one after the other (thesis 5.3.4)."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from jaxtyping import Float

from .._errors import require
from .._files import write_atomically
from ..model import Model
from ..tasks import AbstractTask
from ..training import FitResult, evaluate, fit
from ..training._records import Record
from ..training.objectives import AbstractObjective, default_objective
from ..training.optimizers import make_optimizer
from .expansion import widen, widen_optimizer

ACCURACIES_FILE = "accuracies.json"


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Training on a level with a network of one size."""

    size: int  # of the cell's output
    updates: int
    accuracy: float  # the mean over the last window, which decides


@dataclasses.dataclass(frozen=True)
class Level:
    """What came of a level: more than one attempt if the network grew."""

    attempts: list[Attempt]
    passed: bool
    accuracies: list[float]  # on every level, after the last attempt

    @property
    def current(self) -> float:
        """The accuracy that decided."""
        return self.attempts[-1].accuracy


@dataclasses.dataclass(frozen=True)
class Curriculum:
    """What came of all levels that were trained, the failed one included."""

    model: Model
    levels: list[Level]
    untrained: list[float]  # accuracy on every level before training

    @property
    def matrix(self) -> Float[np.ndarray, "trained evaluated"]:
        """R: a row of accuracies on all levels after each level."""
        return np.array([level.accuracies for level in self.levels])

    @property
    def cleared(self) -> int:
        """How many levels were passed."""
        return sum(level.passed for level in self.levels)

    @property
    def expanded(self) -> dict[int, list[int]]:
        """The sizes to which the network grew, by level, which count from 1."""
        grown = {n: [attempt.size for attempt in level.attempts[1:]] for n, level in enumerate(self.levels, start=1)}
        return {n: sizes for n, sizes in grown.items() if sizes}


@dataclasses.dataclass(frozen=True)
class Watch:
    """Who wants to know how it goes."""

    report: Callable[[str], None] = print  # messages
    on_attempt: Callable[[int, Model, int], None] | None = None  # level from 1, network, updates: before each attempt
    on_level: Callable[[int, Level], None] | None = None  # level from 1, and what came of it
    on_record: Callable[[Record], None] | None = None  # as for `fit`
    on_progress: Callable[[int, float], None] | None = None  # as for `fit`


def learn(
    model: Model,
    levels: Sequence[AbstractTask],
    *,
    threshold: float,
    accuracy: Callable[[AbstractTask, Record], float] = lambda task, record: record["accuracy"],
    objective: AbstractObjective | None = None,
    updates: int = 10_000,
    batch: int = 10,
    window: int = 100,
    sizes: Sequence[int] = (),
    optimizer: optax.GradientTransformation | None = None,
    episodes: int = 100,
    seed: int = 0,
    folder: Path | None = None,
    save_seconds: float = 30.0,
    watch: Watch | None = None,
) -> Curriculum:
    """Train on each level in turn; grow at a failure, stop at one that growing does not cure.

    **Arguments:**

    - `model`: the network before training.
    - `levels`: tasks of one distribution, from easy to hard.
    - `threshold`: the mean accuracy over the last `window` updates that passes a level.
    - `accuracy`: that of a task, from its metrics; by default the one of that name.
    - `objective`: what is minimised and what is done against forgetting; by default the task's loss alone.
    - `updates`: of each level; twice as many after the network has grown.
    - `batch`: episodes an update.
    - `window`: updates over which a level is judged.
    - `sizes`: the hidden sizes to grow to, one at each failure; none: the first failure ends the run.
    - `optimizer`: any Optax optimiser; by default Adam 0.001 with the gradient norm clipped at 1. Its state goes
      from level to level.
    - `episodes`: for each entry of the matrix.
    - `seed`: for data, growth and whatever the network samples.
    - `folder`: where each level has its records and checkpoints. A run that was interrupted goes on from there, in the
      middle of a level, and ends as if undisturbed; the network before it grew stays in its own folder.
    - `save_seconds`: time between checkpoints.
    - `watch`: who wants to know how it goes.
    """
    require(len(levels) >= 1, "levels", levels, "at least one task", "levels=[Copying(delay=5), Copying(delay=10)]")
    require(
        updates >= window and updates % window == 0,
        "updates",
        updates,
        f"whole windows of {window} updates",
        f"updates={10 * window}",
    )
    objective = default_objective(levels[0]) if objective is None else objective
    optimizer = make_optimizer() if optimizer is None else optimizer
    watch = Watch() if watch is None else watch
    waiting = list(sizes)
    _require_growth(model, waiting)
    path = None if folder is None else folder / ACCURACIES_FILE
    known: dict[str, list[float]] = {} if path is None or not path.is_file() else json.loads(path.read_text())

    def accuracies(model: Model, when: str) -> list[float]:
        """On every level. What is in the folder is not measured again."""
        if when not in known:
            known[when] = [accuracy(task, evaluate(model, task, episodes=episodes, seed=seed)) for task in levels]
            if path is not None:
                write_atomically(path, json.dumps(known, indent=1) + "\n")
        return known[when]

    def train(model: Model, state: Any, number: int, attempt: int) -> tuple[FitResult, Attempt]:
        size, count = model.cell.output_size, updates if attempt == 0 else 2 * updates
        if watch.on_attempt is not None:
            watch.on_attempt(number, model, count)
        # No example is seen twice: neither another level nor the same one after growing has these data again.
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), number), attempt)
        result = fit(
            model,
            levels[number - 1],
            updates=count,
            batch=batch,
            optimizer=optimizer,
            optimizer_state=state,
            objective=objective,
            seed=int(jax.random.randint(key, (), 0, 1 << 30)),
            log_every=window,
            folder=None if folder is None else folder / f"level-{number:02d}-size-{size}",
            save_seconds=save_seconds,
            on_record=watch.on_record,
            on_progress=watch.on_progress,
            report=watch.report,
        )
        return result, Attempt(size, count, accuracy(levels[number - 1], result.records[-1]))

    untrained = accuracies(model, "untrained")
    done: list[Level] = []
    state = None
    for number, task in enumerate(levels, start=1):
        result, attempt = train(model, state, number, 0)
        attempts = [attempt]
        while attempts[-1].accuracy < threshold and waiting:
            size = waiting.pop(0)
            watch.report(f"level {number}: {attempts[-1].accuracy:.3f} is below {threshold}; growing to {size}")
            key = jax.random.fold_in(jax.random.key(seed), 1000 + size)
            wide, widening = widen(result.model, size, key=key)
            state = widen_optimizer(optimizer, result.optimizer_state, result.model, wide, widening)
            objective = objective.after_growth(result.model, wide, widening)
            result, attempt = train(wide, state, number, len(attempts))
            attempts.append(attempt)
        model, state = result.model, result.optimizer_state
        passed = attempts[-1].accuracy >= threshold
        done.append(Level(attempts, passed, accuracies(model, f"level {number}")))
        if watch.on_level is not None:
            watch.on_level(number, done[-1])
        if not passed:
            break
        objective = objective.after_task(
            model, task, result.carry, key=jax.random.fold_in(jax.random.key(seed), number)
        )
    return Curriculum(model, done, untrained)


def _require_growth(model: Model, sizes: Sequence[int]) -> None:
    """Find out before training whether the network can grow as is wanted."""
    for size in sizes:
        model, _ = widen(model, size, key=jax.random.key(0))
