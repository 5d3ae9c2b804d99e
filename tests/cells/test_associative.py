"""What an associative memory remembers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon.cells import AssociativeMemory

KEYS, VALUES = 6, 4


def _memory(**options) -> AssociativeMemory:
    """A memory whose input is [key, value, query] itself."""
    cell = AssociativeMemory(2 * KEYS + VALUES, VALUES, key_size=KEYS, key=jax.random.key(0), **options)
    return eqx.tree_at(lambda c: c.input_weights, cell, jnp.eye(2 * KEYS + VALUES))


def _store(cell, keys, values):
    inputs = jnp.concatenate([keys, values, jnp.zeros_like(keys)], axis=1)
    return unroll(cell, inputs[None]).state


def _recall(cell, state, query):
    """The answer to a query, without writing anything: the key is zero."""
    nothing = jnp.zeros((1, 1, KEYS + VALUES))
    return unroll(cell, jnp.concatenate([nothing, query[None, None]], axis=-1), state=state).outputs[0, 0]


def _pairs(count: int, seed: int = 0):
    keys, values = jax.random.split(jax.random.key(seed))
    return jax.random.normal(keys, (count, KEYS)), jax.random.normal(values, (count, VALUES))


@pytest.mark.parametrize("rule", ["hebb", "delta"])
def test_orthonormal_keys_are_recalled_exactly(rule):
    cell = _memory(rule=rule)
    _, values = _pairs(KEYS)
    keys = jax.random.orthogonal(jax.random.key(1), KEYS)
    state = _store(cell, keys, values)
    for key, value in zip(keys, values, strict=True):
        np.testing.assert_allclose(_recall(cell, state, key), value, atol=1e-5)


def test_other_keys_disturb_each_other_by_their_overlaps():
    cell = _memory()
    keys, values = _pairs(4)
    state = _store(cell, keys, values)
    unit = keys / jnp.linalg.norm(keys, axis=1, keepdims=True)
    for j in range(4):
        crosstalk = sum(values[i] * (unit[i] @ unit[j]) for i in range(4) if i != j)
        assert float(jnp.linalg.norm(crosstalk)) > 0.1
        np.testing.assert_allclose(_recall(cell, state, keys[j]) - values[j], crosstalk, atol=1e-5)


def test_the_delta_rule_replaces_what_hebb_adds_up():
    keys, values = _pairs(2)
    keys = keys.at[1].set(keys[0])
    for rule, expected in (("hebb", values[0] + values[1]), ("delta", values[1])):
        cell = _memory(rule=rule)
        np.testing.assert_allclose(_recall(cell, _store(cell, keys, values), keys[0]), expected, atol=1e-5)


def test_the_delta_rule_learns_keys_that_overlap():
    cell = _memory(rule="delta")
    keys, values = _pairs(2)
    many_times = _store(cell, jnp.tile(keys, (50, 1)), jnp.tile(values, (50, 1)))
    for key, value in zip(keys, values, strict=True):
        np.testing.assert_allclose(_recall(cell, many_times, key), value, atol=1e-3)


def test_decay_weakens_a_value_at_each_step():
    cell = _memory(decay=0.5)
    keys, values = _pairs(1)
    state = _store(cell, keys, values)
    np.testing.assert_allclose(_recall(cell, state, keys[0]), 0.5 * values[0], atol=1e-5)


def test_an_empty_memory_answers_zero():
    cell = _memory()
    state = jax.tree.map(lambda leaf: leaf[None], cell.init_state())
    np.testing.assert_array_equal(_recall(cell, state, jnp.ones(KEYS)), np.zeros(VALUES))


@pytest.mark.parametrize(
    "options", [{"decay": -0.1}, {"decay": 1.1}, {"rate": 0.0}, {"key_size": 0}, {"hidden_size": 0}]
)
def test_bad_input(options):
    (argument,) = options
    with pytest.raises(ValueError, match=argument):
        AssociativeMemory(3, **{"hidden_size": 5, **options}, key=jax.random.key(0))
