"""Erase-and-add against a loop, and what it means."""

import jax
import jax.numpy as jnp
import numpy as np

from mnemon.memory import erase_and_add

HEADS, SLOTS, WORD = 2, 5, 3


def _random(seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((SLOTS, WORD)),
        rng.dirichlet(np.ones(SLOTS), HEADS),
        rng.uniform(0, 1, (HEADS, WORD)),
        rng.standard_normal((HEADS, WORD)),
    )


def test_it_is_the_loop():
    memory, weights, erase, add = _random()
    expected = memory.copy()
    for h in range(HEADS):
        for i in range(SLOTS):
            expected[i] = expected[i] * (1 - weights[h, i] * erase[h])
    for h in range(HEADS):
        for i in range(SLOTS):
            expected[i] = expected[i] + weights[h, i] * add[h]
    with jax.enable_x64(True):
        written = erase_and_add(*(jnp.asarray(a) for a in (memory, weights, erase, add)))
    np.testing.assert_allclose(written, expected, rtol=1e-12)


def test_a_full_write_replaces_one_word_and_no_write_leaves_all():
    memory, _, _, add = (jnp.asarray(a, jnp.float32) for a in _random())
    weights = jax.nn.one_hot(jnp.array([3]), SLOTS)
    written = erase_and_add(memory, weights, jnp.ones((1, WORD)), add[:1])
    np.testing.assert_array_equal(written, memory.at[3].set(add[0]))
    unwritten = erase_and_add(memory, 0 * weights, jnp.ones((1, WORD)), add[:1])
    np.testing.assert_array_equal(unwritten, memory)
