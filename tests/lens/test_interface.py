"""Proposition 1 on a real NTM."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon._errors import MnemonError
from mnemon.cells import LSTM, NTM
from mnemon.lens import interface_flow

SIZES = {"memory_slots": 6, "word_size": 3, "read_heads": 2, "write_heads": 1}
INPUTS = jax.random.normal(jax.random.key(2), (5, 4))


def _cell(**options) -> Any:
    return NTM(4, 7, **SIZES, **options, key=jax.random.key(0))


def _by_autodiff(cell: Any, start: int, end: int, *, reads_only: bool) -> np.ndarray:
    """d xi_end / d xi_start by running the steps between by hand from a given xi_start."""

    @eqx.filter_jit
    def differentiate(cell):
        states, state = [], cell.init_state()
        for x in INPUTS:
            states.append(state)
            state, _ = cell(state, x)

        def run(xi):
            state = states[start - 1]
            controller = cell.controller(state.controller, cell.drive(INPUTS[start - 1]), state.reads)
            for t in range(start + 1, end + 1):
                state, _ = cell.access(state, controller, xi)
                if reads_only:  # everything but what was read is what it would have been
                    state = states[t - 1]._replace(reads=state.reads)
                controller = cell.controller(state.controller, cell.drive(INPUTS[t - 1]), state.reads)
                xi = cell.interface(controller.output)
            return xi

        state = states[start - 1]
        controller = cell.controller(state.controller, cell.drive(INPUTS[start - 1]), state.reads)
        return jax.jacrev(run)(cell.interface(controller.output))

    return np.asarray(differentiate(cell))


@pytest.mark.parametrize("controller", ["lstm", "feedforward"])
@pytest.mark.parametrize("start", [1, 3])
def test_total_is_autodiff(controller, start):
    cell = _cell(controller=controller)
    flow = interface_flow(cell, INPUTS)
    expected = np.linalg.norm(_by_autodiff(cell, start, 5, reads_only=False), 2)
    np.testing.assert_allclose(flow.total[start - 1], expected, rtol=1e-3, atol=1e-7)


def test_reads_are_autodiff_with_all_else_constant():
    """With reads before the write, no order to a write head reaches the next read."""
    cell = _cell(read_before_write=True)
    flow = interface_flow(cell, INPUTS)
    expected = np.linalg.norm(_by_autodiff(cell, 3, 5, reads_only=True), 2)
    np.testing.assert_allclose(flow.reads[2], expected, rtol=1e-3, atol=1e-9)


def test_the_bound_holds_and_vanishes_with_the_interface_weights():
    cell = _cell()
    flow = interface_flow(cell, INPUTS)
    assert np.all(flow.reads <= flow.bound * (1 + 1e-5))
    assert flow.distances.tolist() == [4, 3, 2, 1, 0]
    smaller = eqx.tree_at(lambda c: c.interface.weights, cell, 0.1 * cell.interface.weights)
    assert interface_flow(smaller, INPUTS).bound[0] < 1e-2 * flow.bound[0]


def test_cells_without_an_interface_are_refused():
    with pytest.raises(MnemonError, match="LSTM has no interface network"):
        interface_flow(LSTM(4, 3, key=jax.random.key(0)), jnp.ones((3, 4)))
