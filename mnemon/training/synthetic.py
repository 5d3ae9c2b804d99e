"""Synthetic gradients for truncated BPTT (Jaderberg et al. 2017)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from .._errors import require
from ..cells import trained
from ..cells._init import glorot_normal
from ..model import Model
from ..tasks import AbstractTask, Episode
from .objectives import AbstractObjective, Outcome, Supervised


class Predictor(eqx.Module):
    """M: the gradient of all later losses from a state, with one hidden layer or none; zero at first."""

    hidden_weights: Float[Array, "state hidden"] | None
    hidden_bias: Float[Array, " hidden"] | None
    weights: Float[Array, "seen state"]
    bias: Float[Array, " state"]

    def __init__(self, state_size: int, hidden_size: int | None, *, key: PRNGKeyArray):
        self.hidden_weights = None if hidden_size is None else glorot_normal(key, state_size, hidden_size)
        self.hidden_bias = None if hidden_size is None else jnp.zeros((hidden_size,))
        self.weights = jnp.zeros((state_size if hidden_size is None else hidden_size, state_size))
        self.bias = jnp.zeros((state_size,))

    def __call__(self, state: Float[Array, " state"]) -> Float[Array, " state"]:
        seen = state
        if self.hidden_weights is not None and self.hidden_bias is not None:
            seen = jax.nn.relu(state @ self.hidden_weights + self.hidden_bias)
        return seen @ self.weights + self.bias


class SyntheticCarry(NamedTuple):
    """What [`SyntheticGradients`][] takes from one update to the next."""

    state: Any  # of the cell, where the task is a stream
    predictor: Predictor
    optimizer: Any  # the state of the predictor's optimiser


class _Steps(NamedTuple):
    """What a window consumes, as [batch, time, ...]."""

    inputs: Array
    real: Bool[Array, "batch time"]


class _Edges(NamedTuple):
    """The states at which windows begin, which gradients do not cross, as [edge, batch, ...]."""

    states: Float[Array, "edges batch state"]
    open: Bool[Array, "edges batch"]  # False where no gradient can come back: the example has ended or starts afresh


class SyntheticGradients(AbstractObjective):
    r"""The task's loss by truncated BPTT, with a prediction of the gradient that truncation leaves out.

    A network M sees the state \(s\) at which a window ends. It predicts the derivative of all later losses, which is
    given to the window as the gradient of its last state. What M is trained to match is the gradient that the next
    window finds for the same state, itself with a prediction at its end:

    $$ M(s_t) \approx \frac{\partial L_{t:t+n}}{\partial s_t} + M(s_{t+n}) \frac{\partial s_{t+n}}{\partial s_t} $$

    So credit reaches further back than a window is long, and its cost does not. M starts as zero: training starts as
    plain truncated BPTT. It works on the numbers of any cell's state, for each example alone, and learns beside the
    network with an Adam of its own. `synthetic_error` is the squared error of its predictions relative to the square of
    their targets: 1 for a network that predicts nothing.

    **Arguments:**

    - `window`: steps of a window. Without it an update is one window, which is of use where the task is a stream.
    - `hidden_size`: units of M's hidden layer; with None M is linear, with the square of the state's size in weights.
    - `rate`: learning rate of M.

    **Notes.** The windows of an update are run with the same parameters and make one update, as with
    [`Supervised`][]'s `truncate`. Not offered: the auxiliary task of predicting the next prediction, and labels as a
    further input of M.
    """

    window: int | None = eqx.field(static=True, default=None)
    hidden_size: int | None = eqx.field(static=True, default=128)
    rate: float = eqx.field(static=True, default=1e-3)

    def __check_init__(self):
        require(
            self.window is None or self.window >= 1, "window", self.window, "a positive number of steps", "window=20"
        )
        units = self.hidden_size
        require(units is None or units >= 1, "hidden_size", units, "at least one unit, or none", "hidden_size=64")
        require(self.rate > 0, "rate", self.rate, "a positive learning rate", "rate=0.001")

    def init_carry(self, model: Model, task: AbstractTask, batch: int) -> SyntheticCarry:
        size = ravel_pytree(_numbers(model.cell.init_state()))[0].size
        predictor = Predictor(size, self.hidden_size, key=jax.random.key(0))
        optimizer = optax.adam(self.rate).init(eqx.filter(predictor, eqx.is_array))
        return SyntheticCarry(Supervised().init_carry(model, task, batch), predictor, optimizer)

    def __call__(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: SyntheticCarry, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome]:
        probes = self._probes(model, episodes, carry)
        loss, (outcome, _) = self._loss(model, task, episodes, carry, probes, key)
        return loss, outcome

    def gradient(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: SyntheticCarry, *, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], Outcome, PyTree[Array]]:
        parameters, rest = eqx.partition(model, trained(model))

        def loss_of(parameters: PyTree[Array], probes: Array):
            return self._loss(eqx.combine(parameters, rest), task, episodes, carry, probes, key)

        (loss, (outcome, edges)), (gradient, found) = jax.value_and_grad(loss_of, argnums=(0, 1), has_aux=True)(
            parameters, self._probes(model, episodes, carry)
        )
        targets = found * found.shape[1]  # the loss is a mean over the batch; M speaks of single examples
        return loss, self._learned(outcome, edges, targets), gradient

    def _probes(self, model: Model, episodes: Episode, carry: SyntheticCarry) -> Float[Array, "edges batch state"]:
        """Zeros that are added to the states at which windows begin: their gradient is what M has to predict."""
        batch, time = episodes.mask.shape
        edges = (time - 1) // (self.window or time) + (carry.state is not None)
        flat = ravel_pytree(_numbers(model.cell.init_state()))[0]
        return jnp.zeros((edges, batch, flat.size), flat.dtype)

    def _loss(
        self, model: Model, task: AbstractTask, episodes: Episode, carry: SyntheticCarry, probes: Array, key: Any
    ) -> tuple[Float[Array, ""], tuple[Outcome, _Edges | None]]:
        """The task's loss, with the gradient of windows and predictions; what else came of it, and the edges."""
        batch, time = episodes.mask.shape
        size = min(self.window or time, time)
        count = (time - 1) // size
        head = time - count * size  # the first window may be shorter
        keys = None if key is None else jax.random.split(key, count + 1)
        real = jnp.arange(time)[None] < episodes.length[:, None]
        steps = _Steps(episodes.inputs, real)

        def run(state: Any, steps: _Steps, key: Any, reset: Any = None) -> tuple[Any, tuple[Array, Any]]:
            part = episodes._replace(inputs=steps.inputs, reset=reset)
            outputs, result = model(part, state=state, mask=steps.real, key=key)
            return result.state, (outputs, result.statistics)

        def prediction(state: Any, open_: Bool[Array, " batch"]) -> Float[Array, ""]:
            """A term of value zero whose gradient with respect to the state is M's prediction."""
            flat = _flat(state)
            guess = jax.vmap(carry.predictor)(flat) * open_[:, None] / batch
            term = jnp.sum(jax.lax.stop_gradient(guess) * flat)
            return term - jax.lax.stop_gradient(term)

        def window(state: Any, given: tuple[_Steps, Array, Any]):
            steps, probe, key = given
            open_ = steps.real[:, 0]
            after, made = run(_cut(state, probe), steps, key)
            return after, (made, prediction(state, open_), _Edges(_flat(state), open_))

        state, every, edges = carry.state, jnp.ones((batch,), bool), []
        if state is not None:  # a stream goes on
            edges.append(_Edges(_flat(state)[None], (every if episodes.reset is None else ~episodes.reset)[None]))
            state, probes = _cut(state, probes[0]), probes[1:]
        first = jax.tree.map(lambda leaf: leaf[:, :head], steps)
        state, made = run(state, first, jax.tree.map(lambda key: key[0], keys), episodes.reset)
        predictions = jnp.zeros(())
        if count:
            rest = jax.tree.map(
                lambda leaf: jnp.swapaxes(leaf[:, head:].reshape(batch, count, size, *leaf.shape[2:]), 0, 1), steps
            )
            given = (rest, probes, jax.tree.map(lambda key: key[1:], keys))
            state, ((outputs, statistics), terms, inner) = jax.lax.scan(window, state, given)
            made = _joined(made, (jnp.swapaxes(outputs, 0, 1).reshape(batch, count * size, -1), statistics))
            predictions, edges = jnp.sum(terms), [*edges, inner]
        if task.carries_state:
            predictions = predictions + prediction(state, every)
        outputs, statistics = made
        loss, metrics = task.score(outputs, episodes)
        after = carry._replace(state=jax.lax.stop_gradient(state) if task.carries_state else None)
        found = jax.tree.map(lambda *parts: jnp.concatenate(parts), *edges) if edges else None
        return loss + predictions, (Outcome(metrics, after, statistics), found)

    def _learned(self, outcome: Outcome, edges: _Edges | None, targets: Float[Array, "edges batch state"]) -> Outcome:
        """The outcome with an M that has learned from what the windows found."""
        error = jnp.ones(())
        carry: SyntheticCarry = outcome.carry
        if edges is not None:
            weights = edges.open[..., None].astype(targets.dtype)
            states, targets = jax.lax.stop_gradient((edges.states, targets * weights))

            def squares(predictor: Predictor) -> Float[Array, ""]:
                guesses = jax.vmap(jax.vmap(predictor))(states)
                return jnp.sum(weights * (guesses - targets) ** 2)

            value, gradient = jax.value_and_grad(squares)(carry.predictor)
            steps, optimizer = optax.adam(self.rate).update(gradient, carry.optimizer)
            predictor = eqx.apply_updates(carry.predictor, steps)
            carry = carry._replace(predictor=predictor, optimizer=optimizer)
            square = jnp.sum(targets**2)
            error = jnp.where(square > 0, value / jnp.where(square > 0, square, 1.0), 1.0)
        return outcome._replace(metrics={**outcome.metrics, "synthetic_error": error}, carry=carry)


def _numbers(state: Any) -> Any:
    """What of a state has a gradient."""
    return eqx.filter(state, eqx.is_inexact_array)


def _flat(states: Any) -> Float[Array, "batch state"]:
    return jax.vmap(lambda state: ravel_pytree(_numbers(state))[0])(states)


def _joined(first: tuple[Array, Any], rest: tuple[Array, Any]) -> tuple[Array, Any]:
    """Outputs [batch, time, ...] and statistics [time, ...], those of the later windows as [window, time, ...]."""
    statistics = jax.tree.map(lambda a, b: jnp.concatenate([a, b.reshape(-1, *b.shape[2:])]), first[1], rest[1])
    return jnp.concatenate([first[0], rest[0]], axis=1), statistics


def _cut(states: Any, probe: Float[Array, "batch state"]) -> Any:
    """The same states, of which only the probe has a gradient."""

    def one(state: Any, probe: Float[Array, " state"]) -> Any:
        numbers, rest = eqx.partition(jax.lax.stop_gradient(state), eqx.is_inexact_array)
        flat, unravel = ravel_pytree(numbers)
        return eqx.combine(unravel(flat + probe), rest)

    return jax.vmap(one)(states, probe)
