"""The trainer: many updates in one compiled call, exact resume."""

import contextlib
import dataclasses
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._cores import from_cores, on_every_core
from .._errors import MnemonError, require
from ..cells import trained
from ..model import Model
from ..tasks import AbstractTask
from ..unroll import choose_plan
from .checkpoints import Checkpoints
from .objectives import AbstractObjective, default_objective
from .optimizers import make_optimizer
from .schedules import Schedule, set_scheduled

Record = dict[str, float]
METRICS_FILE = "metrics.jsonl"
# How long one compiled call should take: short enough for progress and Ctrl-C, long enough to cost nothing.
_SECONDS_A_CALL = 0.5


def _where(checkpoint: Path | None) -> str:
    return "no checkpoint was kept" if checkpoint is None else f"the last good checkpoint is {checkpoint}"


class Diverged(MnemonError):
    """The loss, or what the optimizer made of its gradient, was not finite."""

    def __init__(self, update: int, checkpoint: Path | None):
        super().__init__(f"the loss or its gradient was not finite at update {update}; {_where(checkpoint)}")
        self.update, self.checkpoint = update, checkpoint

    def __reduce__(self):  # from one process to another
        return type(self), (self.update, self.checkpoint)


class Interrupted(MnemonError):
    """Ctrl-C: the run was saved and can go on."""


class Best(eqx.Module):
    """The model with the lowest loss on the validation task so far."""

    model: Model
    loss: Float[Array, ""]
    since: Int[Array, ""]  # records after it


class TrainState(eqx.Module):
    """Everything that an exact resume needs."""

    model: Model
    optimizer: Any  # the optimiser's state
    carry: Any  # the objective's carry
    update: Int[Array, ""]  # updates done
    key: PRNGKeyArray  # the run's key; that of an update is derived from it and the number of the update
    totals: dict[str, Float[Array, ""]]  # sums of the metrics since the last record
    best: Best | None = None  # only with validation


@dataclasses.dataclass(frozen=True)
class FitResult:
    """What [`fit`][mnemon.training.fit] returns."""

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
    state = _init_state(model, task, optimizer, objective, batch, seed)
    if optimizer_state is not None:
        state = eqx.tree_at(lambda s: s.optimizer, state, optimizer_state)
    if validation is not None:
        state = start_validation(state)
    advance = _compiled_advance(state, task, optimizer, objective, batch, schedules)
    with contextlib.ExitStack() as stack:
        log = _Log(folder)
        checkpoints = None if folder is None else stack.enter_context(Checkpoints(folder / "checkpoints"))
        restored = checkpoints.restore(state, report) if checkpoints else None
        if restored is not None:
            state = restored[1]
        log.cut_after(int(state.update))
        interrupted = stack.enter_context(_interrupt_flag())
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
                state, record = _close_window(state, done, (done - 1) % log_every + 1)
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
                raise Interrupted(f"stopped after update {done}; {_where(save())}")
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


def _init_state(model, task, optimizer, objective, batch: int, seed: int) -> TrainState:
    key = jax.random.key(seed)
    carry = objective.init_carry(model, task, batch)
    opt_state = optimizer.init(eqx.filter(model, trained(model)))

    def metrics_of_one_update():
        episodes = task.batch(key, jnp.asarray(0), batch)
        _, outcome, _ = objective.gradient(model, task, episodes, carry, key=key)
        return {**outcome.metrics, "loss": jnp.zeros(()), "gradient_norm": jnp.zeros(())}

    shapes = eqx.filter_eval_shape(metrics_of_one_update)
    totals = {name: jnp.zeros(()) for name in sorted(shapes)}
    # An array made from a Python number has another type after its first update, which would be compiled again.
    return TrainState(model, opt_state, carry, jnp.zeros((), int), key, totals)


def _norm(gradient) -> Float[Array, ""]:
    """The norm of a gradient, also where its square overflows; at most 1e30, so that means of norms are finite."""
    largest = jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(gradient)]).max()
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
    return jnp.minimum(scale * optax.tree.norm(jax.tree.map(lambda g: g / scale, gradient)), 1e30)


