"""Content addressing against loops over heads and slots, and at its edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon.memory import content_weights, cosine_similarity, oneplus

HEADS, SLOTS, WORD = 2, 7, 3


def _random(seed=0):
    rng = np.random.default_rng(seed)
    keys, memory = rng.standard_normal((HEADS, WORD)), rng.standard_normal((SLOTS, WORD))
    return keys, rng.uniform(0.5, 9, HEADS), memory, rng.uniform(0, 1, (HEADS, WORD))


def _cosine(k, v):
    return k @ v / np.sqrt((k @ k + 1e-6) * (v @ v + 1e-6))


@pytest.mark.parametrize("masked", [False, True])
def test_similarity_and_weights_are_the_loop(masked):
    keys, strengths, memory, mask = _random()
    seen = mask if masked else np.ones_like(mask)
    similarity = np.array([[_cosine(m * k, m * v) for v in memory] for k, m in zip(keys, seen, strict=True)])
    powers = np.exp(strengths[:, None] * similarity)
    with jax.enable_x64(True):
        given = [jnp.asarray(a) for a in (keys, strengths, memory, mask)]
        mask = given[3] if masked else None
        np.testing.assert_allclose(cosine_similarity(given[0], given[2], mask), similarity, rtol=1e-12)
        weights = content_weights(given[0], given[1], given[2], mask)
    np.testing.assert_allclose(weights, powers / powers.sum(1, keepdims=True), rtol=1e-12)


def test_masked_out_entries_do_not_count():
    keys, _, memory, _ = _random()
    mask = jnp.ones((HEADS, WORD)).at[:, 1].set(0.0)
    other = memory.copy()
    other[:, 1] = 100.0
    keys = jnp.asarray(keys, jnp.float32)
    first, second = (cosine_similarity(keys, jnp.asarray(m, jnp.float32), mask) for m in (memory, other))
    np.testing.assert_array_equal(first, second)


def test_a_huge_strength_picks_the_one_most_like_the_key():
    _, _, memory, _ = _random()
    memory = jnp.asarray(memory, jnp.float32)
    weights = content_weights(memory[3:5], jnp.array([1e6, 1e6]), memory)
    np.testing.assert_allclose(weights, jax.nn.one_hot(jnp.array([3, 4]), SLOTS), atol=1e-6)


@jax.jit
def _gradient_and_weights(*arguments):
    def loss(*arguments):
        weights = content_weights(*arguments)
        return jnp.sum(weights[:, 1]), weights

    return jax.grad(loss, tuple(range(len(arguments))), has_aux=True)(*arguments)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-6, 1.0, 1e6, 1e15])
def test_finite_for_empty_and_huge_memories(dtype, masked, scale):
    keys, strengths, memory, mask = _random()
    keys[0], memory = 0, memory * scale
    memory[2] = 0
    for scaled in (keys, keys * scale):
        arguments = tuple(jnp.asarray(a, dtype) for a in (scaled, strengths, memory, mask)[: 4 if masked else 3])
        gradient, weights = _gradient_and_weights(*arguments)
        assert weights.dtype == dtype
        np.testing.assert_allclose(np.asarray(weights, np.float32).sum(1), 1.0, rtol=2e-2)
        np.testing.assert_allclose(np.asarray(weights, np.float32)[0], 1 / SLOTS, rtol=1e-2)  # a zero key
        for leaf in gradient:
            assert np.all(np.isfinite(np.asarray(leaf, np.float32)))


def test_oneplus():
    np.testing.assert_allclose(oneplus(jnp.array([-200.0, 0.0, 200.0])), [1.0, 1 + np.log(2), 201.0])
