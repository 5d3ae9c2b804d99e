"""The time loop beyond what the conformance suite checks on every cell."""

import os
import platform
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, Stack, choose_plan, unroll, use_cores
from mnemon._cores import from_cores, map_on_cores
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
    assert choose_plan(cell, 100, 100) == Plan(share=True)
    assert choose_plan(cell, 3, 1000) == Plan()  # too few examples to share
    assert choose_plan(cell, 10, 2) == Plan()  # over before another core has begun
    assert not choose_plan(make_cell("bn-lstm", 4, hidden_size=128, key=jax.random.key(0)), 100, 100).share


def test_steps_that_keep_much_for_little_arithmetic_are_computed_again_and_large_states_run_in_blocks(monkeypatch):
    def plan(name, batch):
        return choose_plan(make_cell(name, 9, key=jax.random.key(0)), batch, 32)

    assert plan("ntm", 8).remat
    assert plan("ntm", 8).block is None
    assert plan("gated-fast-weights", 256).remat
    assert 8 <= (plan("gated-fast-weights", 256).block or 0) < 64
    # A native loop reads back at once what it wrote, so a step has to keep more than a few states.
    monkeypatch.setenv("MNEMON_NATIVE", "1")
    assert plan("ntm", 8).remat
    assert not plan("gated-fast-weights", 256).remat
    monkeypatch.setenv("MNEMON_NATIVE", "0")
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


@eqx.filter_jit
def _shared_and_not(cell, inputs, state, key, share):
    """Outputs, gradients and all else of a loop that uses everything `unroll` offers."""

    def loss(both):
        cell, inputs = both
        result = unroll(
            cell,
            inputs,
            state=state,
            lengths=jnp.array([7, 2, 5, 7, 1]),
            reset=jnp.arange(7)[None] == jnp.arange(5)[:, None],
            key=key,
            observe=lambda state: state.hidden,
            truncate=3,
            plan=Plan(share=share),
        )
        return jnp.sum(jnp.sin(result.outputs)), result

    (_, result), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((cell, inputs))
    return result, gradient


def test_a_reset_before_the_first_step_needs_no_time_axis():
    cell, inputs = LSTM(3, 5, key=jax.random.key(0)), _inputs(4, 7, 3)
    state = jax.tree.map(lambda leaf: jnp.stack([leaf + 0.3] * 4), cell.init_state())
    afresh = jnp.array([True, False, True, False])

    @eqx.filter_jit
    def outputs_and_gradient(reset):
        def loss(both):
            cell, state = both
            outputs = unroll(cell, inputs, state=state, reset=reset).outputs
            return jnp.sum(jnp.sin(outputs)), outputs

        return eqx.filter_grad(loss, has_aux=True)((cell, state))

    short, long = outputs_and_gradient(afresh), outputs_and_gradient(afresh[:, None] & (jnp.arange(7)[None] == 0))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), short, long)
    assert not np.any(np.asarray(short[0][1].hidden)[::2])
    np.testing.assert_array_equal(unroll(cell, inputs, reset=afresh).outputs, unroll(cell, inputs).outputs)


def test_a_batch_shared_among_cores_is_the_same_batch():
    cell = make_cell("dntm-discrete", 3, hidden_size=5, memory_slots=7, key=jax.random.key(0))
    state = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), cell.init_state())
    shared, alone = (
        _shared_and_not(cell, _inputs(5, 7, 3), state, jax.random.key(4), share) for share in (True, False)
    )  # five examples on two cores: one place of the second is empty
    for a, b in zip(jax.tree.leaves(shared), jax.tree.leaves(alone), strict=True):
        if eqx.is_inexact_array(a):
            np.testing.assert_allclose(a, b, atol=1e-5)
    assert len(shared[0].outputs.sharding.device_set) == 2
    assert len(from_cores(shared[0].outputs).sharding.device_set) == 1


USING_CORES = """
import resource, jax, mnemon, numpy as np
mnemon.use_cores(3)
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(2**26, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first, again = faults(), faults()
print(jax.local_device_count(), int(again < first / 2))
"""


@pytest.mark.parametrize(
    ("told", "devices", "kept"),
    [({}, 3, platform.libc_ver()[0] == "glibc"), ({"JAX_NUM_CPU_DEVICES": "2", "MALLOC_TOP_PAD_": "0"}, 2, False)],
)
def test_cores_are_devices_and_memory_is_kept_unless_the_environment_says_otherwise(told, devices, kept):
    env = {name: value for name, value in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"} | told
    done = subprocess.run([sys.executable, "-c", USING_CORES], env=env, capture_output=True, text=True, check=True)
    assert list(map(int, done.stdout.split())) == [devices, kept]


def test_cores_cannot_change_once_jax_has_begun():
    before = jax.local_device_count()
    use_cores(7)
    assert jax.local_device_count() == before
    with pytest.raises(ValueError, match=r"count=0 cannot work: wanted at least one core, e\.g\. use_cores\(2\)"):
        use_cores(0)


def test_statistics_of_a_shared_batch_are_means_over_shares():
    cell = make_cell("bn-lstm", 3, hidden_size=5, key=jax.random.key(0))
    inputs = _inputs(6, 7, 3)
    shared = jax.jit(lambda x: unroll(cell, x, key=jax.random.key(2), plan=Plan(share=True)).statistics)(inputs)
    halves = [unroll(cell, half, key=jax.random.key(2)).statistics for half in (inputs[:3], inputs[3:])]
    for a, b, c in zip(*map(jax.tree.leaves, (shared, *halves)), strict=True):
        np.testing.assert_allclose(a, (b + c) / 2, atol=1e-5)


@pytest.mark.parametrize("entries", [1, 2, 5])
def test_entries_shared_among_cores_are_each_computed(entries):
    scale, numbers = jnp.asarray(3.0), jnp.arange(2.0 * entries).reshape(entries, 2)
    shared = jax.jit(lambda scale: map_on_cores(lambda pair: (scale * pair, jnp.sum(pair)), numbers))(scale)
    np.testing.assert_array_equal(shared[0], 3 * numbers)
    np.testing.assert_array_equal(shared[1], jnp.sum(numbers, 1))
