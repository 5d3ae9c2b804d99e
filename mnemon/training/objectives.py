"""What an update minimises: (model, episodes) -> loss and metrics."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..cells import trained
from ..feedback import FedBack, FedBackState
from ..model import Model
from ..tasks import AbstractInteractive, AbstractTask, Episode
from ..unroll import unroll


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

    def gradient(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Any, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome, PyTree[Array]]:
        """The loss, what else came of it, and the gradient that the optimiser gets: by default that of the loss.

        A method that changes gradients, as those against forgetting do, overrides it.
        """
        parameters, rest = eqx.partition(model, trained(model))

        def loss_of(parameters: PyTree[Array]) -> tuple[Float[Array, ""], Outcome]:
            return self(eqx.combine(parameters, rest), task, episodes, carry, key=key)

        (loss, outcome), gradient = jax.value_and_grad(loss_of, has_aux=True)(parameters)
        return loss, outcome, gradient

    def views(self, carry: Any) -> "dict[str, AbstractObjective]":
        """Other ways to score the network, by name, with what was learned beside it: by default none."""
        del carry
        return {}

    def after_task(self, model: Model, task: AbstractTask, carry: Any, *, key: PRNGKeyArray) -> "AbstractObjective":
        """The objective for the next task, after this one was learned: by default the same."""
        return self

    def after_growth(self, teacher: Model, student: Model, widening: Any) -> "AbstractObjective":
        """The objective for a network that has grown ([`widen`][mnemon.lifelong.widen]): by default the same."""
        return self


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
            last=task.scored_steps,
        )
        loss, metrics = task.score(outputs, episodes)
        return loss, Outcome(metrics, result.state if task.carries_state else None, result.statistics)


class Interactive(AbstractObjective):
    """The task's loss where the network's answers come back as inputs.

    In training the teacher's answers come back as often as the task says (always: teacher forcing; mostly: DAgger); in
    evaluation they are the network's own. What comes back is discrete, so no gradient goes through it: the network
    first lives through the episode, which needs no backward pass, and then learns from it as from any other.
    `truncate` is that of [`Supervised`][].
    """

    truncate: int | None = eqx.field(static=True, default=None)

    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> Any:
        return None

    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Any, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        if not isinstance(task, AbstractInteractive):
            raise TypeError(f"{type(task).__name__} does not take the network's answers as inputs")
        learn = Supervised(self.truncate)
        if key is None:
            lived, outputs = _live(model, task, episodes, key)
            loss, metrics = task.score(outputs, lived)
            return loss, Outcome(metrics, None, None)
        if task.teaching == 1.0:
            return learn(model, task, episodes, carry, key=key)
        parameters, rest = eqx.partition(model, eqx.is_array)
        lived, _ = _live(eqx.combine(jax.lax.stop_gradient(parameters), rest), task, episodes, key)
        return learn(model, task, lived, carry, key=key)


def _live(
    model: Model, task: AbstractInteractive, episodes: Episode, key: PRNGKeyArray | None
) -> tuple[Episode, Float[Array, "batch time outputs"]]:
    """The episodes as they go when answers come back, with what the network saw as their inputs, and its outputs."""
    worlds = jax.vmap(task.begin)(episodes)
    batch = episodes.inputs.shape[0]
    inner = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), model.cell.init_state())
    result = unroll(
        FedBack(model, task, jax.tree.map(lambda leaf: leaf[0], worlds), input_size=task.input_size),
        episodes.inputs,
        state=FedBackState(inner, worlds),
        lengths=episodes.length,
        observe=lambda state: state.world,
        key=key,
        precision=model.precision,
    )
    lived = jax.vmap(task.lived)(episodes, result.observed)
    # Each step saw the world as the step before had left it.
    seen = jax.tree.map(lambda first, after: jnp.insert(after[:, :-1], 0, first, axis=1), worlds, result.observed)
    return lived._replace(inputs=jax.vmap(jax.vmap(task.feed))(seen, episodes.inputs)), result.outputs


def default_objective(task: AbstractTask, truncate: int | None = None) -> AbstractObjective:
    """The objective that a task is trained and evaluated with unless another is given."""
    return Interactive(truncate) if isinstance(task, AbstractInteractive) else Supervised(truncate)
