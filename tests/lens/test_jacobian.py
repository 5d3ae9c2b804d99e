"""Jacobians through time against automatic differentiation, and the decomposition of the thesis against its formula."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int

from mnemon import Plan, unroll
from mnemon._errors import MnemonError
from mnemon.cells import LSTM, NRU, RNN, TARDIS, AbstractCell
from mnemon.lens import (
    decompose,
    differentiable_parts,
    jacobian,
    jacobian_flow,
    named_arrays,
    top_singular_values,
)
from mnemon.lens.trace import leaf_name
from tests.tiny import INPUT, NAMES, tiny_cell

TIME = 6


def _inputs(time: int = TIME, size: int = INPUT) -> jax.Array:
    return jax.random.normal(jax.random.key(3), (time, size))


def _by_autodiff(cell: AbstractCell, inputs: jax.Array, start: int, part: str) -> np.ndarray:
    """d part_end / d part_start by differentiating `unroll` itself, started from the state after `start` steps."""

    @eqx.filter_jit
    def differentiate(cell, inputs):
        state = unroll(cell, inputs[None, :start]).state

        def run(value):
            begun = jax.tree_util.tree_map_with_path(
                lambda path, leaf: value if leaf_name(path) == part else leaf, state
            )
            after = unroll(cell, inputs[None, start:], state=begun, plan=Plan(defer=False)).state
            return named_arrays(after)[part].ravel()

        value = named_arrays(state)[part]
        return jax.jacrev(run)(value).reshape(-1, value.size)

    return np.asarray(differentiate(cell, inputs))


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_has_the_jacobian_of_autodiff(name):
    cell, inputs = tiny_cell(name), _inputs()
    part = min(differentiable_parts(cell).items(), key=lambda item: (item[0] != "hidden", item[1]))[0]
    expected = _by_autodiff(cell, inputs, 2, part)
    np.testing.assert_allclose(jacobian(cell, inputs, 2, TIME, parts=[part]), expected, atol=2e-5)


@pytest.mark.parametrize("name", ["nru", "tardis", "ntm", "sam"])
def test_the_flow_is_the_spectrum_of_the_jacobian(name):
    cell, inputs = tiny_cell(name), _inputs()
    part = min(differentiable_parts(cell).items(), key=lambda item: (item[0] != "hidden", item[1]))[0]
    expected = jacobian(cell, inputs, 2, TIME, parts=[part])
    flow = jacobian_flow(cell, inputs, start=2, parts=[part])
    np.testing.assert_allclose(flow.top[part][0], np.linalg.norm(expected, 2), rtol=1e-3, atol=1e-6)
    assert flow.distances.tolist() == [4, 3, 2, 1, 0]
    np.testing.assert_allclose(flow.singular_values[part][-1], 1.0, rtol=1e-6)


def test_flow_of_each_part_and_of_all_together():
    cell, inputs = tiny_cell("lstm"), _inputs()
    flow = jacobian_flow(cell, inputs)
    whole = jacobian(cell, inputs, 1, TIME)
    assert list(flow.singular_values) == ["state", "hidden", "cell"]
    np.testing.assert_allclose(flow.singular_values["state"][1], np.linalg.svd(whole)[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(flow.norm["state"][1], np.linalg.norm(whole), rtol=1e-5)
    np.testing.assert_allclose(flow.top["cell"][1], np.linalg.norm(whole[5:, 5:], 2), rtol=1e-4)


def test_eta_is_the_largest_step_and_bounds_every_distance():
    cell, inputs = tiny_cell("gru"), _inputs(12)
    flow = jacobian_flow(cell, inputs)
    steps = [np.linalg.norm(jacobian(cell, inputs, t, t + 1), 2) for t in range(12)]
    np.testing.assert_allclose(flow.eta, max(steps), rtol=1e-4)
    assert np.all(flow.top["hidden"] <= flow.bound * (1 + 1e-4))


def test_what_float32_cannot_hold_is_still_measured():
    cell = RNN(1, 2, activation="tanh", key=jax.random.key(0))
    cell = eqx.tree_at(lambda c: c.recurrent_weights, cell, 0.01 * jnp.eye(2))
    cell = eqx.tree_at(lambda c: c.bias, cell, jnp.zeros(2))
    flow = jacobian_flow(cell, jnp.zeros((40, 1)))
    np.testing.assert_allclose(flow.top["hidden"][0], 0.01**40, rtol=1e-3)


def test_additive_memory_keeps_gradients_that_a_plain_net_loses():
    inputs = 0.1 * _inputs(40)
    plain = jacobian_flow(RNN(INPUT, 6, key=jax.random.key(1)), inputs)
    additive = jacobian_flow(NRU(INPUT, 6, memory_size=16, heads=4, key=jax.random.key(1)), inputs)
    assert additive.top["memory"][0] > 0.5
    assert plain.top["hidden"][0] < 1e-3


def test_progress_reaches_the_end():
    seen = []
    jacobian_flow(tiny_cell("rnn"), _inputs(), on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (TIME, TIME)
    assert len(seen) == TIME


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (4, 3), (0, TIME + 1)])
def test_steps_outside_the_sequence_are_refused(start, end):
    with pytest.raises(ValueError, match=r"0 <= start <= end <= 6, within the sequence"):
        jacobian(tiny_cell("rnn"), _inputs(), start, end)


def test_unknown_parts_and_batches_are_refused():
    with pytest.raises(MnemonError, match="did you mean 'cell'"):
        jacobian(tiny_cell("lstm"), _inputs(), 0, 1, parts=["cel"])
    with pytest.raises(MnemonError, match="one sequence"):
        jacobian_flow(tiny_cell("lstm"), _inputs()[None])


class _Counter(NamedTuple):
    count: Int[Array, ""]


class Counter(AbstractCell[_Counter, Array]):
    """A cell whose state is discrete."""

    input_size: int = eqx.field(static=True, default=2)
    output_size: int = eqx.field(static=True, default=1)

    def init_state(self):
        return _Counter(jnp.zeros((), jnp.int32))

    def drive(self, x):
        return x

    def step(self, state, drive, *, key=None):
        return _Counter(state.count + 1), drive[:1]


class _Turning(NamedTuple):
    phase: Array


class Turning(AbstractCell[_Turning, Array]):
    """A cell whose state is complex: each entry turns by its own angle and shrinks."""

    input_size: int = eqx.field(static=True, default=2)
    output_size: int = eqx.field(static=True, default=3)

    def init_state(self):
        return _Turning(jnp.ones((3,), jnp.complex64))

    def drive(self, x):
        return x

    def step(self, state, drive, *, key=None):
        after = state.phase * 0.5 * jnp.exp(1j * jnp.arange(3)) + jnp.sum(drive)
        return _Turning(after), after.real


def test_discrete_states_are_refused_and_complex_ones_are_pairs_of_reals():
    with pytest.raises(MnemonError, match="holds no real or complex numbers"):
        jacobian_flow(Counter(), jnp.ones((4, 2)))
    flow = jacobian_flow(Turning(), jnp.ones((4, 2)))
    assert flow.singular_values["phase"].shape == (5, 6)
    np.testing.assert_allclose(flow.singular_values["phase"][0], 0.5**4, rtol=1e-4)


# The model of thesis 3.20-3.21: h_t = tanh(W h_(t-1) + V r_t + U x_t), r_t = A h_(i_t), all states kept in the memory.


class WormholeState(NamedTuple):
    hidden: Float[Array, " hidden"]
    memory: Float[Array, "steps hidden"]
    time: Int[Array, ""]


class Wormholes(AbstractCell[WormholeState, Array]):
    W: Array
    V: Array
    A: Array
    U: Array
    reads: tuple[int, ...] = eqx.field(static=True)  # i_t, of steps 1, 2, ...
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def __init__(self, hidden: int, word: int, reads, scale: float = 0.5):
        keys = jax.random.split(jax.random.key(7), 4)
        self.W = scale * jax.random.normal(keys[0], (hidden, hidden)) / hidden**0.5
        self.V = jax.random.normal(keys[1], (hidden, word)) / word**0.5
        self.A = jax.random.normal(keys[2], (word, hidden)) / hidden**0.5
        self.U = 0.3 * jax.random.normal(keys[3], (hidden, 2))
        self.reads, self.input_size, self.output_size = tuple(reads), 2, hidden

    def init_state(self):
        steps = len(self.reads)
        return WormholeState(jnp.zeros(len(self.W)), jnp.zeros((steps + 1, len(self.W))), jnp.zeros((), jnp.int32))

    def drive(self, x):
        return x

    def slope_input(self, state, x):
        read = state.memory[jnp.asarray(self.reads)[state.time]]
        return self.W @ state.hidden + self.V @ (self.A @ read) + self.U @ x

    def step(self, state, drive, *, key=None):
        hidden = jnp.tanh(self.slope_input(state, drive))
        time = state.time + 1
        return WormholeState(hidden, state.memory.at[time].set(hidden), time), hidden


def _total_by_autodiff(cell: Wormholes, inputs: jax.Array, start: int) -> np.ndarray:
    """d h_end / d h_start, where h_start is also what step `start` writes."""

    @eqx.filter_jit
    def differentiate(cell, inputs):
        state = unroll(cell, inputs[None, :start]).state

        def run(hidden):
            begun = state._replace(hidden=hidden[None], memory=state.memory.at[0, start].set(hidden))
            return unroll(cell, inputs[None, start:], state=begun, plan=Plan(defer=False)).state.hidden[0]

        return jax.jacrev(run)(state.hidden[0])

    return np.asarray(differentiate(cell, inputs))


def _formula(cell: Wormholes, inputs: jax.Array, start: int, end: int, first_k: int, last_product: int):
    """3.24 and 3.25 in NumPy, with the limits of sum and product as given."""
    W, VA = np.asarray(cell.W, float), np.asarray(cell.V @ cell.A, float)
    hidden = np.asarray(unroll(cell, inputs[None]).outputs[0], float)
    slopes = {t: np.diag(1 - hidden[t - 1] ** 2) for t in range(1, end + 1)}
    reads = {t: cell.reads[t - 1] for t in range(1, end + 1)}
    total = {t: np.zeros_like(W) for t in range(start)} | {start: np.eye(len(W))}
    for t in range(start + 1, end + 1):
        total[t] = slopes[t] @ (W @ total[t - 1] + VA @ total[reads[t]])

    def product(low: int, high: int) -> np.ndarray:
        matrix = np.eye(len(W))
        for t in range(low, high + 1):
            matrix = slopes[t] @ W @ matrix
        return matrix

    terms = [product(k + 1, last_product) @ slopes[k] @ VA @ total[reads[k]] for k in range(first_k, end)]
    detours = np.sum(terms, axis=0)
    return product(start + 1, end), detours, slopes[end] @ VA @ total[reads[end]], total[end]


READS = (0, 0, 1, 0, 2, 3, 1, 4, 6, 2)


def test_decomposition_is_the_formula_of_the_thesis_and_sums_to_autodiff():
    cell, inputs, start, end = Wormholes(4, 3, READS), _inputs(10, 2), 2, 9
    parts = decompose(cell, inputs, start=start, end=end)
    chain, detours, direct, total = _formula(cell, inputs, start, end, start + 1, end)
    np.testing.assert_allclose(parts.chain[0], chain, atol=1e-6)
    np.testing.assert_allclose(parts.detours[0], detours, atol=1e-6)
    np.testing.assert_allclose(parts.direct[0], direct, atol=1e-6)
    np.testing.assert_allclose(parts.total[0], total, atol=1e-6)
    np.testing.assert_allclose(parts.total[0], _total_by_autodiff(cell, inputs[:end], start), atol=1e-6)


def test_the_printed_limits_of_the_sum_are_not_the_jacobian():
    cell, inputs, start, end = Wormholes(4, 3, READS), _inputs(10, 2), 2, 9
    chain, detours, direct, total = _formula(cell, inputs, start, end, start, end - 1)
    assert np.max(np.abs(chain + detours + direct - total)) > 1e-3


def test_the_norm_is_never_below_the_lower_bound():
    parts = decompose(Wormholes(4, 3, READS), _inputs(10, 2))
    assert np.all(top_singular_values(parts.total) >= parts.lower_bound - 1e-6)


@pytest.mark.parametrize("distance", [5, 20, 60])
def test_with_a_perfect_read_the_third_term_does_not_shrink(distance):
    """Theorem 1: what step t1 reads is h_t0, whatever lies between."""
    reads = [0] * distance + [1]
    cell, inputs = Wormholes(4, 3, reads), jnp.zeros((distance + 1, 2)).at[0].set(1.0)
    parts = decompose(cell, inputs, start=1)
    slopes = np.diag(1 - np.asarray(unroll(cell, inputs[None]).outputs[0, -1]) ** 2)
    np.testing.assert_allclose(parts.direct[0], slopes @ np.asarray(cell.V @ cell.A), atol=1e-6)
    np.testing.assert_allclose(top_singular_values(parts.direct[0]), 1.5, atol=1.0)
    if distance == 60:
        assert top_singular_values(parts.chain[0]) < 1e-12


def test_a_cell_without_a_memory_has_no_decomposition():
    with pytest.raises(MnemonError, match="a chain beside which there is a memory"):
        decompose(LSTM(INPUT, 4, key=jax.random.key(0)), _inputs())


def test_decomposition_of_tardis_sums_to_autodiff():
    cell = TARDIS(INPUT, 6, memory_slots=4, address_size=2, word_size=5, key=jax.random.key(0))
    inputs, start = _inputs(9), 5

    @eqx.filter_jit
    def differentiate(cell, inputs):
        state = unroll(cell, inputs[None, :start]).state
        slot = state.write_weights[0].argmax()

        def run(chain):
            content = state.content.at[0, slot].set(chain["hidden"] @ cell.micro_weights)
            begun = state._replace(content=content, **{name: value[None] for name, value in chain.items()})
            after = unroll(cell, inputs[None, start:], state=begun, plan=Plan(defer=False)).state
            return {name: getattr(after, name)[0] for name in chain}

        return jax.jacrev(run)({"hidden": state.hidden[0], "cell": state.cell[0]})

    blocks = differentiate(cell, inputs)
    expected = np.block([[np.asarray(blocks[a][b]) for b in ("hidden", "cell")] for a in ("hidden", "cell")])
    parts = decompose(cell, inputs, start=start)
    np.testing.assert_allclose(parts.total[0], expected, atol=2e-5)
    assert top_singular_values(parts.memory[0]) > 1e-4
