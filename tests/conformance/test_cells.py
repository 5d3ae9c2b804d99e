"""What is true of every registered cell."""

import inspect
import operator
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mnemon
from mnemon import Plan, unroll
from mnemon.cells import CELLS, AbstractCell, Stack, Zoneout
from tests.tiny import INPUT, NAMES, tiny_cell

BATCH, TIME = 4, 7
EVERY_CELL = pytest.mark.parametrize("name", NAMES)


def _inputs(time: int = TIME, batch: int = BATCH, seed: int = 1) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), (batch, time, INPUT))


def _close(a, b, tolerance: float = 2e-5) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        scale = 1.0 + float(np.max(np.abs(x), initial=0.0))
        np.testing.assert_allclose(x / scale, y / scale, atol=tolerance)


@eqx.filter_jit
def _gradient(cell, inputs, plan, **options):
    """Value and gradient of a loss that sees all outputs and the whole final state."""

    def loss(both):
        cell, inputs = both
        result = unroll(cell, inputs, plan=plan, **options)
        parts = [jnp.mean(jnp.sin(leaf)) for leaf in jax.tree.leaves(result.state) if eqx.is_inexact_array(leaf)]
        return jnp.mean(jnp.sin(result.outputs)) + sum(parts)

    value, gradient = eqx.filter_value_and_grad(loss)((cell, inputs))
    return value, eqx.filter(gradient, eqx.is_inexact_array)


@EVERY_CELL
def test_unroll_is_a_loop_over_the_cell(name):
    cell, inputs = tiny_cell(name), _inputs(batch=2)
    result = eqx.filter_jit(unroll)(cell, inputs)
    step = eqx.filter_jit(lambda state, x: cell(state, x))
    for example in range(2):
        state = cell.init_state()
        for t in range(TIME):
            state, output = step(state, inputs[example, t])
            _close(output, result.outputs[example, t])
        _close(state, jax.tree.map(operator.itemgetter(example), result.state))


@EVERY_CELL
def test_state_keeps_its_structure_shape_and_type(name):
    cell = tiny_cell(name)
    state = eqx.filter_eval_shape(lambda: cell.init_state())
    after, output = eqx.filter_eval_shape(lambda x: cell(cell.init_state(), x), jnp.zeros(INPUT))
    assert jax.tree.structure(state) == jax.tree.structure(after)
    assert [(a.shape, a.dtype) for a in jax.tree.leaves(state)] == [(a.shape, a.dtype) for a in jax.tree.leaves(after)]
    assert output.shape == (cell.output_size,)
    assert hasattr(cell.init_state(), "_fields") or isinstance(cell.init_state(), eqx.Module)


@EVERY_CELL
def test_every_plan_gives_the_plain_scan(name):
    cell, inputs = tiny_cell(name), _inputs()
    plain = _gradient(cell, inputs, Plan(defer=False))
    for plan in (Plan(), Plan(remat=True, segment=3, block=2)):
        _close(_gradient(cell, inputs, plan), plain)


@EVERY_CELL
def test_chunked_with_carried_state_is_whole(name):
    cell, inputs = tiny_cell(name), _inputs()
    whole = unroll(cell, inputs)
    first = unroll(cell, inputs[:, :3])
    second = unroll(cell, inputs[:, 3:], state=first.state)
    _close(jnp.concatenate([first.outputs, second.outputs], axis=1), whole.outputs)
    _close(second.state, whole.state)


