"""REINFORCE for cells that make discrete choices (thesis 3.3.1)."""

import operator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from .._errors import require
from ..model import Model
from ..tasks import AbstractTask, Episode
from .estimators import AuxiliaryReadout, Baseline, reinforce
from .objectives import AbstractObjective, Outcome, Supervised


class ReinforceCarry(NamedTuple):
    """What [`Reinforce`][] takes from one update to the next."""

    state: Any  # of the cell, where the task is a stream
    baseline: Baseline
    readout: AuxiliaryReadout | None
    optimizer: Any  # the state of the readout's optimiser


class FromMemory(AbstractObjective):
    """The task's loss when its predictions are made from what was read and the input alone (thesis 3.6)."""

    readout: AuxiliaryReadout

    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> Any:
        return Supervised().init_carry(model, task, batch)

    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Any, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        observe = operator.attrgetter("read")
        _, result = model(episodes, state=carry, lengths=episodes.length, key=key, observe=observe)
        outputs = self.readout(result.observed, model.embed(episodes.inputs))
        loss, metrics = task.score(outputs, episodes)
        return loss, Outcome(metrics, result.state if task.carries_state else None, result.statistics)


class Reinforce(AbstractObjective):
    """The task's loss by backpropagation, and by REINFORCE through the choices of the cell.

    The reward of a step is minus its loss (`task.step_losses`): the log-likelihood of its prediction. For any cell
    whose state has the `log_probability` of its choices. The value is that of the task's loss; REINFORCE only adds to
    its gradient.

    **Arguments:**

    - `auxiliary`: reward the log-likelihood of a prediction from what was read and the input alone (3.17), so that the
      controller cannot earn without its memory; for any cell whose state has a `read`. The prediction learns beside
      the network, with an Adam of its own, and `auxiliary_loss` is reported.
    - `discount`: of rewards to come.
    - `decay`: of the running averages that centre and scale the rewards.
    - `rate`: learning rate of the auxiliary prediction.
    - `truncate`: stop gradients through the state every so many steps.
    """

    auxiliary: bool = eqx.field(static=True, default=False)
    discount: float = eqx.field(static=True, default=1.0)
    decay: float = eqx.field(static=True, default=0.9)
    rate: float = eqx.field(static=True, default=1e-3)
    truncate: int | None = eqx.field(static=True, default=None)

    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> ReinforceCarry:
        state = eqx.filter_eval_shape(lambda cell: cell.init_state(), model.cell)
        for name in ("log_probability", "read") if self.auxiliary else ("log_probability",):
            require(
                hasattr(state, name), "cell", type(model.cell).__name__, f"a cell with a {name}", "tardis-reinforce"
            )
        readout = optimizer = None
        if self.auxiliary:
            sizes = state.read.shape[0], model.cell.input_size, task.output_size
            readout = AuxiliaryReadout(*sizes, key=jax.random.key(0))
            optimizer = optax.adam(self.rate).init(eqx.filter(readout, eqx.is_array))
        return ReinforceCarry(Supervised().init_carry(model, task, batch), Baseline.start(), readout, optimizer)

    def views(self, carry: ReinforceCarry) -> dict[str, AbstractObjective]:
        return {} if carry.readout is None else {"from memory": FromMemory(carry.readout)}

    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: ReinforceCarry, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        outputs, result = model(
            episodes,
            state=jax.lax.stop_gradient(carry.state),
            lengths=episodes.length,
            truncate=self.truncate,
            key=key,
            observe=lambda state: (state.log_probability, state.read if self.auxiliary else None),
        )
        log_probabilities, read = result.observed
        loss, metrics = task.score(outputs, episodes)
        rewards, readout, optimizer = -jax.vmap(task.step_losses)(outputs, episodes), carry.readout, carry.optimizer
        if readout is not None:
            x = model.embed(episodes.inputs)

            def auxiliary_loss(readout: AuxiliaryReadout):
                losses = jax.vmap(task.step_losses)(readout(read, x), episodes)
                return jnp.sum(jnp.where(episodes.mask, losses, 0.0)) / jnp.sum(episodes.mask), -losses

            (metrics["auxiliary_loss"], rewards), gradient = jax.lax.stop_gradient(
                jax.value_and_grad(auxiliary_loss, has_aux=True)(readout)
            )
            steps, optimizer = optax.adam(self.rate).update(gradient, optimizer)
            readout = eqx.apply_updates(readout, steps)
        choices, baseline = reinforce(
            log_probabilities,
            rewards,
            carry.baseline,
            discount=self.discount,
            decay=self.decay,
            rewarded=episodes.mask,
        )
        # The loss is a mean over scored steps where `reinforce` has their sum; its value means nothing.
        choices = choices * episodes.mask.shape[0] / jnp.sum(episodes.mask)
        state = result.state if task.carries_state else None
        after = ReinforceCarry(state, *jax.lax.stop_gradient((baseline, readout, optimizer)))
        return loss + choices - jax.lax.stop_gradient(choices), Outcome(metrics, after, result.statistics)
