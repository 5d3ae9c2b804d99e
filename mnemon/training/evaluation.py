"""Scores of a model on fresh data."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._errors import require
from ..model import Model
from ..tasks import AbstractTask
from ._records import Record
from .objectives import AbstractObjective, default_objective


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
