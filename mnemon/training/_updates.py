"""The state of a run, and many updates of it in one compiled call."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._cores import from_cores, on_every_core
from .._plan import choose_plan
from ..cells import trained
from ..model import Model
from ._records import Record
from .schedules import Schedule, set_scheduled


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


def init_state(model, task, optimizer, objective, batch: int, seed: int) -> TrainState:
    key = jax.random.key(seed)
    carry = objective.init_carry(model, task, batch)
    opt_state = optimizer.init(eqx.filter(model, trained(model)))

    def metrics_of_one_update():
        episodes = task.batch(key, jnp.asarray(0), batch)
        _, outcome, _ = objective.gradient(model, task, episodes, carry, key=key)
        return {**outcome.metrics, "loss": jnp.zeros(()), "gradient_norm": jnp.zeros(())}

    shapes = eqx.filter_eval_shape(metrics_of_one_update)
    totals = {name: jnp.zeros(()) for name in sorted(shapes)}
    state = TrainState(model, opt_state, carry, jnp.zeros((), int), key, totals)
    # An array made from a Python number has another type after its first update, for which all would be compiled again.
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype) if eqx.is_inexact_array(leaf) else leaf, state)


def _norm(gradient) -> Float[Array, ""]:
    """The norm of a gradient, also where its square overflows; at most 1e30, so that means of norms are finite."""
    largest = jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(gradient)]).max()
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
    return jnp.minimum(scale * optax.tree.norm(jax.tree.map(lambda g: g / scale, gradient)), 1e30)


def compiled_advance(state: TrainState, task, optimizer, objective, batch: int, schedules: Sequence[Schedule] = ()):
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


def close_window(state: TrainState, step: int, count: int) -> tuple[TrainState, Record]:
    totals = jax.device_get(state.totals)
    record = {"step": step, **{name: float(total) / count for name, total in totals.items()}}
    zeros = {name: jnp.zeros_like(total) for name, total in state.totals.items()}
    return eqx.tree_at(lambda s: s.totals, state, zeros), record
