"""What stored programs mean, and what the constructor refuses."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon._errors import BadValue
from mnemon.cells import DNC, NTM, NUTM

SIZES: dict[str, Any] = {"memory_slots": 6, "word_size": 4, "read_heads": 2}
INPUTS = jax.random.normal(jax.random.key(5), (2, 7, 3))


@pytest.mark.parametrize(("core", "plain"), [("ntm", NTM), ("dnc", DNC)])
def test_one_program_is_the_plain_network(core, plain):
    one = NUTM(3, 5, core=core, programs=1, **SIZES, key=jax.random.key(0))
    other = plain(3, 5, **SIZES, key=jax.random.key(1))
    one = eqx.tree_at(
        lambda cell: (cell.core, cell.values),
        one,
        (eqx.tree_at(lambda cell: cell.interface, other, None), other.interface),
    )
    run = eqx.filter_jit(lambda cell: unroll(cell, INPUTS))
    result, expected = run(one), run(other)
    np.testing.assert_allclose(result.outputs, expected.outputs, rtol=1e-6, atol=1e-7)
    for a, b in zip(jax.tree.leaves(result.state.core), jax.tree.leaves(expected.state), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(result.state.program_weights, 1.0)


def test_a_query_like_a_key_runs_that_program():
    cell = NUTM(3, 5, programs=2, **SIZES, key=jax.random.key(0))
    heads, size = len(cell.keys), sum(cell.core.units)
    orders = 0.1 * jax.random.normal(jax.random.key(2), (2, size))
    state = cell.init_state()
    for program in range(2):
        ask = jnp.concatenate([jnp.broadcast_to(cell.keys[:, program], (heads, 2)), jnp.full((heads, 1), 1e5)], axis=1)
        fixed = eqx.tree_at(
            lambda cell: (cell.query.weights, cell.query.bias, cell.values.weights, cell.values.bias),
            cell,
            (0 * cell.query.weights, ask.ravel(), 0 * cell.values.weights, orders.ravel()),
        )
        after, _ = fixed(state, INPUTS[0, 0])
        np.testing.assert_allclose(after.program_weights[:, program], 1.0, atol=1e-6)
        controller = cell.core.controller(state.core.controller, cell.drive(INPUTS[0, 0]), state.core.reads)
        expected, _ = cell.core.access(state.core, controller, orders[program])
        np.testing.assert_allclose(after.core.memory, expected.memory, atol=1e-6)


def test_key_similarity_is_the_mean_over_pairs():
    cell = NUTM(3, 5, programs=3, key_size=4, **SIZES, key=jax.random.key(0))
    keys = np.asarray(cell.keys, np.float64)
    pairs = [
        head[i] @ head[j] / np.linalg.norm(head[i]) / np.linalg.norm(head[j])
        for head in keys
        for i in range(3)
        for j in range(i)
    ]
    np.testing.assert_allclose(cell.key_similarity(), np.mean(pairs), rtol=1e-4)
    one = NUTM(3, 5, programs=1, **SIZES, key=jax.random.key(0))
    np.testing.assert_array_equal(one.key_similarity(), 0.0)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"programs": 0}, "programs=0"),
        ({"key_size": 0}, "key_size=0"),
        ({"core": "dnc", "write_heads": 2}, "write_heads=2"),
        ({"read_heads": 0}, "read_heads=0"),
    ],
)
def test_bad_options_are_refused(options, argument):
    with pytest.raises(BadValue, match=argument):
        NUTM(3, 5, **options, key=jax.random.key(0))
