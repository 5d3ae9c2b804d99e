"""Sparse access: same results and gradients as on dense arrays, and search."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon.memory import largest, least_recent, mark_accessed, nearest, read_rows, wipe_and_add

SLOTS, WORD = 7, 3
MEMORY = jax.random.normal(jax.random.key(0), (SLOTS, WORD))


def _random(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


def test_reading_has_the_gradient_of_plain_indexing():
    rows = jnp.array([[4, 1], [1, 1]])  # repeated rows add up

    def loss(read):
        def of_memory(memory):
            words, after = read(memory, rows)
            return jnp.sum(jnp.sin(words)) + jnp.sum(jnp.cos(after)) + jnp.sum(memory**3)

        return jax.grad(of_memory)(MEMORY)

    np.testing.assert_allclose(loss(read_rows), loss(lambda memory, rows: (memory[rows], memory)), rtol=1e-6)


def _dense_write(memory, rows, weights, words):
    erase = jnp.sum(jax.nn.one_hot(rows[:, -1], SLOTS), axis=0)
    dense = jnp.sum(jax.nn.one_hot(rows, SLOTS) * weights[..., None], axis=1)  # [heads, slots]
    return (1 - erase)[:, None] * memory + dense.T @ words


BOTH_WRITES = (wipe_and_add, _dense_write)


@functools.partial(jax.jit, static_argnums=0)
def _value_and_pulled(write, rows, weights, words):
    """The memory after writing, and a cotangent of it pulled back to memory, weights and words."""
    value, pullback = jax.vjp(lambda *args: write(args[0], rows, *args[1:]), MEMORY, weights, words)
    return value, *pullback(_random(3, SLOTS, WORD))


@pytest.mark.parametrize(
    "rows",
    [[[0, 1, 2], [3, 4, 5]], [[0, 0, 2], [2, 4, 5]], [[5, 2, 2], [2, 2, 5]]],
    ids=["apart", "shared", "wiped-by-another"],
)
def test_writing_is_the_dense_equation_with_its_gradient(rows):
    rows, weights, words = jnp.array(rows), _random(1, 2, 3), _random(2, 2, WORD)
    for ours, dense in zip(*(_value_and_pulled(write, rows, weights, words) for write in BOTH_WRITES), strict=True):
        np.testing.assert_allclose(ours, dense, atol=1e-6)


def test_writing_leaves_all_other_rows_bit_identical():
    after = wipe_and_add(MEMORY, jnp.array([[6, 2]]), jnp.array([[0.5, 0.0]]), jnp.ones((1, WORD)))
    untouched = np.array([0, 1, 3, 4, 5])
    np.testing.assert_array_equal(after[untouched], MEMORY[untouched])
    np.testing.assert_array_equal(after[2], np.zeros(WORD))
    np.testing.assert_array_equal(after[6], MEMORY[6] + 0.5)


@pytest.mark.parametrize("slots", [5, 700, 64 * 48, 64 * 48 + 1])
def test_largest_is_a_sort(slots):
    scores = _random(slots, 2, slots)
    np.testing.assert_array_equal(largest(scores, 3), np.argsort(-np.asarray(scores), axis=-1)[:, :3])
    same = np.asarray(largest(jnp.zeros((slots,)), 3))
    assert len(set(same.tolist())) == 3, "equal scores give different rows"


def test_largest_scores_may_share_a_block():
    scores = jnp.zeros((64 * 48,)).at[jnp.array([130, 131, 132])].set(jnp.array([1.0, 3.0, 2.0]))
    assert largest(scores, 3).tolist() == [131, 132, 130]


def test_nearest_is_by_angle():
    memory = jnp.array([[0.1, 0.0], [9.0, 9.0], [0.0, -5.0], [0.0, 0.0]])
    assert nearest(jnp.array([[2.0, 0.1]]), memory, 2).tolist() == [[0, 1]]
    assert nearest(jnp.array([[0.0, -1.0]]), memory, 1).tolist() == [[2]]


def test_access_above_the_threshold_is_remembered():
    last = mark_accessed(
        jnp.array([1, 2, 3, 4]), jnp.array([0, 2, 0, 1]), jnp.array([0.3, 0.5, 0.3, 0.5]), jnp.array(9), 0.5
    )
    assert last.tolist() == [9, 2, 3, 4], "row 0 by two weights together; 0.5 is not more than 0.5"
    assert least_recent(last, jnp.array(10), 2).tolist() == [1, 2]
