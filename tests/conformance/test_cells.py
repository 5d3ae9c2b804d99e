"""What is true of every registered cell.

Compiling programs is what these tests cost: the checks of a cell share them, and what is around them is NumPy.
"""

import inspect
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mnemon
from mnemon import Plan, unroll
from mnemon.cells import CELLS, AbstractCell, Stack, Zoneout
from mnemon.feedback import FedBack
from tests.tiny import INPUT, NAMES, tiny_cell

BATCH, TIME = 4, 8
LENGTHS = np.array([8, 5, 1, 6])
INPUTS = np.random.default_rng(1).standard_normal((BATCH, TIME, INPUT), np.float32)
# With this scope the tests of one cell follow one another, in the same process.
EVERY_CELL = pytest.mark.parametrize("name", NAMES, scope="module")

# One cell of each kind of state: vectors, a matrix of slots, links, a matrix of fast weights, rows touched sparsely
# (statistics of the batch are by block, so bn-lstm is not here).
_ALL_AT_ONCE = Plan(defer=False, remat=True, segment=3, block=2)
_EACH_PLAN = (Plan(defer=False), Plan(remat=True), Plan(segment=3), Plan(share=True), _ALL_AT_ONCE)
OTHER_PLANS = {
    "lstm": _EACH_PLAN,
    "nru": _EACH_PLAN,
    "dnc": (Plan(defer=False), Plan(segment=3), _ALL_AT_ONCE),
    "tardis": (Plan(defer=False), _ALL_AT_ONCE),
    "gated-fast-weights": (Plan(defer=False), _ALL_AT_ONCE),
    "sam": (Plan(defer=False), _ALL_AT_ONCE),
}
# Loops of all others are compiled to C: these add up over the batch, or have complex numbers or rows found by sorting.
NOT_NATIVE = {"bn-lstm", "urnn", "full-urnn", "sam", "sdnc"}
NATIVE = Plan(native=True)


def _close(a, b, tolerance: float = 2e-5) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        scale = 1.0 + float(np.max(np.abs(x), initial=0.0))
        np.testing.assert_allclose(x / scale, y / scale, atol=tolerance)


@eqx.filter_jit
def _step(cell, states, xs):
    """One step of every example, by the cell alone."""
    return jax.vmap(lambda state, x: cell(state, x), axis_name="batch")(states, xs)


@eqx.filter_jit
def _unroll(cell, inputs, state, reset, lengths):
    return unroll(cell, inputs, state=state, reset=reset, lengths=lengths)


@eqx.filter_jit
def _gradient(cell, inputs, plan, lengths):
    """Value and gradient of a loss that sees all outputs and the whole final state."""

    def loss(both):
        cell, inputs = both
        result = unroll(cell, inputs, plan=plan, lengths=lengths)
        parts = [jnp.mean(jnp.sin(leaf)) for leaf in jax.tree.leaves(result.state) if eqx.is_inexact_array(leaf)]
        return jnp.mean(jnp.sin(result.outputs)) + sum(parts), result.outputs

    (value, outputs), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((cell, inputs))
    return value, outputs, eqx.filter(gradient, eqx.is_inexact_array)


def _batched(state):
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (BATCH, *leaf.shape)), state)


