"""What a sparse differentiable neural computer does with its links."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, choose_plan, unroll
from mnemon._errors import BadValue
from mnemon.cells import SDNC

ON, OFF = 30.0, -200.0  # logits of gates that are exactly 1 and 0 in float32
BACKWARD, CONTENT, FORWARD = ON * jnp.eye(3)


def _cell(**options) -> SDNC:
    sizes = {"memory_slots": 9, "word_size": 4, "read_heads": 2, "top_k": 3, "links": 5}
    return SDNC(3, 6, **{**sizes, **options}, key=jax.random.key(0))


def _run(cell: SDNC, state, word, write: float, query, modes):
    """A step in which the cell writes `word` to a free row if told to, and its only head reads as told."""
    interface = jnp.concatenate([word, jnp.array([write, OFF]), query, modes])
    silent = jnp.zeros_like(cell.interface.weights)
    told = eqx.tree_at(lambda c: (c.interface.weights, c.interface.bias), cell, (silent, interface))
    return told(state, jnp.zeros(3))[0]


def test_words_are_read_in_the_order_they_were_written_and_back():
    cell = _cell(read_heads=1, top_k=1, links=2)
    words = jax.random.normal(jax.random.key(1), (4, 4))
    state = cell.init_state()
    for word in words:
        state = _run(cell, state, word, ON, word, CONTENT)
    nothing = jnp.zeros(4)
    state = _run(cell, state, nothing, OFF, words[0], CONTENT)
    np.testing.assert_array_equal(state.reads[0], words[0])
    for modes, expected in [(FORWARD, 1), (FORWARD, 2), (FORWARD, 3), (BACKWARD, 2), (BACKWARD, 1), (FORWARD, 2)]:
        state = _run(cell, state, nothing, OFF, nothing, modes)
        np.testing.assert_allclose(state.reads[0], words[expected], rtol=1e-5)


def test_a_step_without_a_write_leaves_the_links_unchanged():
    cell = _cell(read_heads=1)
    state = cell.init_state()
    for word in jax.random.normal(jax.random.key(2), (5, 4)):
        state = _run(cell, state, word, ON, word, CONTENT)
    after = _run(cell, state, jnp.ones(4), OFF, jnp.ones(4), CONTENT)
    np.testing.assert_array_equal(after.links.weights, state.links.weights)
    np.testing.assert_array_equal(after.precedence.weights, state.precedence.weights)
    assert np.any(np.asarray(state.links.weights) > 0)


def test_links_touch_few_rows_and_the_rest_is_bit_identical():
    cell = _cell(memory_slots=60)
    step, state = eqx.filter_jit(lambda s, x: cell(s, x)), cell.init_state()
    for x in jax.random.normal(jax.random.key(3), (9, 3)):
        after, _ = step(state, x)
        written, preceding = (set(np.asarray(rows).tolist()) for rows in (after.written.rows, state.precedence.rows))
        for name, allowed in [("before", written), ("weights", written), ("after", preceding)]:
            old, new = np.asarray(getattr(state.links, name)), np.asarray(getattr(after.links, name))
            assert set(np.flatnonzero(np.any(old != new, axis=1)).tolist()) <= allowed
        changed = np.flatnonzero(np.any(np.asarray(after.memory) != np.asarray(state.memory), axis=1))
        assert set(changed.tolist()) <= written
        state = after
    assert np.count_nonzero(np.asarray(state.links.weights)) > 5


def test_gradients_through_links_change_no_output():
    inputs = jax.random.normal(jax.random.key(4), (2, 8, 3))

    def run(link_gradients):
        cell = _cell(link_gradients=link_gradients)
        outputs = unroll(cell, inputs).outputs
        gradient = eqx.filter_grad(lambda c: jnp.sum(unroll(c, inputs, plan=Plan()).outputs ** 2))(cell)
        return outputs, gradient.interface.weights

    (outputs, stopped), (same, full) = run(False), run(True)
    np.testing.assert_array_equal(outputs, same)
    assert np.max(np.abs(stopped - full)) > 1e-6


def test_training_memory_grows_with_time_but_not_with_slots_times_time():
    @eqx.filter_jit
    def gradient(cell, inputs):
        return eqx.filter_grad(lambda c: jnp.sum(unroll(c, inputs, plan=Plan()).outputs ** 2))(cell)

    def temporary_bytes(slots: int, time: int) -> int:
        lowered = gradient.lower(_cell(memory_slots=slots), jnp.zeros((2, time, 3)))
        return lowered.compile().compiled.memory_analysis().temp_size_in_bytes

    growth = {slots: temporary_bytes(slots, 96) - temporary_bytes(slots, 32) for slots in (256, 4096)}
    assert growth[256] > 0
    assert growth[4096] < 1.2 * growth[256]
    assert not choose_plan(_cell(memory_slots=4096), 2, 96).remat  # which would keep the whole memory at each step


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 10}, "memory_slots=9 cannot work: wanted at least top_k=10"),
        ({"read_heads": 0}, "read_heads=0"),
        ({"links": 0}, "links=0"),
        ({"access_threshold": -1.0}, "access_threshold=-1.0"),
    ],
)
def test_bad_sizes_are_refused(options, message):
    with pytest.raises(BadValue, match=message):
        _cell(**options)