@EVERY_CELL
def test_padding_changes_nothing(name):
    cell, inputs = tiny_cell(name), _inputs()
    lengths = jnp.array([7, 4, 1, 5])
    rubbish = jnp.where((jnp.arange(TIME)[None] < lengths[:, None])[..., None], inputs, 1e3)
    value, (cell_gradient, input_gradient) = _gradient(cell, rubbish, Plan(), lengths=lengths)
    clean_value, (clean_cell_gradient, _) = _gradient(cell, inputs, Plan(), lengths=lengths)
    _close((value, cell_gradient), (clean_value, clean_cell_gradient))
    padded = np.arange(TIME) >= np.asarray(lengths)[:, None]
    assert np.all(np.asarray(input_gradient)[padded] == 0)
    result = unroll(cell, rubbish, lengths=lengths)
    assert np.all(np.asarray(result.outputs)[padded] == 0)
    alone = unroll(cell, inputs[1:2, :4])
    _close(jax.tree.map(lambda leaf: leaf[1], result.state), jax.tree.map(lambda leaf: leaf[0], alone.state))


@EVERY_CELL
def test_reset_is_two_sequences(name):
    cell, inputs = tiny_cell(name), _inputs()
    reset = jnp.zeros((BATCH, TIME), bool).at[:, 4].set(True)
    result = unroll(cell, inputs, reset=reset)
    _close(result.outputs[:, 4:], unroll(cell, inputs[:, 4:]).outputs)
    _close(result.outputs[:, :4], unroll(cell, inputs[:, :4]).outputs)


@EVERY_CELL
def test_jit_is_eager_and_batch_is_each_alone(name):
    cell, inputs = tiny_cell(name), _inputs(time=3)
    with jax.disable_jit():
        state, eager = cell(cell.init_state(), inputs[2, 0])
        del state
    batched = eqx.filter_jit(unroll)(cell, inputs).outputs
    _close(eager, batched[2, 0])
    _close(unroll(cell, inputs[2:3]).outputs[0], batched[2])


@EVERY_CELL
def test_no_nan_for_zero_huge_and_adversarial_inputs(name):
    cell = tiny_cell(name)
    spikes = jnp.zeros((1, TIME, INPUT)).at[0, 2].set(1e6).at[0, 3].set(-1e6)
    alternating = jnp.broadcast_to(1e3 * (-1.0) ** jnp.arange(TIME)[None, :, None], (1, TIME, INPUT))
    inputs = jnp.concatenate([jnp.zeros((1, TIME, INPUT)), 1e4 * jnp.ones((1, TIME, INPUT)), spikes, alternating])
    for leaf in jax.tree.leaves(_gradient(cell, inputs, Plan())):
        assert np.all(np.isfinite(np.asarray(leaf)))


@EVERY_CELL
def test_training_with_a_key_is_repeatable(name):
    cell, inputs = tiny_cell(name), _inputs()
    run = eqx.filter_jit(lambda seed: unroll(cell, inputs, key=jax.random.key(seed)).outputs)
    np.testing.assert_array_equal(run(3), run(3))
    assert np.all(np.isfinite(np.asarray(run(4))))


@EVERY_CELL
def test_truncation_stops_gradients(name):
    cell, inputs = tiny_cell(name), _inputs()

    def last(inputs, truncate):
        return jnp.sum(unroll(cell, inputs, truncate=truncate).outputs[:, -1] ** 2)

    cut = jax.grad(lambda x: last(x, 3))(inputs)
    assert np.all(np.asarray(cut)[:, :4] == 0)
    _close(jax.grad(lambda x: last(x, TIME))(inputs), jax.grad(lambda x: last(x, None))(inputs))


@EVERY_CELL
def test_file_reads_like_its_paper(name):
    cell = CELLS[name].cell
    assert "$$" in (cell.__doc__ or ""), "the docstring states the equations"
    assert ">>>" in (cell.__doc__ or ""), "the docstring has an example"
    source = Path(inspect.getsourcefile(cell) or "")
    assert len(source.read_text().splitlines()) <= 250


def test_every_cell_class_is_registered():
    """A cell class that exists but has no name would be found by no test, no table and no command."""
    compositions = {Stack, Zoneout}  # made of cells, so no architectures of their own
    classes = {
        cls
        for cls in _subclasses(AbstractCell)
        if cls.__module__.startswith(mnemon.__name__) and not inspect.isabstract(cls)
    }
    assert {entry.cell for entry in CELLS.values()} == classes - compositions


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
