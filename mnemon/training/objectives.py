"""What an update minimises: (model, episodes) -> loss and metrics."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..model import Model
from ..tasks import AbstractTask, Episode


class Outcome(NamedTuple):
    """What an objective returns beside the loss."""

    metrics: dict[str, Array]
    carry: Any  # for the next update
    statistics: Any  # for `cell.with_statistics`


class AbstractObjective(eqx.Module):
    """What is minimised. `carry` is whatever goes from one update to the next besides the parameters."""

    @abc.abstractmethod
    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> Any:
        """The carry before the first update."""

    @abc.abstractmethod
    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Any, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        """The loss, and what else came of it. With `key=None`: evaluation."""


class Supervised(AbstractObjective):
    """The task's own loss by backpropagation through time.

    Where the task is a stream, the state of the cell is carried from update to update and gradients stop at its
    edges: truncated BPTT. `truncate` also cuts them every so many steps inside an episode.
    """

    truncate: int | None = eqx.field(static=True, default=None)

    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> Any:
        if not task.carries_state:
            return None
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), model.cell.init_state())

    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Any, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        outputs, result = model(
            episodes,
            state=jax.lax.stop_gradient(carry),
            lengths=episodes.length,
            truncate=self.truncate,
            key=key,
        )
        loss, metrics = task.score(outputs, episodes)
        return loss, Outcome(metrics, result.state if task.carries_state else None, result.statistics)
