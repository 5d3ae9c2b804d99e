"""Tasks of growing difficulty, one after the other (thesis 5.3.4)."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from jaxtyping import Float

from .._errors import require
from ..model import Model
from ..tasks import AbstractTask
from ..training import AbstractObjective, Supervised, evaluate, fit, make_optimizer
from .expansion import widen, widen_optimizer


@dataclasses.dataclass(frozen=True)
class Curriculum:
    """What came of a curriculum."""

    model: Model
    matrix: Float[np.ndarray, "trained evaluated"]  # R, a row for each level that was trained, the failed one included
    untrained: Float[np.ndarray, " evaluated"]  # accuracy of the network before training
    cleared: int  # levels
    expanded: dict[int, int]  # new size by the level at which the network grew


def learn(
    model: Model,
    levels: Sequence[AbstractTask],
    *,
    threshold: float,
    objective: AbstractObjective | None = None,
    updates: int = 10_000,
    batch: int = 10,
    window: int = 100,
    sizes: Sequence[int] = (),
    optimizer: optax.GradientTransformation | None = None,
    metric: str = "accuracy",
    episodes: int = 100,
    seed: int = 0,
    folder: Path | None = None,
    report: Callable[[str], None] = print,
) -> Curriculum:
    """Train on each level in turn; grow at a failure, stop at one that growing does not cure.

    **Arguments:**

    - `model`: the network before training.
    - `levels`: tasks of one distribution, from easy to hard.
    - `threshold`: the mean of the `metric` over the last `window` updates that passes a level.
    - `objective`: what is minimised and what is done against forgetting; by default the task's loss alone.
    - `updates`: of each level; twice as many after the network has grown.
    - `batch`: episodes an update.
    - `window`: updates over which a level is judged.
    - `sizes`: the hidden sizes to grow to, one at each failure; none: the first failure ends the run.
    - `optimizer`: any Optax optimiser; by default Adam 0.001 with the gradient norm clipped at 1. Its state goes
      from level to level.
    - `metric`: the accuracy among the metrics of the tasks.
    - `episodes`: for each entry of the matrix.
    - `seed`: for data, growth and whatever the network samples.
    - `folder`: where each level has its records and checkpoints. A run that was interrupted goes on from there, in the
      middle of a level, and ends as if undisturbed; the network before it grew stays in its own folder.
    - `report`: where messages go.
    """
    require(len(levels) >= 1, "levels", levels, "at least one task", "levels=[Copying(delay=5), Copying(delay=10)]")
    require(updates >= window, "updates", updates, f"at least the {window} of a window", f"updates={10 * window}")
    objective = Supervised() if objective is None else objective
    optimizer = make_optimizer() if optimizer is None else optimizer

    def accuracies(model: Model) -> list[float]:
        return [evaluate(model, task, episodes=episodes, seed=seed)[metric] for task in levels]

    def train(model: Model, level: int, optimizer_state: Any, name: str, updates: int) -> Any:
        return fit(
            model,
            levels[level],
            updates=updates,
            batch=batch,
            optimizer=optimizer,
            optimizer_state=optimizer_state,
            objective=objective,
            seed=int(jax.random.randint(jax.random.fold_in(jax.random.key(seed), level), (), 0, 1 << 30)),
            log_every=window,
            folder=None if folder is None else folder / name,
            report=report,
        )

    untrained, rows, expanded, waiting = accuracies(model), [], {}, list(sizes)
    cleared, optimizer_state = 0, None
    for level in range(len(levels)):
        name = f"level-{level + 1:02d}"
        result = train(model, level, optimizer_state, name, updates)
        while result.records[-1][metric] < threshold and waiting:
            size = waiting.pop(0)
            key = jax.random.fold_in(jax.random.key(seed), 1000 + size)
            wide, widening = widen(result.model, size, key=key)
            state = widen_optimizer(optimizer, result.optimizer_state, result.model, wide, widening)
            expanded[level] = size
            report(f"level {level + 1}: {result.records[-1][metric]:.3f} is below {threshold}; growing to {size}")
            result = train(wide, level, state, f"{name}-size-{size}", 2 * updates)
        model, optimizer_state = result.model, result.optimizer_state
        rows.append(accuracies(model))
        passed = result.records[-1][metric] >= threshold
        report(f"level {level + 1}: {result.records[-1][metric]:.3f}, {'passed' if passed else 'failed'}")
        if not passed:
            break
        cleared += 1
        objective = objective.after_task(model, levels[level], result.carry, key=jax.random.key(level))
    return Curriculum(model, np.array(rows), np.array(untrained), cleared, expanded)
