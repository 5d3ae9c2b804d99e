"""What the gated fast weights of the paper are."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, unroll
from mnemon.cells import GatedFastWeights, count_parameters, time_varying
from mnemon.cells.gated_fast_weights import read_and_write


def _tiny(**options) -> GatedFastWeights:
    return GatedFastWeights(3, 5, slow_size=4, slow_layer_size=7, **options, key=jax.random.key(0))


def _inputs(time: int = 6) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (2, time, 3))


def test_sizes_of_the_published_network():
    cell = GatedFastWeights(15, 40, slow_layer_size=100, key=jax.random.key(0))
    embedding, readout = 15 * 15, 40 * 15 + 15
    assert cell.update_weights.shape == (100, 394)
    assert count_parameters(cell) + embedding + readout == 46_234
    assert time_varying(cell) == 3_880 + 80
    assert time_varying(GatedFastWeights(15, 40, fast_bias=False, key=jax.random.key(0))) == 3_880


def test_the_fast_weights_used_at_a_step_do_not_know_its_input():
    """With the input kept from the fast net, an output depends on all inputs but the last."""
    cell = _tiny()
    state = jax.tree.map(lambda leaf: leaf[0], unroll(cell, _inputs()).state)
    first, second = (jax.random.normal(jax.random.key(seed), (3,)) for seed in (2, 3))
    drive = cell.drive(first)
    _, output = cell.step(state, drive)
    after, other = cell.step(state, drive._replace(slow=cell.drive(second).slow))
    np.testing.assert_array_equal(output, other)
    reference, _ = cell.step(state, drive)
    assert float(jnp.max(jnp.abs(after.first - reference.first))) > 1e-3
    assert float(jnp.max(jnp.abs(after.second - reference.second))) > 1e-3
    _, next_output = cell.step(after, drive)
    _, next_reference = cell.step(reference, drive)
    assert float(jnp.max(jnp.abs(next_output - next_reference))) > 1e-3


def _with_gates(cell: GatedFastWeights, logit: float) -> GatedFastWeights:
    """All gates at sigmoid(logit), whatever the input."""
    gates = cell.update_weights.shape[1] - cell.slow_size - sum(leaf.shape[0] + 5 for leaf in cell.init_state()[2:])
    return eqx.tree_at(
        lambda c: (c.update_weights, c.update_bias),
        cell,
        (cell.update_weights.at[:, -gates:].set(0), cell.update_bias.at[-gates:].set(logit)),
    )


def test_a_closed_gate_keeps_and_an_open_gate_replaces():
    cell = _tiny()
    state = jax.tree.map(lambda leaf: leaf[0], unroll(cell, _inputs()).state)
    x = jnp.array([0.3, -0.7, 1.1])
    kept, _ = _with_gates(cell, -100.0)(state, x)
    replaced, _ = _with_gates(cell, 100.0)(state, x)
    for before, same, new in zip(state[2:], kept[2:], replaced[2:], strict=True):
        np.testing.assert_array_equal(same, before)
        assert float(jnp.max(jnp.abs(new - before))) > 0.1
        values = np.linalg.svd(new, compute_uv=False)  # nothing but one outer product is left
        assert values[1] < 1e-6 * values[0]


def test_the_bias_of_the_gates_is_how_much_is_overwritten_at_first():
    x = jnp.zeros(3)  # with a slow net that says nothing, the biases alone decide
    for bias, overwritten in ((0.0, 0.25), (-2.0, 1 / 70.4)):
        cell = _tiny(gate_bias=bias)
        state = cell.init_state()._replace(second=jnp.ones_like(cell.init_state().second))
        after, _ = cell(state, x)
        np.testing.assert_allclose(after.second, 1.0 - overwritten, rtol=1e-3)


def test_without_the_gate_updates_add_up():
    cell = _tiny(gate=False)
    state = cell.init_state()
    x = jnp.array([0.3, -0.7, 1.1])
    ranks = []
    for _ in range(3):
        state, _ = cell(state, x)
        ranks.append(np.linalg.matrix_rank(state.second, tol=1e-5))
    assert ranks == [1, 2, 3]


def test_the_written_out_backward_pass_is_that_of_the_forward_pass():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        rows, columns = ([jnp.asarray(rng.standard_normal(size)) for _ in range(3)] for size in (6, 4))
        values, gates = zip(rows[:2], columns[:2], strict=True)
        fast, after_weights = (jnp.asarray(rng.standard_normal((6, 4))) for _ in range(2))

        def plain(fast, inputs, values, gates):
            return inputs @ fast, fast + jnp.outer(*gates) * (jnp.outer(*values) - fast)

        def gradient(function):
            def loss(*arguments):
                output, after = function(*arguments)
                return output @ columns[2] + jnp.sum(after * after_weights)

            return jax.grad(loss, argnums=(0, 1, 2, 3))(fast, rows[2], values, gates)

        for a, b in zip(*(jax.tree.leaves(gradient(f)) for f in (read_and_write, plain)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_training_memory_of_segments_grows_as_the_root_of_time():
    cell = _tiny()
    dynamic, static = eqx.partition(cell, eqx.is_array)

    def temporary_bytes(time: int, plan: Plan) -> int:
        def loss(dynamic, inputs):
            return jnp.sum(unroll(eqx.combine(dynamic, static), inputs, plan=plan).outputs)

        traced = jax.jit(jax.grad(loss)).lower(dynamic, jax.ShapeDtypeStruct((2, time, 3), jnp.float32))
        analysis = traced.compile().memory_analysis()
        assert analysis is not None
        return analysis.temp_size_in_bytes

    states = 2 * 4 * time_varying(cell)
    assert temporary_bytes(1024, Plan(defer=False)) > 1024 * states
    assert temporary_bytes(1024, Plan(segment=32)) < 1024 * states / 2


@pytest.mark.parametrize("options", [{"hidden_size": 0}, {"slow_size": 0}, {"slow_layer_size": 0}, {"eps": 0.0}])
def test_bad_input(options):
    (argument,) = options
    with pytest.raises(ValueError, match=argument):
        GatedFastWeights(3, **{"hidden_size": 5, **options}, key=jax.random.key(0))
