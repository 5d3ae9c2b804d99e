"""What is true of every cell, as checks that any cell can be put to: those of mnemon, and your own.

>>> import jax
>>> from mnemon.cells import GRU
>>> check_cell(GRU(3, 5, key=jax.random.key(0)))
['state', 'loop', 'extremes', 'gradients', 'alone', 'training']
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._errors import MnemonError
from ._plan import Plan
from .cells import BATCH_AXIS, AbstractCell
from .unroll import unroll

BATCH, TIME = 4, 8
LENGTHS = np.array([8, 5, 1, 6])
_TOLERANCE = 2e-5  # of the largest value
_PLANS = (Plan(defer=False), Plan(native=True))


class ContractBroken(MnemonError):
    """A cell does not keep the contract of all cells."""


def check_cell(cell: AbstractCell, *, report: Callable[[str], None] = lambda name: None) -> list[str]:
    """Put a cell to all checks; their names, or the first that it fails as an error that says how.

    - `state`: a named record that keeps its structure, shapes and types.
    - `loop`: `unroll` is a loop over the cell, with lengths, resets and a state that is carried on.
    - `extremes`: nothing, huge and alternating inputs give finite outputs and gradients.
    - `gradients`: every way to run the loop gives the same, and padding changes nothing.
    - `alone`: an example of a batch is what it is alone; compiled is what it is step by step.
    - `training`: with a key it is repeatable, and finite.

    `report` is told each name before its check.
    """
    for name, check in CHECKS.items():
        report(name)
        check(cell)
    return list(CHECKS)


def example_inputs(cell: AbstractCell) -> np.ndarray:
    """[batch, time, input]."""
    return np.random.default_rng(1).standard_normal((BATCH, TIME, cell.input_size), np.float32)


def check_state(cell: AbstractCell) -> None:
    """It keeps its structure, shapes and types, and has names."""
    first = cell.init_state()
    named = hasattr(first, "_fields") or isinstance(first, eqx.Module)
    _require(named, f"init_state gives a {type(first).__name__}, not a named record: a NamedTuple or an eqx.Module")
    before = eqx.filter_eval_shape(lambda: cell.init_state())
    after, output = eqx.filter_eval_shape(lambda x: cell(cell.init_state(), x), example_inputs(cell)[0, 0])
    was, now = (_described(state) for state in (before, after))
    changed = [
        f"{name} is {was.get(name)}, then {now.get(name)}" for name in was | now if was.get(name) != now.get(name)
    ]
    _require(not changed, f"a step changes what the state is: {'; '.join(changed)}")
    _require(jax.tree.structure(before) == jax.tree.structure(after), "a step changes the structure of the state")
    wanted = f"({cell.output_size},), as output_size says"
    _require(output.shape == (cell.output_size,), f"the output of a step has shape {output.shape}, wanted {wanted}")


def check_loop(cell: AbstractCell) -> None:
    """`unroll` is a loop over the cell: with lengths, resets and a state carried from one call to the next."""
    inputs = example_inputs(cell)
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
    outputs = np.concatenate([first.outputs, second.outputs], axis=1)
    _require_same("the outputs of `unroll` are not those of a loop over the cell", outputs, np.stack(expected, axis=1))
    _require_same("the last state of `unroll` is not that of a loop over the cell", second.state, state)


def check_gradients(cell: AbstractCell, plans: Sequence[Plan] = _PLANS) -> None:
    """Every plan gives the same; padding changes nothing."""
    inputs = example_inputs(cell)
    usual = _gradient(cell, inputs, Plan(), LENGTHS)
    for plan in plans:
        what = f"with {plan} outputs or gradients are others than without"
        _require_same(what, _gradient(cell, inputs, plan, LENGTHS), usual)
    padded = np.arange(TIME) >= LENGTHS[:, None]
    rubbish = np.where(padded[..., None], np.float32(1e3), inputs)
    value, outputs, (cell_gradient, input_gradient) = _gradient(cell, rubbish, Plan(), LENGTHS)
    what = "what stands after the end of a sequence changes outputs or gradients"
    _require_same(what, (value, outputs, cell_gradient), (usual[0], usual[1], usual[2][0]))
    _require(bool(np.all(np.asarray(outputs)[padded] == 0)), "outputs after the end of a sequence are not zero")
    _require(bool(np.all(np.asarray(input_gradient)[padded] == 0)), "inputs after the end of a sequence have gradients")


def check_extremes(cell: AbstractCell, plans: Sequence[Plan] = _PLANS) -> None:
    """Nothing, huge and adversarial inputs give no NaN, forwards and backwards."""
    extreme = np.zeros((BATCH, TIME, cell.input_size), np.float32)  # the first: nothing
    extreme[1] = 1e4
    extreme[2, 2:4] = [[1e6], [-1e6]]
    extreme[3] = 1e3 * (-1.0) ** np.arange(TIME)[:, None]
    for plan in (Plan(), *plans):
        value, outputs, gradient = _gradient(cell, extreme, plan, np.full(BATCH, TIME))
        for what, tree in (("outputs", (value, outputs)), ("gradients", gradient)):
            finite = all(np.all(np.isfinite(np.asarray(leaf))) for leaf in jax.tree.leaves(tree))
            _require(finite, f"{what} are not finite for inputs of zero, of +-1e6, or that alternate (with {plan})")


def check_alone(cell: AbstractCell) -> None:
    """jit = eager, and an example of a batch is what it is alone."""
    inputs = example_inputs(cell)
    batched = _step(cell, _batched(cell.init_state()), inputs[:, 0])[1]
    with jax.disable_jit():
        _, eager = cell(cell.init_state(), jnp.asarray(inputs[2, 0]))
    _require_same("an example gives another output alone than in a batch, or not compiled", eager, batched[2])


def check_training(cell: AbstractCell) -> None:
    """With a key it is repeatable, and finite."""
    first, again = (np.asarray(_with_key(cell, example_inputs(cell), jax.random.key(3))) for _ in range(2))
    _require(bool(np.all(np.isfinite(first))), "with a key, outputs are not finite")
    _require(bool(np.all(first == again)), "with the same key twice, outputs differ: randomness must come from `key`")


CHECKS: dict[str, Callable[[AbstractCell], None]] = {
    "state": check_state,
    "loop": check_loop,
    "extremes": check_extremes,
    "gradients": check_gradients,
    "alone": check_alone,
    "training": check_training,
}


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ContractBroken(what)


def _require_same(what: str, a: Any, b: Any) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        scale = 1.0 + float(np.max(np.abs(x), initial=0.0))
        apart = float(np.max(np.abs(x - y), initial=0.0)) / scale
        _require(apart <= _TOLERANCE, f"{what}: {apart:.1g} of the largest value apart")


def _described(state: Any) -> dict[str, str]:
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path).lstrip("."): f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves}


@eqx.filter_jit
def _step(cell, states, xs):
    """One step of every example, by the cell alone."""
    return jax.vmap(lambda state, x: cell(state, x), axis_name=BATCH_AXIS)(states, xs)


@eqx.filter_jit
def _unroll(cell, inputs, state, reset, lengths):
    return unroll(cell, inputs, state=state, reset=reset, lengths=lengths)


@eqx.filter_jit
def _with_key(cell, inputs, key):
    return unroll(cell, inputs, key=key).outputs


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
