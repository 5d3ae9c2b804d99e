"""What a cell's state holds, as named arrays over time."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from ..model import Model
from ..tasks import AbstractTask


@dataclasses.dataclass(frozen=True)
class Trace:
    """One episode, what the network answered, and its state after each step."""

    inputs: np.ndarray  # [time] symbols or [time, channels]
    targets: np.ndarray
    mask: np.ndarray  # [time], the scored steps
    outputs: np.ndarray  # [time, outputs]
    state: dict[str, np.ndarray]  # each [time, ...]


def named_arrays(state: Any) -> dict[str, Any]:
    """The arrays of a state by name.

    >>> import jax
    >>> from mnemon.cells import LSTM
    >>> list(named_arrays(LSTM(2, 3, key=jax.random.key(0)).init_state()))
    ['hidden', 'cell']
    """
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def trace(model: Model, task: AbstractTask, key: PRNGKeyArray) -> Trace:
    """Run one fresh episode and keep everything."""
    episodes = task.batch(key, 0, 1)

    @eqx.filter_jit
    def run(model, episodes):
        outputs, result = model(episodes, observe=lambda state: state, lengths=episodes.length)
        return outputs, named_arrays(result.observed)

    outputs, observed = run(model, episodes)
    end = int(episodes.length[0])

    def cut(array) -> np.ndarray:
        return np.asarray(array)[0, :end]

    return Trace(
        cut(episodes.inputs),
        cut(episodes.targets),
        cut(episodes.mask),
        cut(outputs),
        {name: cut(array) for name, array in observed.items()},
    )