def _where(condition, yes, no):
    def pick(a, b):
        return np.where(condition.reshape(BATCH, *[1] * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, yes, no)


@EVERY_CELL
def test_unroll_is_a_loop_over_the_cell(name):
    """With lengths, resets and a state carried from one call to the next, all at once."""
    cell, inputs = tiny_cell(name), INPUTS
    reset = np.zeros((BATCH, TIME), bool)
    reset[0, 5] = reset[3, 2] = True
    fresh = _batched(cell.init_state())
    state, expected = fresh, []
    for t in range(TIME):
        state = _where(reset[:, t], fresh, state)
        after, output = _step(cell, state, inputs[:, t])
        state = _where(t < LENGTHS, after, state)
        expected.append(np.where((t < LENGTHS)[:, None], output, 0.0))
    half = TIME // 2
    first = _unroll(cell, inputs[:, :half], fresh, reset[:, :half], np.minimum(LENGTHS, half))
    second = _unroll(cell, inputs[:, half:], first.state, reset[:, half:], np.maximum(LENGTHS - half, 0))
    _close(np.concatenate([first.outputs, second.outputs], axis=1), np.stack(expected, axis=1))
    _close(second.state, state)


@EVERY_CELL
def test_state_keeps_its_structure_shape_and_type(name):
    cell = tiny_cell(name)
    state = eqx.filter_eval_shape(lambda: cell.init_state())
    after, output = eqx.filter_eval_shape(lambda x: cell(cell.init_state(), x), INPUTS[0, 0])
    assert jax.tree.structure(state) == jax.tree.structure(after)
    assert [(a.shape, a.dtype) for a in jax.tree.leaves(state)] == [(a.shape, a.dtype) for a in jax.tree.leaves(after)]
    assert output.shape == (cell.output_size,)
    assert hasattr(cell.init_state(), "_fields") or isinstance(cell.init_state(), eqx.Module)


@EVERY_CELL
def test_gradients(name):
    """Every plan gives the same; padding changes nothing; extreme inputs give no NaN.

    That the default plan is right for every cell the oracles say; here one cell of each kind is run in all others.
    """
    cell, inputs = tiny_cell(name), INPUTS
    usual = _gradient(cell, inputs, Plan(), LENGTHS)
    for plan in (*OTHER_PLANS.get(name, ()), *(() if name in NOT_NATIVE else (NATIVE,))):
        _close(_gradient(cell, inputs, plan, LENGTHS), usual)

    padded = np.arange(TIME) >= LENGTHS[:, None]
    rubbish = np.where(padded[..., None], np.float32(1e3), inputs)
    value, outputs, (cell_gradient, input_gradient) = _gradient(cell, rubbish, Plan(), LENGTHS)
    _close((value, outputs, cell_gradient), (usual[0], usual[1], usual[2][0]))
    assert np.all(np.asarray(outputs)[padded] == 0)
    assert np.all(np.asarray(input_gradient)[padded] == 0)

    extreme = np.zeros((BATCH, TIME, INPUT), np.float32)  # the first: nothing
    extreme[1] = 1e4
    extreme[2, 2:4] = [[1e6], [-1e6]]
    extreme[3] = 1e3 * (-1.0) ** np.arange(TIME)[:, None]
    for plan in (Plan(), *(() if name in NOT_NATIVE else (NATIVE,))):
        for leaf in jax.tree.leaves(_gradient(cell, extreme, plan, np.full(BATCH, TIME))):
            assert np.all(np.isfinite(np.asarray(leaf)))


@EVERY_CELL
def test_jit_is_eager_and_a_batch_is_each_alone(name):
    cell, inputs = tiny_cell(name), INPUTS
    batched = _step(cell, _batched(cell.init_state()), inputs[:, 0])[1]
    with jax.disable_jit():
        _, eager = cell(cell.init_state(), jnp.asarray(inputs[2, 0]))
    _close(eager, batched[2])


@EVERY_CELL
def test_training_with_a_key_is_repeatable(name):
    cell = tiny_cell(name)
    unroll_with = eqx.filter_jit(lambda inputs, key: unroll(cell, inputs, key=key).outputs)
    first, again = (unroll_with(INPUTS, jax.random.key(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.all(np.isfinite(np.asarray(first)))


@pytest.mark.parametrize("name", OTHER_PLANS)
def test_truncation_stops_gradients(name):
    """`unroll` alone truncates, so one cell of each kind of state will do."""
    cell = tiny_cell(name)
    gradient = eqx.filter_jit(jax.grad(lambda inputs: jnp.sum(unroll(cell, inputs, truncate=3).outputs[:, -1] ** 2)))
    at_inputs = np.asarray(gradient(jnp.asarray(INPUTS)))
    assert np.all(at_inputs[:, : TIME - 3] == 0)
    assert np.any(at_inputs[:, TIME - 1] != 0)


@EVERY_CELL
def test_file_reads_like_its_paper(name):
    cell = CELLS[name].cell
    assert "$$" in (cell.__doc__ or ""), "the docstring states the equations"
    assert ">>>" in (cell.__doc__ or ""), "the docstring has an example"
    source = Path(inspect.getsourcefile(cell) or "")
    assert len(source.read_text().splitlines()) <= 250


def test_every_cell_class_is_registered():
    """A cell class that exists but has no name would be found by no test, no table and no command."""
    compositions = {Stack, Zoneout, FedBack}  # made of cells, so no architectures of their own
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
