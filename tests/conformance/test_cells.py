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
from mnemon import Plan, conformance, unroll
from mnemon.cells import CELLS, AbstractCell, Stack, Zoneout
from mnemon.feedback import FedBack
from tests.tiny import NAMES, tiny_cell

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


def _native(name: str) -> tuple[Plan, ...]:
    return () if name in NOT_NATIVE else (Plan(native=True),)


@EVERY_CELL
def test_state_keeps_its_structure_shape_and_type(name):
    conformance.check_state(tiny_cell(name))


@EVERY_CELL
def test_unroll_is_a_loop_over_the_cell(name):
    conformance.check_loop(tiny_cell(name))


@EVERY_CELL
def test_gradients(name):
    """Every cell in the default plan is compared with its oracle; here one cell of each kind is run in all others."""
    conformance.check_gradients(tiny_cell(name), (*OTHER_PLANS.get(name, ()), *_native(name)))
    conformance.check_extremes(tiny_cell(name), _native(name))


@EVERY_CELL
def test_jit_is_eager_and_a_batch_is_each_alone(name):
    conformance.check_alone(tiny_cell(name))


@EVERY_CELL
def test_training_with_a_key_is_repeatable(name):
    conformance.check_training(tiny_cell(name))


@pytest.mark.parametrize("name", OTHER_PLANS)
def test_truncation_stops_gradients(name):
    """`unroll` alone truncates, so one cell of each kind of state will do."""
    cell = tiny_cell(name)
    gradient = eqx.filter_jit(jax.grad(lambda inputs: jnp.sum(unroll(cell, inputs, truncate=3).outputs[:, -1] ** 2)))
    at_inputs = np.asarray(gradient(jnp.asarray(conformance.example_inputs(cell))))
    assert np.all(at_inputs[:, :-3] == 0)
    assert np.any(at_inputs[:, -1] != 0)


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
