"""What a DNC does when its interface vector says so, and what its constructor refuses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon._errors import BadValue
from mnemon.cells import DNC, count_parameters

SLOTS, WORD, HEADS = 6, 4, 2
BACKWARD, CONTENT, FORWARD = range(3)
YES, NO = 200.0, -200.0  # gates before the sigmoid, strengths before oneplus


def _cell(**options) -> DNC:
    return DNC(3, 5, memory_slots=SLOTS, word_size=WORD, read_heads=HEADS, key=jax.random.key(0), **options)


def _orders(*, word=None, write=NO, allocate=YES, write_key=None, key=None, mode=CONTENT, free=NO):
    """An interface vector in which both read heads do the same."""
    key, write_key = (np.ones(WORD) if k is None else k for k in (key, write_key))
    word = np.zeros(WORD) if word is None else word
    head = np.concatenate([key, [YES, free], YES * np.eye(3)[mode]])
    writer = np.concatenate([write_key, np.full(WORD, YES), word, [YES, allocate, write]])
    return jnp.asarray(np.concatenate([head] * HEADS + [writer]), jnp.float32)


@eqx.filter_jit
def _do(cell, state, orders):
    return cell.access(state, cell.controller.init_state(), orders)[0]


WORDS = np.random.default_rng(0).standard_normal((3, WORD))


def _written(cell, times=3):
    state = cell.init_state()
    for word in WORDS[:times]:
        state = _do(cell, state, _orders(word=word, write=YES))
    return state


def test_three_words_are_read_back_forward_and_backward():
    cell = _cell()
    state = _written(cell)
    np.testing.assert_allclose(state.memory[:3], WORDS, atol=1e-4)
    np.testing.assert_array_equal(state.write_weights.argmax(), 2)
    state = _do(cell, state, _orders(key=WORDS[0]))
    np.testing.assert_allclose(state.reads, [WORDS[0]] * HEADS, atol=1e-3)
    for expected in (WORDS[1], WORDS[2]):
        state = _do(cell, state, _orders(mode=FORWARD))
        np.testing.assert_allclose(state.reads, [expected] * HEADS, atol=1e-3)
    for expected in (WORDS[1], WORDS[0]):
        state = _do(cell, state, _orders(mode=BACKWARD))
        np.testing.assert_allclose(state.reads, [expected] * HEADS, atol=1e-3)


def test_a_closed_write_gate_leaves_memory_usage_and_links():
    cell = _cell()
    state = _written(cell)
    state = _do(cell, state, _orders(word=np.ones(WORD)))  # the usage of the last write arrives one step later
    after = _do(cell, state, _orders(word=np.ones(WORD)))
    for before, now in zip(
        (state.memory, state.usage, state.links, state.precedence),
        (after.memory, after.usage, after.links, after.precedence),
        strict=True,
    ):
        np.testing.assert_array_equal(now, before)


def test_an_open_allocation_gate_writes_to_the_free_slot():
    cell = _cell()
    state = cell.init_state()._replace(usage=jnp.ones(SLOTS).at[3].set(0.0), memory=jnp.ones((SLOTS, WORD)))
    after = _do(cell, state, _orders(word=WORDS[0], write=YES))
    np.testing.assert_allclose(after.write_weights, jax.nn.one_hot(3, SLOTS), atol=1e-5)
    np.testing.assert_allclose(after.memory, jnp.ones((SLOTS, WORD)).at[3].set(WORDS[0]), atol=1e-4)


def test_a_closed_allocation_gate_writes_where_the_key_is():
    cell = _cell()
    after = _do(cell, _written(cell), _orders(word=WORDS[0], write=YES, allocate=NO, write_key=WORDS[1]))
    np.testing.assert_allclose(after.memory[1], WORDS[0], atol=1e-3)
    np.testing.assert_allclose(after.memory[2], WORDS[2], atol=1e-3)


@pytest.mark.parametrize("deallocate", [False, True])
def test_a_free_gate_frees_what_was_read_and_deallocation_empties_it(deallocate):
    cell = _cell(deallocate=deallocate)
    state = _do(cell, _written(cell), _orders(key=WORDS[1]))
    freed = _do(cell, state, _orders(key=WORDS[1], free=YES))
    assert freed.usage[1] < 1e-3
    np.testing.assert_allclose(freed.usage[jnp.array([0, 2])], 1.0, atol=1e-3)
    np.testing.assert_allclose(freed.memory[1], 0 * WORDS[1] if deallocate else WORDS[1], atol=1e-3)
    again = _do(cell, freed, _orders(word=WORDS[0], write=YES))
    assert again.write_weights.argmax() == 1


def test_without_usage_gradient_the_write_weights_get_none_from_usage():
    def usage_after(weights, cell):
        state = cell.init_state()._replace(write_weights=weights)
        return jnp.sum(cell.access(state, cell.controller.init_state(), _orders())[0].usage)

    slope, weights = jax.grad(usage_after), jnp.full(SLOTS, 0.1)
    assert np.all(np.asarray(slope(weights, _cell())) > 0)
    np.testing.assert_array_equal(slope(weights, _cell(usage_gradient=False)), 0)


def test_sizes_are_those_of_the_paper():
    cell = DNC(92, 256, layers=2, memory_slots=128, word_size=50, read_heads=5, key=jax.random.key(0))
    assert sum(cell.units) == 50 * 5 + 3 * 50 + 5 * 5 + 3
    assert cell.output_size == 2 * 256 + 5 * 50
    lstm = sum(4 * 256 * (92 + 250 + 256 + below + 1) for below in (0, 256))
    assert count_parameters(cell) == lstm + 512 * 428


def test_no_nan_when_the_memory_is_overfull():
    cell = _cell(masked_content=True, deallocate=True, sharpen_links=True)

    def loss(cell, inputs):
        return jnp.sum(unroll(cell, inputs).outputs ** 2)

    value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss))(cell, 10.0 * jnp.ones((1, 5 * SLOTS, 3)))
    assert np.isfinite(value)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"hidden_size": 0}, "hidden_size=0"),
        ({"memory_slots": 1}, "memory_slots=1"),
        ({"word_size": 0}, "word_size=0"),
        ({"read_heads": 0}, "read_heads=0"),
        ({"layers": 0}, "layers=0"),
        ({"mask_floor": 1.0}, "mask_floor=1.0"),
        ({"bound": 0.0}, "bound=0.0"),
    ],
)
def test_bad_options_are_refused(options, argument):
    with pytest.raises(BadValue, match=argument):
        DNC(3, **{"hidden_size": 5, **options}, key=jax.random.key(0))