def _compiled_advance(state: TrainState, task, optimizer, objective, batch: int, schedules: Sequence[Schedule] = ()):
    """A compiled function (state, count) -> (state after `count` updates, whether all was finite).

    The count is not a constant of the program, so that one program runs every piece of the run and results do not
    depend on how it was cut.
    """
    static = eqx.partition(state, eqx.is_array)[1]

    def one_update(state: TrainState, task) -> tuple[TrainState, Array]:
        data_key, model_key = jax.random.split(jax.random.fold_in(state.key, state.update))
        episodes = task.batch(data_key, state.update, batch)
        model = set_scheduled(state.model, schedules, state.update, model_key)

        loss, outcome, gradient = objective.gradient(model, task, episodes, state.carry, key=model_key)
        norm = _norm(gradient)
        parameters = eqx.filter(model, trained(model))
        steps, opt_state = optimizer.update(gradient, state.optimizer, parameters)
        metrics = {**outcome.metrics, "loss": loss, "gradient_norm": norm}
        totals = {name: total + metrics[name] for name, total in state.totals.items()}
        model = eqx.apply_updates(model, steps)
        model = eqx.tree_at(lambda m: m.cell, model, model.cell.with_statistics(outcome.statistics))
        after = TrainState(model, opt_state, outcome.carry, state.update + 1, state.key, totals, state.best)
        # A gradient too long for its squares is no harm where clipping makes a step of zero of it, as in PyTorch.
        changed = jax.tree.leaves(eqx.filter((steps, opt_state), eqx.is_inexact_array))
        return after, jnp.isfinite(loss) & jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in changed]))

    @eqx.filter_jit
    def advance(state: TrainState, task, count) -> tuple[TrainState, Array]:
        end = state.update + count

        def body(loop):
            arrays, _ = loop
            before = eqx.combine(arrays, static)
            after, sound = one_update(before, task)
            kept = jax.tree.map(lambda new, old: jnp.where(sound, new, old), eqx.filter(after, eqx.is_array), arrays)
            return kept, sound

        def more(loop):
            arrays, sound = loop
            return sound & (arrays.update < end)

        arrays, sound = jax.lax.while_loop(more, body, (eqx.filter(state, eqx.is_array), jnp.asarray(True)))
        return eqx.combine(arrays, static), sound

    # What the task holds may be large: it is brought where the program wants it once, not at each call.
    inputs = eqx.filter_eval_shape(lambda: task.batch(state.key, jnp.asarray(0), batch).inputs)
    if choose_plan(state.model.cell, *inputs.shape[:2]).share:
        arrays, rest = eqx.partition(task, eqx.is_array)
        task = eqx.combine(on_every_core(arrays), rest)
    return lambda state, count: from_cores(advance(state, task, jnp.asarray(count)))


def _close_window(state: TrainState, step: int, count: int) -> tuple[TrainState, Record]:
    totals = jax.device_get(state.totals)
    record = {"step": step, **{name: float(total) / count for name, total in totals.items()}}
    zeros = {name: jnp.zeros_like(total) for name, total in state.totals.items()}
    return eqx.tree_at(lambda s: s.totals, state, zeros), record


class _Log:
    """The append-only file of records. Only whole lines count; lines after the checkpoint are cut on resume."""

    def __init__(self, folder: Path | None):
        self._path = None if folder is None else folder / METRICS_FILE
        self.records: list[Record] = [] if self._path is None else read_records(self._path)

    def cut_after(self, update: int) -> None:
        self.records = [record for record in self.records if record["step"] <= update]
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part = self._path.with_suffix(".part")
            part.write_text("".join(json.dumps(record) + "\n" for record in self.records))
            os.replace(part, self._path)

    def append(self, record: Record) -> None:
        self.records.append(record)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")

    def sync(self) -> None:
        """Make sure that the records are on the disk before the checkpoint that follows them."""
        if self._path is not None:
            with self._path.open("a") as file:
                os.fsync(file.fileno())


def read_records(path: Path) -> list[Record]:
    """The whole lines of a metrics file; a last line that was cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


@contextlib.contextmanager
def _interrupt_flag() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that the trainer can finish its update and save; a second Ctrl-C interrupts."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def handler(number, frame):
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()

    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)


def evaluate(
    model: Model,
    task: AbstractTask,
    *,
    episodes: int | None = None,
    batch: int = 100,
    seed: int = 0,
    objective: AbstractObjective | None = None,
) -> Record:
    """Mean loss and metrics over `episodes` fresh episodes (as many whole batches as hold them), deterministic cell.

    Without a number, all episodes of a task that has a finite number of them, else 1000. The data are not those of a
    training run with the same seed.
    """
    require(episodes is None or episodes >= 1, "episodes", episodes, "at least one episode", "episodes=1000")
    objective = default_objective(task) if objective is None else objective
    batch = batch if episodes is None else min(batch, episodes)
    count = (task.epoch(batch) or -(-1000 // batch)) if episodes is None else -(-episodes // batch)
    key = jax.random.fold_in(jax.random.key(seed), 0x7E57)

    scores = _scores(model, task, objective, key, batch, count)
    return {name: float(values.mean()) for name, values in scores.items()}


@eqx.filter_jit
def _scores(model: Model, task: AbstractTask, objective: AbstractObjective, key, batch: int, count: int):
    """Loss and metrics of each batch. Compiled once, however often a model of one shape is examined."""

    def one(carry, update):
        data = task.batch(jax.random.fold_in(key, update), update, batch)
        loss, outcome = objective(model, task, data, carry, key=None)
        return outcome.carry, {**outcome.metrics, "loss": loss}

    carry = objective.init_carry(model, task, batch)
    return jax.lax.scan(one, carry, jnp.arange(count))[1]
