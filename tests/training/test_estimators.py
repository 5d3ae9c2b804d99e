"""Learning discrete choices: against exact gradients, and the running baseline."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon._errors import BadValue
from mnemon.memory import choose
from mnemon.training.estimators import (
    AuxiliaryReadout,
    Baseline,
    discounted_returns,
    reinforce,
)

DRAWS = 20_000
# Two choices of one of two slots in turn: what is earned at once, and in the end.
FIRST = jnp.array([2.0, -1.0])
LAST = jnp.array([[1.0, -0.5], [0.2, 2.0]])  # [first choice, second choice]
LOGITS = jnp.array([[0.3, -0.2], [-0.5, 0.4]])


def _exact(logits, discount):
    """The gradient of 3.16 in expectation: every choice earns the discounted rewards that follow it."""
    p = jax.nn.softmax(logits, axis=-1)

    def objective(p, other):
        total = 0.0
        for a, b in itertools.product(range(2), range(2)):
            total += p[0, a] * other[1, b] * (FIRST[a] + discount * LAST[a, b])
            total += other[0, a] * p[1, b] * LAST[a, b]
        return total

    fixed = jax.lax.stop_gradient(p)
    return jax.grad(lambda logits: objective(jax.nn.softmax(logits, axis=-1), fixed))(logits)


def _gradients(baseline, discount, count, offset=0.0):
    """One estimate of the gradient for each of `count` draws."""

    def loss(logits, key):
        first, second = (choose(k, row) for k, row in zip(jax.random.split(key), logits, strict=True))
        rewards = offset + jnp.stack([first.weights @ FIRST, first.weights @ LAST @ second.weights])
        log_probabilities = jnp.stack([first.log_probability, second.log_probability])
        return reinforce(log_probabilities[None], rewards[None], baseline, discount=discount)[0]

    keys = jax.random.split(jax.random.key(0), count)
    return np.asarray(jax.jit(jax.vmap(lambda key: jax.grad(loss)(LOGITS, key)))(keys))


@pytest.mark.parametrize("discount", [1.0, 0.6])
@pytest.mark.parametrize("baseline", [Baseline.start(), Baseline(jnp.array(0.7), jnp.array(0.0))])
def test_reinforce_has_the_exact_gradient_in_expectation(discount, baseline):
    estimates = _gradients(baseline, discount, DRAWS)
    error = estimates.std(0) / np.sqrt(DRAWS)
    exact = -np.asarray(_exact(LOGITS, discount))
    assert np.all(np.abs(estimates.mean(0) - exact) < 4 * error)
    assert np.all(np.abs(exact) > 8 * error), "the error is small enough to tell"


def test_a_good_baseline_makes_the_estimate_less_noisy():
    good = Baseline(jnp.array(10.5), jnp.array(0.0))
    assert _gradients(good, 1.0, 300, 10.0).std() < 0.3 * _gradients(Baseline.start(), 1.0, 300, 10.0).std()


def test_discounted_returns():
    rewards = jnp.array([[1.0, 2.0, 4.0, 8.0]])
    np.testing.assert_allclose(discounted_returns(rewards, 0.5), [[4.0, 6.0, 8.0, 8.0]])


def test_running_baseline_and_variance():
    rewards = jnp.array([[3.0, 3.0], [5.0, 5.0]])
    update = jax.jit(lambda baseline: reinforce(jnp.zeros((2, 2)), rewards, baseline, discount=0.0, decay=0.9)[1])
    baseline = update(Baseline.start())
    np.testing.assert_allclose(baseline.reward, 0.4, rtol=1e-6)
    np.testing.assert_allclose(baseline.variance, 0.1 * 17.0, rtol=1e-6)
    for _ in range(200):
        baseline = update(baseline)
    np.testing.assert_allclose(baseline.reward, 4.0, rtol=1e-5)
    np.testing.assert_allclose(baseline.variance, 1.0, rtol=1e-4)


def test_variance_normalisation_divides_large_signals_only():
    logs, rewards = jnp.full((1, 1), -0.5), jnp.full((1, 1), 6.0)
    loss = {v: float(reinforce(logs, rewards, Baseline(jnp.array(0.0), jnp.array(v)))[0]) for v in (0.0, 0.25, 9.0)}
    assert loss == {0.0: 3.0, 0.25: 3.0, 9.0: 1.0}


def test_only_rewarded_steps_count_and_padding_is_not_learned():
    logs = -jnp.arange(1.0, 5.0)[None]
    rewarded = jnp.array([[False, True, False, False]])
    baseline = Baseline(jnp.array(1.0), jnp.array(0.0))

    def loss(logs, rewards):
        return reinforce(logs, rewards, baseline, rewarded=rewarded, discount=0.5)[0]

    rewards = jnp.array([[100.0, 3.0, jnp.inf, -100.0]])
    gradient = jax.grad(loss)(logs, rewards)
    np.testing.assert_allclose(gradient, [[-1.0, -2.0, 0.0, 0.0]])
    np.testing.assert_array_equal(jax.grad(loss, argnums=1)(logs, jnp.ones((1, 4))), np.zeros((1, 4)))


def test_auxiliary_readout_trains_only_its_own_matrices():
    readout = AuxiliaryReadout(6, 3, 2, key=jax.random.key(0))
    read, x = jax.random.normal(jax.random.key(1), (4, 6)), jnp.ones((4, 3))

    def loss(everything):
        readout, read, x = everything
        return -jnp.mean(jax.nn.log_softmax(readout(read, x))[:, 0])

    own, of_read, of_x = eqx.filter_grad(loss)((readout, read, x))
    assert np.any(np.asarray(own.read_weights) != 0)
    assert np.any(np.asarray(own.input_weights) != 0)
    np.testing.assert_array_equal(of_read, 0.0)
    np.testing.assert_array_equal(of_x, 0.0)
    np.testing.assert_allclose(readout(read, x), read @ readout.read_weights + x @ readout.input_weights, rtol=1e-6)


def test_bad_values_are_refused():
    zero = jnp.zeros((1, 2))
    with pytest.raises(BadValue, match=r"discount=1.5 cannot work"):
        reinforce(zero, zero, Baseline.start(), discount=1.5)
    with pytest.raises(BadValue, match=r"decay=1.0 cannot work"):
        reinforce(zero, zero, Baseline.start(), decay=1.0)
