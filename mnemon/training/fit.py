"""The trainer: exact resume, checkpoints, validation, progress."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax

from .._errors import require
from ..model import Model
from ..tasks import AbstractTask
from ._records import Log, Record
from ._stopping import Diverged, Interrupted, interrupt_flag, kept_at
from ._updates import Best, TrainState, close_window, compiled_advance, init_state
from .checkpoints import Checkpoints
from .evaluation import evaluate
from .objectives import AbstractObjective, default_objective
from .optimizers import make_optimizer
from .schedules import Schedule

# How long one compiled call should take: short enough for progress and Ctrl-C, long enough to cost nothing.
_SECONDS_A_CALL = 0.5


@dataclasses.dataclass(frozen=True)
class FitResult:
    """What [`fit`][mnemon.fit] returns."""

    model: Model  # with validation the best one
    update: int
    records: list[Record]  # a line for each `log_every` updates: `step` and the means of loss, metrics, gradient norm
    solved: bool
    seconds: float  # of this call
    updates_per_second: float  # without the time to compile
    carry: Any  # the objective's carry, such as an episodic memory
    optimizer_state: Any


def fit(
    model: Model,
    task: AbstractTask,
    *,
    updates: int,
    batch: int = 10,
    optimizer: optax.GradientTransformation | None = None,
    optimizer_state: Any = None,
    objective: AbstractObjective | None = None,
    schedules: Sequence[Schedule] = (),
    seed: int = 0,
    log_every: int = 100,
    stop_when_solved: bool = False,
    validation: AbstractTask | None = None,
    validation_episodes: int | None = None,
    patience: int | None = None,
    folder: Path | None = None,
    save_seconds: float = 30.0,
    on_record: Callable[[Record], None] | None = None,
    on_progress: Callable[[int, float], None] | None = None,
    report: Callable[[str], None] = print,
) -> FitResult:
    """Train a model on a task.

    **Arguments:**

    - `model`, `task`: what to train on what.
    - `updates`: how many updates in all, those before a resume included.
    - `batch`: episodes an update.
    - `optimizer`: any Optax optimiser; by default Adam 0.001 with the gradient norm clipped at 1.
    - `optimizer_state`: what the optimiser starts from, such as that of an earlier result; by default a fresh one.
    - `objective`: what to minimise; by default the task's loss.
    - `schedules`: values of the model's named `Fixed` arrays, by the number of the update.
    - `seed`: for data and whatever the model samples.
    - `log_every`: updates a record.
    - `stop_when_solved`: stop at the first record that counts as a solution.
    - `validation`: a task that is scored at each record; the record has its scores with `valid_` before their names,
      and the model that is kept is the one with the lowest loss on it.
    - `validation_episodes`: how many of its episodes; by default all, or 1000.
    - `patience`: stop after so many records without a better loss on the validation task.
    - `folder`: where `metrics.jsonl` and checkpoints go. If it holds checkpoints already the run goes on from the
      newest sound one, and ends with exactly the metrics of an undisturbed run.
    - `save_seconds`: time between checkpoints.
    - `on_record`: called with each new record.
    - `on_progress`: called with (updates done, updates a second) several times a second.
    - `report`: where messages go.

    A loss or gradient that is not finite stops the run with [`Diverged`][]; Ctrl-C with [`Interrupted`][]. The state
    before it is saved in both cases.

    >>> import jax
    >>> from mnemon import Copying, fit, make_model
    >>> task = Copying(delay=3, length=2)
    >>> model = make_model(task, "gru", hidden_size=8, key=jax.random.key(0))
    >>> fit(model, task, updates=20, log_every=10).records[-1]["step"]
    20
    """
    require(updates >= 0, "updates", updates, "a number of updates, 0 or more", "updates=10000")
    require(batch >= 1, "batch", batch, "at least one episode", "batch=10")
    require(log_every >= 1, "log_every", log_every, "at least one update", "log_every=100")
    require(
        patience is None or (validation is not None and patience >= 1),
        "patience",
        patience,
        "one or more records, and a task for validation",
        "patience=5, validation=task",
    )
    objective = default_objective(task) if objective is None else objective
    optimizer = make_optimizer() if optimizer is None else optimizer
    started = time.perf_counter()
    state = init_state(model, task, optimizer, objective, batch, seed)
    if optimizer_state is not None:
        state = eqx.tree_at(lambda s: s.optimizer, state, optimizer_state)
    if validation is not None:
        state = start_validation(state)
    advance = compiled_advance(state, task, optimizer, objective, batch, schedules)
    with contextlib.ExitStack() as stack:
        log = Log(folder)
        checkpoints = None if folder is None else stack.enter_context(Checkpoints(folder / "checkpoints"))
        restored = checkpoints.restore(state, report) if checkpoints else None
        if restored is not None:
            state = restored[1]
        log.cut_after(int(state.update))
        interrupted = stack.enter_context(interrupt_flag())
        done, saved_at, rate = int(state.update), time.perf_counter(), 0.0
        timed_updates, timed_seconds = 0, 0.0
        solved = bool(log.records) and task.solved(log.records[-1])

        def save() -> Path | None:
            log.sync()
            return None if checkpoints is None else checkpoints.save(done, state)

        def enough() -> bool:
            tired = patience is not None and state.best is not None and int(state.best.since) >= patience
            return tired or (stop_when_solved and solved)

        while done < updates and not enough():
            window_end = min(updates, (done // log_every + 1) * log_every)
            count = min(window_end - done, max(1, int(rate * _SECONDS_A_CALL)))
            before = time.perf_counter()
            state, sound = advance(state, count)
            sound = bool(sound)
            elapsed = time.perf_counter() - before
            if not sound:
                done = int(state.update)
                raise Diverged(done + 1, save())
            done += count
            if rate > 0:  # the first call also compiles
                timed_updates, timed_seconds = timed_updates + count, timed_seconds + elapsed
            rate = count / elapsed if rate == 0 else 0.5 * (rate + count / elapsed)
            if done == window_end:
                state, record = close_window(state, done, (done - 1) % log_every + 1)
                if validation is not None:
                    scores = evaluate(state.model, validation, episodes=validation_episodes, batch=batch)
                    record |= {f"valid_{name}": value for name, value in scores.items()}
                    state = _compare(state, scores["loss"])
                log.append(record)
                solved = task.solved(record)
                if on_record is not None:
                    on_record(record)
            if on_progress is not None:
                on_progress(done, timed_updates / timed_seconds if timed_seconds else rate)
            if time.perf_counter() - saved_at > save_seconds:
                save()
                saved_at = time.perf_counter()
            if interrupted.is_set():
                raise Interrupted(f"stopped after update {done}; {kept_at(save())}")
        save()
    seconds = time.perf_counter() - started
    speed = timed_updates / timed_seconds if timed_seconds else rate
    return FitResult(kept_model(state), done, log.records, solved, seconds, speed, state.carry, state.optimizer)


def start_validation(state: TrainState) -> TrainState:
    """The state of a run that keeps the best model."""
    return dataclasses.replace(state, best=Best(state.model, jnp.full((), jnp.inf), jnp.zeros((), int)))


def _compare(state: TrainState, loss: float) -> TrainState:
    """The state after a validation."""
    best = state.best
    if best is None:
        raise ValueError("the run does not validate")
    if loss < float(best.loss):
        best = Best(state.model, jnp.full_like(best.loss, loss), jnp.zeros_like(best.since))
    else:
        best = dataclasses.replace(best, since=best.since + 1)
    return dataclasses.replace(state, best=best)


def kept_model(state: TrainState) -> Model:
    """The best model of a run that validates (from its first validation on), the last one of any other."""
    if state.best is None or bool(jnp.isinf(state.best.loss)):
        return state.model
    return state.best.model
