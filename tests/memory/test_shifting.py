"""Interpolation, circular shift and sharpening against loops, and at their edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon.memory import circular_shift, interpolate, sharpen

HEADS, SLOTS = 2, 7


def _weights(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(SLOTS), HEADS)


@pytest.mark.parametrize("span", [1, 3, 5])
def test_shift_is_the_circular_convolution(span):
    weights, shifts = _weights(), np.random.default_rng(1).dirichlet(np.ones(span), HEADS)
    expected = np.zeros((HEADS, SLOTS))
    for h in range(HEADS):
        for i in range(SLOTS):
            for d in range(span):
                expected[h, i] += weights[h, (i - (d - span // 2)) % SLOTS] * shifts[h, d]
    with jax.enable_x64(True):
        np.testing.assert_allclose(circular_shift(jnp.asarray(weights), jnp.asarray(shifts)), expected, rtol=1e-12)


def test_interpolation_and_sharpening_are_their_equations():
    first, second, gates, gammas = _weights(0), _weights(1), np.array([0.2, 1.0]), np.array([1.0, 3.7])
    with jax.enable_x64(True):
        mixed = interpolate(*(jnp.asarray(a) for a in (gates, first, second)))
        sharp = sharpen(jnp.asarray(first), jnp.asarray(gammas))
    np.testing.assert_allclose(mixed[0], 0.2 * first[0] + 0.8 * second[0], rtol=1e-12)
    np.testing.assert_allclose(mixed[1], first[1], rtol=1e-12)
    powers = (first + 1e-12) ** gammas[:, None]
    np.testing.assert_allclose(sharp, powers / powers.sum(1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("gamma", [1.0, 30.0, 1e6])
def test_sharpening_is_finite_for_one_hot_and_uniform_weightings(dtype, gamma):
    weights = jnp.stack([jax.nn.one_hot(3, SLOTS), jnp.full((SLOTS,), 1 / SLOTS)]).astype(dtype)
    exponents = jnp.full((HEADS,), gamma, dtype)
    sharp = sharpen(weights, exponents)
    assert sharp.dtype == dtype
    np.testing.assert_allclose(np.asarray(sharp, np.float32), np.asarray(weights, np.float32), atol=1e-2)
    for leaf in jax.grad(lambda w, g: jnp.sum(sharpen(w, g)[:, 2]), (0, 1))(weights, exponents):
        assert np.all(np.isfinite(np.asarray(leaf, np.float32)))


def test_gradient_of_sharpening_at_zero_weight_is_the_true_one():
    """With exponent 1 sharpening only normalises: d w[0] / sum(w) at w = [0, 1] is 1."""
    slope = jax.grad(lambda w: sharpen(w[None], jnp.ones(1))[0, 0])(jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(slope, [1.0, 0.0], atol=1e-5)
