"""What GEM costs: an update of the lifelong copy benchmark against the number of earlier tasks and of parameters."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..cells import count_parameters
from ..lifelong import GEM, EpisodicMemory, Recent, distribution
from ..model import make_model
from ..training import AbstractObjective, Supervised, make_optimizer
from ..training._updates import compiled_advance, init_state
from ._measure import measure_alternately

_BATCH = 10
# A call makes several updates, as in training, so that what a call costs counts little; of plain ones about as many as
# take the time of those with GEM.
_UPDATES, _PLAIN_FOR_A_TASK = 10, 0.5


@dataclasses.dataclass(frozen=True)
class GemCost:
    """The cost of updates at one level of copy with all levels before it in the memory."""

    units: int
    parameters: int
    tasks: int  # earlier ones
    plain_ms: float
    gem_ms: float
    memory_mb: float  # stored examples and the gradients of the earlier tasks

    @property
    def ratio(self) -> float:
        """How many plain updates one with GEM costs."""
        return self.gem_ms / self.plain_ms


def gem_cost(units: int, tasks: int, *, seconds: float = 2.0) -> GemCost:
    """Measure an LSTM of so many units at level `tasks + 1`, plain and with GEM in turn."""
    levels = [distribution("copy").task(level) for level in range(1, tasks + 2)]
    model = make_model(levels[-1], "lstm", hidden_size=units, peepholes=False, key=jax.random.key(0))
    memory = EpisodicMemory()
    for number, task in enumerate(levels[:-1]):
        stored = Recent.empty(task, memory.slots).write(task.batch(jax.random.key(number), 0, memory.slots))
        memory = memory.with_task(stored)
    repeats = _UPDATES * max(1, math.floor(_PLAIN_FOR_A_TASK * tasks))
    calls = {
        "plain": _updates(model, levels[-1], Supervised(), repeats),
        "gem": _updates(model, levels[-1], GEM(memory=memory), _UPDATES),
    }
    timings = measure_alternately(calls, seconds=seconds)
    parameters = count_parameters(model)
    stored_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(memory.episodes))
    return GemCost(
        units,
        parameters,
        tasks,
        1e3 * timings["plain"].median / repeats,
        1e3 * timings["gem"].median / _UPDATES,
        (stored_bytes + tasks * parameters * jnp.zeros(()).nbytes) / 2**20,
    )


def _updates(model: Any, task: Any, objective: AbstractObjective, count: int) -> Callable[[], object]:
    """A call that makes so many updates, as the trainer does."""
    optimizer = make_optimizer()
    state = init_state(model, task, optimizer, objective, _BATCH, 0)
    advance = compiled_advance(state, task, optimizer, objective, _BATCH)
    return lambda: jax.block_until_ready(eqx.filter(advance(state, count)[0], eqx.is_array))


def gem_rows(sizes: Sequence[int], tasks: Sequence[int], seconds: float) -> list[dict[str, Any]]:
    """A row for each size and number of tasks."""
    return [
        {
            "units": cost.units,
            "parameters": cost.parameters,
            "earlier tasks": cost.tasks,
            "plain_ms": round(cost.plain_ms, 3),
            "gem_ms": round(cost.gem_ms, 3),
            "plain updates": round(cost.ratio, 2),
            "memory_mb": round(cost.memory_mb, 2),
        }
        for cost in (gem_cost(units, count, seconds=seconds) for units in sizes for count in tasks)
    ]
