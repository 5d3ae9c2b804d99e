"""The time loop beyond what the conformance suite checks on every cell."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, Stack, choose_plan, unroll
from mnemon.cells import GRU, LSTM, NRU, RNN, make_cell


def _inputs(*shape):
    return jax.random.normal(jax.random.key(1), shape)


def test_a_stack_is_its_cells_in_turn():
    lower, upper = LSTM(3, 7, key=jax.random.key(0)), GRU(7, 5, key=jax.random.key(1))
    inputs = _inputs(2, 6, 3)
    first = unroll(lower, inputs)
    second = unroll(upper, first.outputs)
    both = unroll(Stack(lower, upper), inputs)
    np.testing.assert_allclose(both.outputs, second.outputs, atol=1e-6)
    np.testing.assert_allclose(both.state[0].cell, first.state.cell, atol=1e-6)


def test_a_stack_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"input_size=6 cannot work: wanted the output size of the cell below, 7"):
        Stack(LSTM(3, 7, key=jax.random.key(0)), GRU(6, 5, key=jax.random.key(1)))


def test_observe_records_the_state_after_each_step():
    cell, inputs = LSTM(3, 5, key=jax.random.key(0)), _inputs(2, 6, 3)
    result = unroll(cell, inputs, observe=lambda state: {"h": state.hidden, "norm": jnp.sum(state.cell**2)})
    np.testing.assert_array_equal(result.observed["h"], result.outputs)
    np.testing.assert_allclose(result.observed["norm"][:, -1], jnp.sum(result.state.cell**2, axis=1), rtol=1e-6)


def test_mask_and_lengths_agree():
    cell, inputs, lengths = GRU(3, 5, key=jax.random.key(0)), _inputs(3, 6, 3), jnp.array([6, 2, 4])
    mask = jnp.arange(6)[None] < lengths[:, None]
    np.testing.assert_array_equal(
        unroll(cell, inputs, mask=mask).outputs, unroll(cell, inputs, lengths=lengths).outputs
    )


def test_gradients_flow_into_the_state_it_started_from():
    cell, inputs = RNN(3, 5, key=jax.random.key(0)), _inputs(2, 4, 3)
    start = jax.tree.map(lambda leaf: jnp.ones((2, *leaf.shape)), cell.init_state())

    def total(state, plan):
        return jnp.sum(unroll(cell, inputs, state=state, plan=plan).outputs)

    for plan in (Plan(), Plan(segment=2), Plan(defer=False)):
        gradient = jax.grad(total)(start, plan)
        assert np.all(np.asarray(gradient.hidden) != 0)


def _training_memory(time: int, plan: Plan | None) -> int:
    cell = LSTM(4, 16, key=jax.random.key(0))
    arrays, static = eqx.partition(cell, eqx.is_array)

    def loss(arrays, inputs):
        return jnp.mean(unroll(eqx.combine(arrays, static), inputs, plan=plan).outputs[:, -1] ** 2)

    analysis = jax.jit(jax.grad(loss)).lower(arrays, jnp.zeros((8, time, 4))).compile().memory_analysis()
    assert analysis is not None
    return analysis.temp_size_in_bytes


def test_segments_save_memory_and_steps_keep_only_states():
    plain, short = _training_memory(1024, Plan()), _training_memory(256, Plan(segment=16))
    segmented = _training_memory(1024, Plan(segment=32))
    assert segmented < 0.4 * plain
    assert segmented < 3.5 * short  # four times the steps; it would be 4 if memory grew with T
    assert _training_memory(1024, Plan(remat=True)) < plain


def test_a_plan_is_chosen_from_the_sizes_and_can_be_seen():
    cell = LSTM(4, 128, key=jax.random.key(0))
    assert choose_plan(cell, 10, 100).segment is None
    assert choose_plan(cell, 100, 16_384).segment == 128
    assert choose_plan(cell, 100, 100) == Plan()


def test_steps_that_keep_much_for_little_arithmetic_are_computed_again_and_large_states_run_in_blocks():
    def plan(name, batch):
        return choose_plan(make_cell(name, 9, key=jax.random.key(0)), batch, 32)

    assert plan("ntm", 8).remat
    assert plan("ntm", 8).block is None
    assert plan("gated-fast-weights", 256).remat
    assert 8 <= (plan("gated-fast-weights", 256).block or 0) < 64
    # Blocks would change what batch statistics are, so they are never chosen for cells that have them.
    assert plan("bn-lstm", 4096).block is None
    assert choose_plan(
        Stack(LSTM(9, 5, key=jax.random.key(0)), make_cell("ntm", 5, key=jax.random.key(1))), 256, 4
    ).block


def test_one_program_serves_a_second_call():
    cell, traces = NRU(3, 5, memory_size=16, key=jax.random.key(0)), []

    @eqx.filter_jit
    def run(cell, inputs):
        traces.append(1)
        return unroll(cell, inputs).outputs

    run(cell, _inputs(2, 4, 3))
    run(jax.tree.map(lambda leaf: leaf + 1 if eqx.is_inexact_array(leaf) else leaf, cell), _inputs(2, 4, 3))
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": jnp.zeros((2, 5, 4))}, r"wanted \[batch, time, 3\], the input size of the cell"),
        ({"inputs": jnp.zeros((2, 0, 3))}, "at least one step"),
        ({"truncate": 0}, "truncate=0 cannot work"),
        ({"lengths": jnp.array([1, 1]), "mask": jnp.ones((2, 5), bool)}, "either `lengths` or `mask`"),
    ],
)
def test_bad_input(options, message):
    cell = RNN(3, 5, key=jax.random.key(0))
    with pytest.raises(ValueError, match=message):
        unroll(cell, **{"inputs": jnp.zeros((2, 5, 3)), **options})
