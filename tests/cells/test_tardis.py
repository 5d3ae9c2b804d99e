"""What the parts of TARDIS mean."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import unroll
from mnemon._errors import BadValue
from mnemon.cells import TARDIS
from mnemon.training.estimators import Baseline, reinforce

SLOTS, ADDRESS, WORD, HIDDEN, TIME = 4, 2, 5, 6, 12
INPUTS = jax.random.normal(jax.random.key(3), (3, TIME, 3))


def _cell(**options: Any) -> TARDIS:
    sizes: dict[str, Any] = {"memory_slots": SLOTS, "address_size": ADDRESS, "word_size": WORD, "addressing_size": 7}
    return TARDIS(3, HIDDEN, **(sizes | options), key=jax.random.key(0))


def _run(cell, key=None, inputs=INPUTS):
    return unroll(cell, inputs, key=key, observe=lambda state: state).observed


@pytest.mark.parametrize("key", [None, jax.random.key(7)])
def test_fills_in_order_then_writes_where_it_read(key):
    states = _run(_cell(), key)
    written = np.asarray(states.write_weights)
    np.testing.assert_array_equal(written[:, :SLOTS], np.broadcast_to(np.eye(SLOTS), (3, SLOTS, SLOTS)))
    np.testing.assert_array_equal(written[:, SLOTS:], np.asarray(states.read_weights)[:, SLOTS:])
    np.testing.assert_array_equal(states.filled[0], [1, 2, 3] + [SLOTS] * (TIME - 3))


def test_only_the_written_slot_changes_and_it_holds_the_micro_state():
    cell = _cell()
    states = _run(cell, jax.random.key(7))
    content, slot = np.asarray(states.content), np.asarray(states.write_weights).argmax(-1)
    before = np.concatenate([np.zeros_like(content[:, :1]), content[:, :-1]], axis=1)
    micro = np.asarray(states.hidden @ cell.micro_weights)
    for example in range(3):
        for t in range(TIME):
            expected = before[example, t].copy()
            expected[slot[example, t]] = micro[example, t]
            np.testing.assert_allclose(content[example, t], expected, atol=1e-6)


def test_reads_what_was_written_there_with_the_address():
    cell = _cell()
    states = _run(cell, jax.random.key(7))
    slot = np.asarray(states.read_weights).argmax(-1)
    before = np.concatenate([np.zeros((3, 1, SLOTS, WORD)), np.asarray(states.content)[:, :-1]], axis=1)
    for example in range(3):
        for t in range(TIME):
            word = np.concatenate([cell.addresses.value[slot[example, t]], before[example, t, slot[example, t]]])
            np.testing.assert_allclose(states.read[example, t], word, atol=1e-6)


@pytest.mark.parametrize("estimator", ["gumbel", "reinforce"])
def test_never_reads_the_same_slot_twice_in_a_row(estimator):
    inputs = jax.random.normal(jax.random.key(5), (20, 40, 3))
    with_penalty = _run(_cell(estimator=estimator), jax.random.key(1), inputs).read_weights
    without = _run(_cell(estimator=estimator, last_read_penalty=0.0), jax.random.key(1), inputs).read_weights

    def repeats(weights):
        slot = np.asarray(weights).argmax(-1)
        return (slot[:, 1:] == slot[:, :-1]).sum()

    assert repeats(with_penalty) == 0
    assert repeats(without) > 0


def test_usage_counts_reads_and_is_normalised():
    states = _run(_cell(), jax.random.key(7))
    np.testing.assert_array_equal(states.read_counts, np.cumsum(states.read_weights, axis=1))
    start = _cell().init_state()
    usage = np.asarray(_cell()._usage(start._replace(read_counts=jnp.array([3.0, 1.0, 0.0, 4.0]))))
    np.testing.assert_allclose(usage.mean(), 0.0, atol=1e-6)
    np.testing.assert_allclose(usage.std(), 1.0, atol=1e-4)
    np.testing.assert_array_equal(_cell()._usage(start), 0.0)


def test_reset_gates_are_near_to_binary_and_can_cut_the_past():
    gates = np.asarray(_run(_cell(), jax.random.key(2)).reset_gates)
    assert ((gates < 0.1) | (gates > 0.9)).mean() > 0.6
    np.testing.assert_array_equal(_run(_cell(reset_gates=False), jax.random.key(2)).reset_gates, 1.0)
    cell = _cell()
    closed = eqx.tree_at(lambda c: c.bias, cell, cell.bias.at[4 * HIDDEN : 4 * HIDDEN + 2].set(-1e3))
    forget_nothing = eqx.tree_at(  # all gates open to themselves alone, so that only the candidate sees the past
        lambda c: c.hidden_weights, closed, closed.hidden_weights.at[:, : 3 * HIDDEN].set(0.0)
    )
    forget_nothing = eqx.tree_at(lambda c: c.read_weights, forget_nothing, jnp.zeros_like(cell.read_weights))
    state = forget_nothing.init_state()
    one, _ = forget_nothing(state, INPUTS[0, 0])
    other, _ = forget_nothing(state._replace(hidden=jnp.ones(HIDDEN)), INPUTS[0, 0])
    np.testing.assert_array_equal(one.hidden, other.hidden)


def _gradient(cell, of):
    return eqx.filter_grad(lambda c: of(unroll(c, INPUTS, key=jax.random.key(0))))(cell)


def test_estimators_differ_only_in_the_gradient_of_the_choice():
    gumbel, score = _cell(), _cell(estimator="reinforce")
    key = jax.random.key(9)
    np.testing.assert_allclose(
        unroll(gumbel, INPUTS, key=key).outputs, unroll(score, INPUTS, key=key).outputs, atol=1e-6
    )

    def outputs(result):
        return jnp.sum(result.outputs**2)

    def chosen(result):
        return result.state.log_probability.sum()

    assert np.any(np.asarray(_gradient(gumbel, outputs).score_weights) != 0)
    assert np.any(np.asarray(_gradient(gumbel, outputs).temperature_weights) != 0)
    np.testing.assert_array_equal(_gradient(score, outputs).score_weights, 0.0)
    assert np.any(np.asarray(_gradient(score, chosen).score_weights) != 0)


def test_reinforce_is_unbiased_in_the_cell():
    """Two slots, one read: the expected loss has an exact gradient, the sum over both choices."""
    cell = _cell(estimator="reinforce", memory_slots=2, reset_gates=False)
    draws = 8000
    x = jnp.broadcast_to(INPUTS[:1, :1], (draws, 1, 3))
    key = jax.random.key(0)
    slot = np.asarray(unroll(cell, x, key=key).state.read_weights).argmax(-1)
    first_of_each = jnp.array([np.flatnonzero(slot == 0)[0], np.flatnonzero(slot == 1)[0]])

    def losses(cell):
        result = unroll(cell, x, key=key)
        return jnp.sum(jnp.sin(3.0 * result.outputs), axis=(1, 2)), result.state.log_probability

    def exact(cell):
        loss, log_probability = jax.tree.map(lambda leaf: leaf[first_of_each], losses(cell))
        return jnp.sum(jnp.exp(log_probability) * loss)

    def estimated(cell):
        loss, log_probability = losses(cell)
        score, _ = reinforce(log_probability[:, None], -loss[:, None], Baseline.start())
        return jnp.mean(loss) + score

    difference = eqx.filter(
        jax.tree.map(lambda a, b: a - b, eqx.filter_grad(exact)(cell), eqx.filter_grad(estimated)(cell)),
        eqx.is_array,
    )
    size = float(jnp.abs(eqx.filter_grad(exact)(cell).score_weights).max())
    assert size > 1e-3
    for leaf in jax.tree.leaves(difference):
        assert np.all(np.abs(np.asarray(leaf)) < 0.1), "within the Monte-Carlo error"
    np.testing.assert_allclose(difference.score_weights, 0.0, atol=0.25 * size)


def test_without_a_key_it_is_deterministic():
    np.testing.assert_array_equal(unroll(_cell(), INPUTS).outputs, unroll(_cell(), INPUTS).outputs)


def test_addresses_are_sparse_and_all_different():
    cell = _cell(memory_slots=16, address_size=8)
    addresses = np.asarray(cell.addresses.value)
    np.testing.assert_array_equal((addresses != 0).sum(1), 3)
    assert len(np.unique(addresses, axis=0)) == 16


def test_chrono_gates_keep_and_write_the_less_the_longer_they_remember():
    bias = np.asarray(_cell(chrono=100).bias)
    forget, write, rest = np.split(bias, [HIDDEN, 2 * HIDDEN])
    np.testing.assert_array_equal(write, -forget)
    np.testing.assert_array_equal(rest, 0.0)
    assert np.all((np.exp(forget) >= 1) & (np.exp(forget) <= 99))
    assert len(np.unique(forget)) == HIDDEN
    np.testing.assert_array_equal(_cell().bias, [1.0] * HIDDEN + [0.0] * (len(bias) - HIDDEN))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("memory_slots", 1),
        ("word_size", 6),
        ("word_size", 0),
        ("address_size", -1),
        ("addressing_size", 0),
        ("temperature", 0.0),
        ("gate_temperature", -0.3),
        ("last_read_penalty", -1.0),
        ("chrono", 1),
    ],
)
def test_bad_options_are_refused(option, value):
    with pytest.raises(BadValue, match=f"{option}={value} cannot work"):
        _cell(**{option: value})
