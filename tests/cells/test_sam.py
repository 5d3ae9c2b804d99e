"""What a sparse access memory does, row by row, and what it costs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, choose_plan, unroll
from mnemon._errors import BadValue
from mnemon.cells import SAM, _sparse, sam

ON, OFF = 30.0, -200.0  # logits of gates that are exactly 1 and 0 in float32


def _cell(**options) -> SAM:
    sizes = {"memory_slots": 9, "word_size": 4, "heads": 2, "top_k": 3}
    return SAM(3, 5, **{**sizes, **options}, key=jax.random.key(0))


def _told(cell: SAM, query, word, alpha: float, gamma: float) -> SAM:
    """The cell whose only head asks for `query` and writes `word`, whatever the input."""
    interface = jnp.concatenate([query, word, jnp.array([alpha, gamma])])
    silent = jnp.zeros_like(cell.interface.weights)
    return eqx.tree_at(lambda c: (c.interface.weights, c.interface.bias), cell, (silent, interface))


def _run(cell: SAM, state, *told):
    return _told(cell, *told)(state, jnp.zeros(3))[0]


def test_what_is_written_is_read_back_exactly_by_its_key():
    cell = _cell(heads=1, top_k=1)
    words = jax.random.normal(jax.random.key(1), (3, 4))
    state = cell.init_state()
    for word in words:
        state = _run(cell, state, word, word, ON, OFF)
    for word in words[jnp.array([1, 0, 2, 1])]:
        state = _run(cell, state, word + 0.01, word, OFF, OFF)  # alpha = 0: nothing is written
        np.testing.assert_array_equal(state.reads[0], word)


def test_at_most_k_plus_one_rows_of_each_head_change_and_the_rest_is_bit_identical():
    cell = _cell(memory_slots=40)
    step, state = eqx.filter_jit(lambda s, x: cell(s, x)), cell.init_state()
    state = state._replace(memory=jax.random.normal(jax.random.key(2), state.memory.shape))
    for x in jax.random.normal(jax.random.key(3), (8, 3)):
        after, _ = step(state, x)
        changed = np.flatnonzero(np.any(np.asarray(after.memory) != np.asarray(state.memory), axis=1))
        assert set(changed) <= set(np.asarray(after.write_rows).ravel().tolist())
        assert 0 < len(changed) <= cell.heads * (cell.top_k + 1)
        state = after


def test_the_least_recently_accessed_row_is_wiped_even_when_nothing_is_written():
    cell = _cell(heads=1)
    state = cell.init_state()._replace(memory=jnp.ones((9, 4)), time=jnp.array(9, jnp.int32))
    state = state._replace(last_access=jnp.array([5, 8, 7, 2, 9, 4, 6, 9, 3], jnp.int32))
    after = _run(cell, state, jnp.ones(4), jnp.ones(4), OFF, OFF)
    assert after.write_rows[0, -1] == 3
    np.testing.assert_array_equal(after.memory[3], np.zeros(4))
    np.testing.assert_array_equal(np.delete(after.memory, 3, axis=0), np.ones((8, 4)))
    assert after.last_access[3] == 2, "a row of weight zero is not accessed"


def test_heads_wipe_different_rows():
    after, _ = _cell()(_cell().init_state(), jnp.ones(3))
    assert len(set(after.write_rows[:, -1].tolist())) == 2


def test_gamma_writes_to_where_the_head_has_read():
    cell = _cell(heads=1, top_k=2)
    state = cell.init_state()._replace(memory=jax.random.normal(jax.random.key(4), (9, 4)))
    state = state._replace(last_access=jnp.arange(9, dtype=jnp.int32)[::-1])
    state = _run(cell, state, state.memory[5], jnp.ones(4), OFF, OFF)
    after = _run(cell, state, jnp.ones(4), jnp.ones(4), ON, ON)
    expected = state.memory.at[after.write_rows[0, -1]].set(0.0)
    expected = expected.at[state.read_rows[0]].add(state.read_weights[0][:, None])
    np.testing.assert_allclose(after.memory, expected, rtol=1e-6)
    assert 5 in state.read_rows[0].tolist()


@eqx.filter_jit
def _gradient(cell, inputs, options, plan=None):
    def loss(both):
        cell, inputs = both
        result = unroll(cell, inputs, plan=plan, **options)
        return jnp.sum(jnp.sin(result.outputs)) + jnp.sum(jnp.sin(result.state.memory))

    return eqx.filter_value_and_grad(loss)((cell, inputs))


def test_gradients_are_those_of_plain_indexing(monkeypatch):
    cell, inputs = _cell(), jax.random.normal(jax.random.key(5), (4, 10, 3))
    fresh = unroll(cell, inputs[:, ::-1]).state
    options = {
        "state": fresh,
        "mask": jax.random.bernoulli(jax.random.key(6), 0.7, (4, 10)),
        "reset": jnp.zeros((4, 10), bool).at[1, 4].set(True),
        "key": jax.random.key(7),
    }
    sparse = _gradient(cell, inputs, options)

    def plain_write(memory, rows, weights, words):
        memory = memory.at[rows[:, -1]].set(0.0)
        return memory.at[rows].add(weights[:, :, None] * words[:, None, :])

    monkeypatch.setattr(_sparse, "read_rows", lambda memory, rows: (memory[rows], memory))
    monkeypatch.setattr(sam, "wipe_and_add", plain_write)
    plain = _gradient(cell, inputs, options, Plan(defer=False))
    for ours, theirs in zip(jax.tree.leaves(sparse), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5 * (1 + np.max(np.abs(theirs))))


def test_training_memory_grows_with_time_but_not_with_slots_times_time():
    def temporary_bytes(slots: int, time: int) -> int:
        cell = _cell(memory_slots=slots)
        inputs, flags = jnp.zeros((2, time, 3)), jnp.zeros((2, time), bool)
        options = {"mask": flags, "reset": flags}
        return _gradient.lower(cell, inputs, options).compile().compiled.memory_analysis().temp_size_in_bytes

    growth = {slots: temporary_bytes(slots, 96) - temporary_bytes(slots, 32) for slots in (256, 4096)}
    assert growth[256] > 0
    assert growth[4096] < 1.2 * growth[256]


def test_no_segments_are_needed_for_a_large_memory():
    assert choose_plan(_cell(memory_slots=2**20), batch=8, time=1000).segment is None
    assert choose_plan(_cell(), batch=64, time=100_000).segment is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 10}, "memory_slots=9 cannot work: wanted at least top_k=10"),
        ({"heads": 10}, "memory_slots=9 .* heads=10 rows to wipe"),
        ({"heads": 0}, "heads=0"),
        ({"top_k": 0}, "top_k=0"),
        ({"word_size": 0}, "word_size=0"),
        ({"access_threshold": -1.0}, "access_threshold=-1.0"),
    ],
)
def test_bad_sizes_are_refused(options, message):
    with pytest.raises(BadValue, match=message):
        _cell(**options)
