"""What an NTM does when its interface vector says so, and what its constructor refuses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon._errors import BadValue
from mnemon.cells import NTM

SLOTS, WORD = 6, 4
YES, NO = 200.0, -200.0
WORDS = np.random.default_rng(0).standard_normal((3, WORD))


def _cell(**options) -> NTM:
    return NTM(3, 5, memory_slots=SLOTS, word_size=WORD, key=jax.random.key(0), **options)


def _place(*, key=None, by_content=NO, shift=0):
    key = np.ones(WORD) if key is None else key
    return np.concatenate([key, [YES, by_content, 5.0], YES * np.eye(3)[shift + 1]])


def _orders(read, write, *, erase=NO, add=None):
    add = np.zeros(WORD) if add is None else add
    return jnp.asarray(np.concatenate([read, write, np.full(WORD, erase), add]), jnp.float32)


@eqx.filter_jit
def _do(cell, state, orders):
    return cell.access(state, cell.controller.init_state(), orders)[0]


def _at(cell, read_slot, write_slot):
    return cell.init_state()._replace(
        read_weights=jax.nn.one_hot(jnp.array([read_slot]), SLOTS),
        write_weights=jax.nn.one_hot(jnp.array([write_slot]), SLOTS),
    )


def test_writes_along_the_ring_and_reads_back_exactly():
    cell = _cell()
    state = _at(cell, 0, 4)
    for word in WORDS:  # to slots 5, 0 and 1
        state = _do(cell, state, _orders(_place(), _place(shift=1), erase=YES, add=word))
    np.testing.assert_allclose(state.memory[jnp.array([5, 0, 1])], WORDS, atol=1e-5)
    state = _do(cell, state, _orders(_place(key=WORDS[0], by_content=YES), _place()))
    np.testing.assert_allclose(state.reads[0], WORDS[0], atol=1e-4)
    for word in WORDS[1:]:
        state = _do(cell, state, _orders(_place(shift=1), _place()))
        np.testing.assert_allclose(state.reads[0], word, atol=1e-4)
    state = _do(cell, state, _orders(_place(shift=-1), _place()))
    np.testing.assert_allclose(state.reads[0], WORDS[1], atol=1e-4)


def test_nothing_erased_and_nothing_added_leaves_the_memory():
    cell = _cell()
    state = _at(cell, 0, 4)._replace(memory=jnp.asarray(np.random.default_rng(1).random((SLOTS, WORD)), jnp.float32))
    after = _do(cell, state, _orders(_place(), _place(shift=1)))
    np.testing.assert_array_equal(after.memory, state.memory)
    assert after.write_weights[0].argmax() == 5


@pytest.mark.parametrize("before", [False, True])
def test_a_read_sees_the_write_of_its_step_unless_it_comes_first(before):
    cell = _cell(read_before_write=before)
    state = _do(cell, _at(cell, 2, 2), _orders(_place(), _place(), erase=YES, add=WORDS[0]))
    np.testing.assert_allclose(state.reads[0], np.full(WORD, 1e-6) if before else WORDS[0], atol=1e-5)


def test_the_memory_starts_as_asked():
    np.testing.assert_array_equal(_cell(memory_value=0.5).init_state().memory, 0.5)
    learned = _cell(memory_init="learned")
    assert learned.initial_memory is not None
    np.testing.assert_array_equal(learned.init_state().memory, jnp.tanh(learned.initial_memory))


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"memory_slots": 2}, "memory_slots=2"),
        ({"word_size": 0}, "word_size=0"),
        ({"read_heads": 0}, "read_heads=0"),
        ({"write_heads": 0}, "write_heads=0"),
        ({"shift_range": 3, "memory_slots": 6}, "shift_range=3"),
        ({"bound": -1.0}, "bound=-1.0"),
        ({"layers": 0}, "layers=0"),
    ],
)
def test_bad_options_are_refused(options, argument):
    with pytest.raises(BadValue, match=argument):
        NTM(3, 5, **options, key=jax.random.key(0))
