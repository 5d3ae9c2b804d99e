"""Discrete choices: exact values, and gradient estimates against exact gradients on two slots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon._errors import BadValue
from mnemon.memory import (
    choose,
    entropy,
    gumbel_sigmoid,
    gumbel_softmax,
    least_recently_used,
    log_probability,
    most_likely,
    sample,
    straight_through,
)

LOGITS = jnp.array([0.3, -1.0, 0.9])
DRAWS = 40_000
WORDS = np.array([1.5, -0.5])  # a memory of two words of one number
TARGET = 0.4


def _draws(function, seed=0):
    return jax.vmap(function)(jax.random.split(jax.random.key(seed), DRAWS))


def test_samples_are_one_hot_and_have_the_softmax_as_mean():
    for draw in (lambda k: sample(k, LOGITS), lambda k: gumbel_softmax(k, LOGITS, 3.0)):
        samples = np.asarray(_draws(draw))
        assert set(np.unique(samples)) == {0.0, 1.0}
        np.testing.assert_array_equal(samples.sum(1), 1.0)
        error = 4 * np.sqrt(0.25 / DRAWS)
        np.testing.assert_allclose(samples.mean(0), jax.nn.softmax(LOGITS), atol=error)


def test_both_estimators_make_the_same_choice():
    key = jax.random.key(5)
    np.testing.assert_array_equal(choose(key, LOGITS).weights, choose(key, LOGITS, 2.0).weights)
    np.testing.assert_array_equal(choose(None, LOGITS, 2.0).weights, [0.0, 0.0, 1.0])


def test_log_probability_and_entropy():
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum()
    for i in range(3):
        np.testing.assert_allclose(log_probability(LOGITS, jnp.eye(3)[i]), np.log(probabilities[i]), rtol=1e-6)
    np.testing.assert_allclose(entropy(LOGITS), -(probabilities * np.log(probabilities)).sum(), rtol=1e-6)
    huge = jnp.array([1e6, 0.0, -1e6])
    assert np.isfinite(jax.grad(entropy)(huge)).all()
    assert float(entropy(huge)) == 0.0


def test_straight_through_has_the_value_of_one_and_the_gradient_of_the_other():
    hard, soft = jnp.array([1.0, 0.0]), jnp.array([0.3, 0.7])
    np.testing.assert_array_equal(straight_through(hard, soft), hard)
    gradient = jax.jacobian(lambda h, s: straight_through(h, s), argnums=(0, 1))(hard, soft)
    np.testing.assert_array_equal(gradient[0], np.zeros((2, 2)))
    np.testing.assert_array_equal(gradient[1], np.eye(2))


def test_choices_without_relaxation_have_no_gradient():
    for choice in (most_likely, lambda logits: sample(jax.random.key(0), logits)):
        np.testing.assert_array_equal(jax.jacobian(choice)(LOGITS), np.zeros((3, 3)))


def _exact_gradient(logits):
    """Of the expected loss (r - target)^2 of a read of one of two words, with respect to the logits."""
    p = np.exp(logits) / np.exp(logits).sum()
    losses = (WORDS - TARGET) ** 2
    return p * (losses - p @ losses)


def test_score_function_estimate_is_unbiased():
    logits = jnp.array([0.4, -0.3])

    def estimate(key):
        choice = sample(key, logits)
        loss = (choice @ jnp.asarray(WORDS) - TARGET) ** 2
        return loss * jax.grad(log_probability)(logits, choice)

    estimates = np.asarray(_draws(estimate))
    error = estimates.std(0) / np.sqrt(DRAWS)
    assert np.all(np.abs(estimates.mean(0) - _exact_gradient(logits)) < 4 * error)


@pytest.mark.parametrize("inverse_temperature", [1.0, 3.0])
def test_straight_through_estimate_has_the_bias_that_it_should_have(inverse_temperature):
    """Its expectation is an integral over the difference of two Gumbel variables, which is logistic."""
    logits = jnp.array([0.4, -0.3])

    def estimate(key):
        def loss(logits):
            return (gumbel_softmax(key, logits, inverse_temperature) @ jnp.asarray(WORDS) - TARGET) ** 2

        return jax.grad(loss)(logits)

    noise = np.linspace(-40, 40, 400_001)
    density = 0.25 / np.cosh(noise / 2) ** 2
    odds = float(logits[0] - logits[1]) + noise
    slope_of_soft = inverse_temperature * 0.25 / np.cosh(inverse_temperature * odds / 2) ** 2
    slope_of_loss = 2 * (np.where(odds > 0, WORDS[0], WORDS[1]) - TARGET) * (WORDS[0] - WORDS[1])
    expected = np.trapezoid(density * slope_of_soft * slope_of_loss, noise)

    estimates = np.asarray(_draws(estimate))[:, 0]
    error = estimates.std() / np.sqrt(DRAWS)
    assert abs(estimates.mean() - expected) < 4 * error
    bias = expected - _exact_gradient(logits)[0]
    measured = {1.0: 0.1363, 3.0: 0.1086}[inverse_temperature]  # the exact gradient is 0.0887
    np.testing.assert_allclose(bias, measured, atol=1e-4)
    assert abs(bias) > 10 * error


def test_gumbel_sigmoid():
    gates = np.asarray(_draws(lambda key: gumbel_sigmoid(key, jnp.array([0.8]), 0.3)))[:, 0]
    np.testing.assert_allclose((gates > 0.5).mean(), jax.nn.sigmoid(0.8), atol=4 * np.sqrt(0.25 / DRAWS))
    assert ((gates < 0.1) | (gates > 0.9)).mean() > 0.7, "near to binary"
    np.testing.assert_allclose(gumbel_sigmoid(None, jnp.array([0.6]), 0.3), jax.nn.sigmoid(jnp.array([2.0])), rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.0, -0.3])
def test_temperatures_that_are_not_positive_are_refused(temperature):
    with pytest.raises(BadValue, match=r"temperature=.* wanted a positive number"):
        gumbel_sigmoid(None, LOGITS, temperature)
    with pytest.raises(BadValue, match=r"inverse_temperature=.* wanted a positive number"):
        gumbel_softmax(jax.random.key(0), LOGITS, temperature)


def test_least_recently_used_avoids_what_was_used():
    logits, average = LOGITS, jnp.zeros(3)
    first, average = least_recently_used(logits, average, jnp.array(1.0))
    np.testing.assert_array_equal(first, logits)
    np.testing.assert_allclose(average, 0.9 * logits, rtol=1e-6)
    second, average = least_recently_used(logits, average, jnp.array(1.0))
    np.testing.assert_allclose(second, 0.1 * logits, rtol=1e-5)
    np.testing.assert_allclose(average, 0.99 * logits, rtol=1e-6)
    closed, _ = least_recently_used(logits, average, jnp.array(0.0))
    np.testing.assert_array_equal(closed, logits)


def test_no_gradient_goes_through_the_average():
    def later(logits):
        _, average = least_recently_used(logits, logits, jnp.array(0.5))
        return jnp.sum(least_recently_used(jnp.zeros(3), average, jnp.array(1.0))[0])

    np.testing.assert_array_equal(jax.grad(later)(LOGITS), np.zeros(3))
