"""Elastic weight consolidation (Kirkpatrick et al. 2017)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from .._errors import require
from ..cells import trained
from ..model import Model
from ..tasks import AbstractTask, Episode
from ..training.objectives import AbstractObjective, Outcome, Supervised
from .expansion import Widening, widen_tree


class Anchor(eqx.Module):
    r"""What EWC keeps of a task: where its solution is and how much each parameter matters there."""

    parameters: PyTree[Array]  # theta*
    importance: PyTree[Array]  # F, the diagonal of the Fisher information

    @classmethod
    def at(
        cls, model: Model, task: AbstractTask, episodes: Episode, *, inner: AbstractObjective | None = None
    ) -> "Anchor":
        """The anchor of a trained model: F is the mean over episodes of the squared gradient of their loss.

        That is the (empirical) Fisher information where the loss is a negative log-likelihood.
        """
        inner = Supervised() if inner is None else inner
        carry = inner.init_carry(model, task, 1)

        def square(total: PyTree[Array], episode: Episode) -> tuple[PyTree[Array], None]:
            alone = jax.tree.map(lambda leaf: leaf[None], episode)
            _, _, gradient = inner.gradient(model, task, alone, carry, key=None)
            return jax.tree.map(lambda t, g: t + g**2, total, gradient), None

        parameters = eqx.filter(model, trained(model))
        zero = jax.tree.map(jnp.zeros_like, parameters)
        # One episode after another: the gradients of all at once would take as many times the parameters' memory.
        total, _ = jax.lax.scan(square, zero, episodes)
        return cls(parameters, jax.tree.map(lambda t: t / episodes.length.size, total))

    def distance(self, parameters: PyTree[Array]) -> Float[Array, ""]:
        r"""\(\sum_i F_i (\theta_i - \theta_i^\star)^2\)."""
        of_leaves = jax.tree.map(
            lambda f, now, then: jnp.sum(f * (now - then) ** 2), self.importance, parameters, self.parameters
        )
        return jax.tree.reduce(jnp.add, of_leaves)


class EWC(AbstractObjective):
    r"""EWC: parameters that mattered for earlier tasks are held where they were.

    $$ L + \frac{\lambda}{2} \sum_{k < t} \sum_i F_{k,i} (\theta_i - \theta_{k,i}^\star)^2 $$

    >>> import jax
    >>> from mnemon import Copying, fit, make_model
    >>> easy, hard = Copying(delay=2, length=2), Copying(delay=4, length=2)
    >>> model = make_model(easy, "gru", hidden_size=8, key=jax.random.key(0))
    >>> first = fit(model, easy, updates=20)
    >>> anchor = Anchor.at(first.model, easy, easy.batch(jax.random.key(1), 0, 10))
    >>> second = fit(first.model, hard, updates=20, objective=EWC((anchor,), strength=100.0))
    """

    inner: AbstractObjective
    anchors: tuple[Anchor, ...]
    strength: float = eqx.field(static=True)  # lambda
    episodes: int = eqx.field(static=True)

    def __init__(
        self,
        anchors: tuple[Anchor, ...] = (),
        *,
        strength: float = 1000.0,
        episodes: int = 10,
        inner: AbstractObjective | None = None,
    ):
        r"""**Arguments:**

        - `anchors`: one for each task before.
        - `strength`: \(\lambda\).
        - `episodes`: for the anchor of each task that is learned from now on.
        - `inner`: L; by default the task's loss.
        """
        require(strength >= 0, "strength", strength, "0 or more", "strength=1000.0")
        self.inner = Supervised() if inner is None else inner
        require(episodes >= 1, "episodes", episodes, "at least one episode", "episodes=10")
        self.strength, self.anchors, self.episodes = strength, tuple(anchors), episodes

    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> Any:
        return self.inner.init_carry(model, task, batch)

    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: Any, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        loss, outcome = self.inner(model, task, episodes, carry, key=key)
        parameters = eqx.filter(model, trained(model))
        penalty = sum((anchor.distance(parameters) for anchor in self.anchors), jnp.zeros(()))
        return loss + 0.5 * self.strength * penalty, outcome

    def after_task(self, model: Model, task: AbstractTask, carry: Any, *, key: PRNGKeyArray) -> "EWC":
        anchor = Anchor.at(model, task, task.batch(key, 0, self.episodes), inner=self.inner)
        return EWC((*self.anchors, anchor), strength=self.strength, episodes=self.episodes, inner=self.inner)

    def after_growth(self, teacher: Model, student: Model, widening: Widening) -> "EWC":
        """Copies of a unit are held as it was: each as far from its anchor, its gradient a part of the old one."""
        old, new = (eqx.filter(model, trained(model)) for model in (teacher, student))

        def grown(tree: PyTree[Array], *, input_power: int, output_power: int) -> PyTree[Array]:
            return widen_tree(tree, teacher, student, widening, input_power=input_power, output_power=output_power)

        def of(anchor: Anchor) -> Anchor:
            moved = grown(jax.tree.map(jnp.subtract, old, anchor.parameters), input_power=1, output_power=0)
            importance = grown(anchor.importance, input_power=0, output_power=2)
            return Anchor(jax.tree.map(jnp.subtract, new, moved), importance)

        anchors = tuple(map(of, self.anchors))
        return EWC(anchors, strength=self.strength, episodes=self.episodes, inner=self.inner)
