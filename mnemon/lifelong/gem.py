"""Gradient episodic memory (Lopez-Paz & Ranzato 2017) and its average form A-GEM (Chaudhry et al. 2019)."""

import abc
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from .._cores import free_cores, map_on_cores
from .._errors import require
from ..model import Model
from ..tasks import AbstractTask, Episode
from ..training.objectives import AbstractObjective, Outcome, Supervised
from .memory import EpisodicMemory, Recent
from .projection import project, project_average

GradientOf = Callable[[Any], PyTree[Array]]  # of a batch of episodes


class Rehearsal(NamedTuple):
    """What goes from one update to the next with an episodic memory."""

    inner: Any  # the carry of the objective
    memory: EpisodicMemory  # earlier tasks
    recent: Recent  # this task


class AbstractRehearsal(AbstractObjective):
    """An objective whose gradient heeds the examples of earlier tasks.

    The tasks must belong to one distribution: their loss may depend on outputs and episodes only, as the memory of
    every task is scored by the task that is being learned.
    """

    inner: eqx.AbstractVar[AbstractObjective]
    memory: eqx.AbstractVar[EpisodicMemory]

    @abc.abstractmethod
    def adjust(
        self, gradient: PyTree[Array], gradient_of: GradientOf, memory: EpisodicMemory, key: PRNGKeyArray | None
    ) -> tuple[PyTree[Array], Bool[Array, ""]]:
        """The gradient for the optimiser, and whether it differs from `gradient`.

        `gradient_of` gives the gradient of the loss of a batch of episodes.
        """

    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> Rehearsal:
        memory = self.memory.for_next_task()
        recent = Recent.empty(task, memory.share(memory.tasks + 1))
        return Rehearsal(self.inner.init_carry(model, task, batch), memory, recent)

    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Rehearsal, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        loss, outcome = self.inner(model, task, episodes, carry.inner, key=key)
        return loss, outcome._replace(
            carry=Rehearsal(outcome.carry, carry.memory, carry.recent.write(episodes)),
        )

    def gradient(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Rehearsal, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome, PyTree[Array]]:
        loss, outcome, gradient = super().gradient(model, task, episodes, carry, key=key)
        projected = jnp.asarray(False)
        if carry.memory.tasks:

            def gradient_of(stored: Episode) -> PyTree[Array]:
                fresh = self.inner.init_carry(model, task, stored.length.size)
                return self.inner.gradient(model, task, stored, fresh, key=key)[2]

            gradient, projected = self.adjust(gradient, gradient_of, carry.memory, key)
        metrics = {**outcome.metrics, "projected": projected.astype(loss.dtype)}
        return loss, outcome._replace(metrics=metrics), gradient

    def after_task(
        self, model: Model, task: AbstractTask, carry: Rehearsal, *, key: PRNGKeyArray
    ) -> "AbstractRehearsal":
        # tree_at counts an empty memory, which has no arrays, as no leaf
        return eqx.tree_at(lambda o: o.memory, self, remembered(carry), is_leaf=_is_memory)


class GEM(AbstractRehearsal):
    """GEM: no update may raise the loss of any earlier task on its stored examples, to first order.

    Train with it as with any objective; then `result.carry` holds the memory for the next task:

    >>> import jax
    >>> from mnemon import Copying, fit, make_model
    >>> easy, hard = Copying(delay=2, length=2), Copying(delay=4, length=2)
    >>> model = make_model(easy, "gru", hidden_size=8, key=jax.random.key(0))
    >>> first = fit(model, easy, updates=20, objective=GEM())
    >>> objective = GEM(memory=remembered(first.carry))
    >>> second = fit(first.model, hard, updates=20, objective=objective)
    >>> remembered(second.carry).tasks
    2

    **Notes.** The constraint holds for the gradient; an optimiser that rescales its entries, such as the Adam of the
    thesis, keeps it only approximately.
    """

    inner: AbstractObjective
    memory: EpisodicMemory
    margin: float = eqx.field(static=True)
    margin_rule: Literal["added", "bound"] = eqx.field(static=True)
    ridge: float = eqx.field(static=True)
    relative_ridge: bool = eqx.field(static=True)

    def __init__(
        self,
        *,
        inner: AbstractObjective | None = None,
        memory: EpisodicMemory | None = None,
        margin: float = 0.5,
        margin_rule: Literal["added", "bound"] = "added",
        ridge: float = 1e-4,
        relative_ridge: bool = True,
    ):
        """**Arguments:**

        - `inner`: what is minimised; by default the task's loss.
        - `memory`: examples of the tasks before; by default none, with 10 slots a task.
        - `margin`, `margin_rule`, `ridge`, `relative_ridge`: as for [`project`][mnemon.lifelong.project].
        """
        require(margin >= 0, "margin", margin, "0 or more", "margin=0.5")
        require(margin_rule in ("added", "bound"), "margin_rule", margin_rule, "added or bound", "margin_rule='added'")
        require(ridge > 0, "ridge", ridge, "a positive number", "ridge=0.0001")
        self.inner = Supervised() if inner is None else inner
        self.memory = EpisodicMemory() if memory is None else memory
        self.margin, self.margin_rule, self.ridge, self.relative_ridge = margin, margin_rule, ridge, relative_ridge

    def adjust(
        self, gradient: PyTree[Array], gradient_of: GradientOf, memory: EpisodicMemory, key: PRNGKeyArray | None
    ) -> tuple[PyTree[Array], Bool[Array, ""]]:
        groups = [map_on_cores(gradient_of, batch) for batch in memory.batches(free_cores())]
        return project(
            gradient,
            jax.tree.map(lambda *rows: jnp.concatenate(rows), *groups),
            margin=self.margin,
            margin_rule=self.margin_rule,
            ridge=self.ridge,
            relative_ridge=self.relative_ridge,
        )


class AverageGEM(AbstractRehearsal):
    """A-GEM: no update may raise the mean loss of a random batch of the memory, at the cost of one more gradient."""

    inner: AbstractObjective
    memory: EpisodicMemory
    batch: int = eqx.field(static=True)

    def __init__(
        self, *, inner: AbstractObjective | None = None, memory: EpisodicMemory | None = None, batch: int = 256
    ):
        """**Arguments:**

        - `inner`: what is minimised; by default the task's loss.
        - `memory`: examples of the tasks before; by default none, with 10 slots a task.
        - `batch`: examples of the memory an update, without replacement; all, if there are no more.
        """
        require(batch >= 1, "batch", batch, "at least one example", "batch=256")
        self.inner = Supervised() if inner is None else inner
        self.memory = EpisodicMemory() if memory is None else memory
        self.batch = batch

    def adjust(
        self, gradient: PyTree[Array], gradient_of: GradientOf, memory: EpisodicMemory, key: PRNGKeyArray | None
    ) -> tuple[PyTree[Array], Bool[Array, ""]]:
        stored = memory.union()
        total = stored.length.size
        if key is not None and self.batch < total:
            chosen = jax.random.choice(jax.random.fold_in(key, 0), total, (self.batch,), replace=False)
            stored = jax.tree.map(lambda leaf: leaf[chosen], stored)
        return project_average(gradient, gradient_of(stored))


def _is_memory(node: Any) -> bool:
    return isinstance(node, EpisodicMemory)


def remembered(carry: Rehearsal) -> EpisodicMemory:
    """The memory after a task, for the objective of the next one."""
    return carry.memory.with_task(carry.recent)
