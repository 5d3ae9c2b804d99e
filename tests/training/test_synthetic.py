"""Synthetic gradients: a predictor that finds the true gradient, and credit from beyond the window."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array, Float

from mnemon import AbstractCell, AbstractTask, Copying, Model, evaluate, fit, make_model, make_optimizer
from mnemon.tasks import Episode
from mnemon.training import Supervised, SyntheticGradients

TASK = Copying(delay=4, symbols=3, length=2)


class LinearState(NamedTuple):
    hidden: Float[Array, " hidden"]


class Linear(AbstractCell[LinearState, Array]):
    """h_t = h_{t-1} A + x_t[0] w + x_t[1:]; the output is h_t."""

    transition: Float[Array, "hidden hidden"]
    write: Float[Array, " hidden"]  # w
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def init_state(self):
        return LinearState(jnp.zeros((self.output_size,)))

    def drive(self, x):
        return x[0] * self.write + x[1:]

    def step(self, state, drive, *, key=None):
        hidden = state.hidden @ jax.lax.stop_gradient(self.transition) + drive
        return LinearState(hidden), hidden


def linear_model(transition, write) -> Model:
    cell = Linear(
        transition=jnp.asarray(transition), write=jnp.asarray(write), input_size=len(write) + 1, output_size=len(write)
    )
    model = Model(cell, cell.output_size, key=jax.random.key(0))
    return eqx.tree_at(lambda m: m.readout_weights, model, jnp.eye(cell.output_size))


class _Made(AbstractTask):
    """A task for tests: squared errors."""

    measures: ClassVar[str] = "what a test needs"
    symbolic: ClassVar[bool] = False
    chance: ClassVar[dict[str, float]] = {"loss": 1.0}
    perfect: ClassVar[dict[str, float]] = {"loss": 0.0}

    def loss(self, outputs, episode):
        return 0.5 * jnp.sum(jnp.where(episode.mask[:, None], (outputs - episode.targets) ** 2, 0.0))

    def metrics(self, outputs, episode):
        return {}

    def oracle(self, episode):
        return episode.targets

    def solved(self, metrics: Mapping[str, float]):
        return metrics["loss"] < 0.05

    def show(self, episode):
        return ""


class Noise(_Made):
    """An endless stream of noise, whose outputs should be zero: the loss is half the square of every state."""

    input_size: ClassVar[int] = 3
    output_size: ClassVar[int] = 2
    horizon: ClassVar[int] = 1
    carries_state: ClassVar[bool] = True

    def sample(self, key):
        inputs = jax.random.normal(key, (2, 3)).at[:, 0].set(0.0)
        return Episode(inputs, jnp.zeros((2, 2)), jnp.ones((2,), bool), jnp.asarray(2))


class FirstSign(_Made):
    """A sign in the first step, noise in the last three, and the sign wanted in the last."""

    input_size: ClassVar[int] = 2
    output_size: ClassVar[int] = 1
    horizon: ClassVar[int] = 9

    def sample(self, key):
        sign_key, noise_key = jax.random.split(key)
        sign = jax.random.rademacher(sign_key, (), float)
        time = jnp.arange(9)
        noise = 0.3 * jax.random.normal(noise_key, (9,))
        inputs = jnp.column_stack([jnp.where(time == 0, sign, 0.0), jnp.where(time >= 6, noise, 0.0)])
        last = time == 8
        return Episode(inputs, jnp.where(last, sign, 0.0)[:, None], last, jnp.asarray(9))


def test_the_predictor_finds_the_gradient_of_an_endless_future():
    r"""A window of two steps, and bootstrapping: M(s) becomes s times the sum of A^k A^kT over all k >= 1."""
    transition = np.array([[0.8, 0.3], [-0.2, 0.6]])
    objective = SyntheticGradients(hidden_size=None, rate=3e-3)
    model = linear_model(transition, np.zeros(2))
    still = optax.set_to_zero()
    result = fit(model, Noise(), updates=3_000, batch=32, optimizer=still, objective=objective, log_every=1_000)
    powers = [np.linalg.matrix_power(transition, k) for k in range(1, 200)]
    endless, one_window = (sum(p @ p.T for p in some) for some in (powers, powers[:2]))
    found = result.carry.predictor
    assert np.abs(endless - one_window).max() > 0.5  # so that a window alone cannot be meant
    np.testing.assert_allclose(found.weights, endless, atol=0.1)
    np.testing.assert_allclose(found.bias, 0, atol=0.1)


def test_a_dependency_longer_than_the_window_is_learned():
    """The sign has to be written large, as noise comes in later; only the first of three windows can do that."""
    ways = {"cut": Supervised(truncate=3), "synthetic": SyntheticGradients(3, hidden_size=None, rate=0.03)}
    optimizer, found = make_optimizer(lr=0.01), {}
    for name, objective in ways.items():
        model = linear_model(np.eye(1), np.array([0.1]))
        found[name] = fit(
            model, FirstSign(), updates=600, batch=32, optimizer=optimizer, objective=objective, log_every=200
        )
    written = {name: float(result.model.cell.write[0]) for name, result in found.items()}
    losses = {name: result.records[-1]["loss"] for name, result in found.items()}
    assert written["cut"] == pytest.approx(0.1)
    assert losses["cut"] > 0.45  # the best that can be done with so small a sign
    assert written["synthetic"] > 1.0
    assert losses["synthetic"] < 0.15


@pytest.mark.parametrize("window", [3, 50])
def test_training_starts_as_truncated_backpropagation(window):
    model = make_model(TASK, "bn-lstm", hidden_size=5, key=jax.random.key(0))
    episodes, key = TASK.batch(jax.random.key(1), 0, 4), jax.random.key(2)
    objective, truncated = SyntheticGradients(window), Supervised(truncate=window)
    carry = objective.init_carry(model, TASK, 4)
    loss, outcome, gradient = eqx.filter_jit(objective.gradient)(model, TASK, episodes, carry, key=key)
    expected, reference, wanted = eqx.filter_jit(truncated.gradient)(model, TASK, episodes, None, key=key)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    made, given = (gradient, outcome.statistics), (wanted, reference.statistics)
    for a, b in zip(jax.tree.leaves(made), jax.tree.leaves(given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert float(outcome.metrics["synthetic_error"]) == 1.0


def test_an_exact_prediction_gives_the_exact_gradient():
    """With the true matrix in M, two windows give the gradient of the whole sequence."""

    class Last(FirstSign):
        def sample(self, key):
            episode = super().sample(key)
            quiet = episode.inputs.at[:, 1].set(0.0)
            return episode._replace(inputs=quiet, targets=jnp.zeros_like(episode.targets))

    task, model = Last(), linear_model(np.array([[0.9]]), np.array([0.7]))
    episodes = task.batch(jax.random.key(0), 0, 5)
    objective = SyntheticGradients(5, hidden_size=None)
    carry = objective.init_carry(model, task, 5)
    exact = jnp.array([[0.9**10]])  # five steps on, and back
    carry = eqx.tree_at(lambda c: c.predictor.weights, carry, exact)
    *_, gradient = eqx.filter_jit(objective.gradient)(model, task, episodes, carry, key=None)
    *_, wanted = eqx.filter_jit(Supervised().gradient)(model, task, episodes, None, key=None)
    np.testing.assert_allclose(gradient.cell.write, wanted.cell.write, rtol=1e-5)


def test_examples_that_have_ended_teach_nothing():
    task, model = FirstSign(), linear_model(np.eye(1), np.array([1.0]))
    episodes = task.batch(jax.random.key(0), 0, 2)
    short = episodes._replace(length=jnp.array([3, 9]), mask=episodes.mask.at[0].set(False))
    objective = SyntheticGradients(3, hidden_size=None)
    carry = objective.init_carry(model, task, 2)
    carry = eqx.tree_at(lambda c: c.predictor.bias, carry, jnp.array([5.0]))
    gradient_of = eqx.filter_jit(objective.gradient)
    *_, gradient = gradient_of(model, task, short, carry, key=None)
    alone = jax.tree.map(lambda leaf: leaf[1:], short)
    *_, of_one = gradient_of(model, task, alone, carry, key=None)
    np.testing.assert_allclose(2 * gradient.cell.write, of_one.cell.write, rtol=1e-5)


def test_a_network_is_evaluated_by_its_own_objective():
    model = make_model(TASK, "gru", hidden_size=5, key=jax.random.key(0))
    synthetic = evaluate(model, TASK, episodes=6, batch=3, objective=SyntheticGradients(3))
    assert synthetic["loss"] == pytest.approx(evaluate(model, TASK, episodes=6, batch=3)["loss"], rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"window": 0}, "window=0"), ({"hidden_size": 0}, "hidden_size=0"), ({"rate": 0.0}, "rate=0")],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SyntheticGradients(**options)
