"""Derivatives of a state with respect to earlier ones, row by row: what the lenses on gradients share.

The state after step t is s_t, and s_0 is the state before the first step. The rows of d s_t1 / d s_t0 are pulled back
through the recorded states one step at a time (a vector-Jacobian product of the step for each row), so that one pass
from t1 gives the Jacobians with respect to every earlier state, and no matrix larger than rows x state is ever formed.

A part of a state that is complex counts as twice as many real numbers. Parts that are integers or truth values have no
derivative; nothing flows through them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._errors import BadValue, MnemonError, require, unknown
from .._plan import Plan
from ..cells import AbstractCell
from ..unroll import unroll
from .trace import leaf_name, named_arrays

Rows = dict[str, np.ndarray]  # by part, each [rows, ...]


def differentiable_parts(cell: AbstractCell) -> dict[str, int]:
    """The parts of a cell's state that have derivatives, and how many real numbers each holds.

    >>> from mnemon.cells import LSTM
    >>> differentiable_parts(LSTM(2, 3, key=jax.random.key(0)))
    {'hidden': 3, 'cell': 3}
    """
    state = named_arrays(eqx.filter_eval_shape(lambda c: c.init_state(), cell))
    return {
        name: leaf.size * (2 if jnp.issubdtype(leaf.dtype, jnp.complexfloating) else 1)
        for name, leaf in state.items()
        if jnp.issubdtype(leaf.dtype, jnp.inexact)
    }


def real_parts(state: Any) -> dict[str, Array]:
    """The parts that have derivatives, as real arrays."""
    arrays = {name: leaf for name, leaf in named_arrays(state).items() if jnp.issubdtype(leaf.dtype, jnp.inexact)}
    return {name: _real(leaf) for name, leaf in arrays.items()}


def _real(leaf: Array) -> Array:
    return jnp.stack([leaf.real, leaf.imag], axis=-1) if jnp.iscomplexobj(leaf) else leaf


def joined(state: Any, parts: dict[str, Array]) -> Any:
    """The state with these parts."""

    def put(path, leaf):
        part = parts.get(leaf_name(path))
        if part is None:
            return leaf
        return jax.lax.complex(part[..., 0], part[..., 1]) if jnp.iscomplexobj(leaf) else part

    return jax.tree_util.tree_map_with_path(put, state)


def chosen_parts(cell: AbstractCell, parts: Sequence[str] | None) -> list[str]:
    known = differentiable_parts(cell)
    if not known:
        raise MnemonError(f"the state of {type(cell).__name__} holds no real or complex numbers: it has no Jacobian")
    for part in parts or ():
        if part not in known:
            raise unknown("part of the state with a derivative", part, known)
    return list(parts) if parts else list(known)


def all_states(cell: AbstractCell, inputs: Array, start: int, end: int | None) -> tuple[Any, int]:
    """All states [time + 1, ...], and t1."""
    if inputs.ndim != 2:
        raise BadValue(f"inputs.shape={inputs.shape} cannot work: wanted one sequence [time, input], e.g. inputs[0]")
    steps = len(inputs)
    end = steps if end is None else end
    within = 0 <= start <= end <= steps
    require(within, "steps", (start, end), f"0 <= start <= end <= {steps}, within the sequence", f"0 and {steps}")
    fresh = cell.init_state()
    observed = eqx.filter_jit(lambda c, x: unroll(c, x[None], observe=lambda state: state).observed)(cell, inputs)
    return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest[0]]), fresh, observed), end


def state_at(states: Any, t: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[t], states)


def advance(cell: AbstractCell, state: Any, x: Array, parts: dict[str, Array]) -> dict[str, Array]:
    """The parts of the state one step later."""
    batched = jax.tree.map(lambda leaf: leaf[None], joined(state, parts))
    after = unroll(cell, x[None, None], state=batched, plan=Plan(defer=False)).state
    return real_parts(jax.tree.map(lambda leaf: leaf[0], after))


@eqx.filter_jit
def _pull(cell: AbstractCell, state: Any, x: Array, rows: Mapping[str, Any]) -> dict[str, Array]:
    _, pullback = jax.vjp(lambda parts: advance(cell, state, x, parts), real_parts(state))
    return jax.vmap(lambda row: pullback(row)[0])(rows)


def pulled(cell: AbstractCell, states: Any, inputs: Array, t: int, rows: Rows) -> Rows:
    """Rows of a derivative with respect to s_t, as rows with respect to s_(t-1)."""
    return jax.device_get(_pull(cell, state_at(states, t - 1), inputs[t - 1], rows))


def unit_rows(states: Any, names: Sequence[str]) -> Rows:
    """A row for each entry of the named parts: that entry's derivative with respect to the same state."""
    parts = jax.eval_shape(lambda: real_parts(state_at(states, 0)))
    count = sum(parts[name].size for name in names)
    rows = {name: np.zeros((count, part.size), part.dtype) for name, part in parts.items()}
    first = 0
    for name in names:
        size = parts[name].size
        rows[name][first : first + size] = np.eye(size)
        first += size
    return {name: values.reshape(count, *parts[name].shape) for name, values in rows.items()}


def scaled(rows: Rows) -> tuple[Rows, float]:
    """Rows of magnitude at most 1, and the factor that was taken out."""
    most = max(float(np.max(np.abs(values), initial=0.0)) for values in rows.values())
    if not np.isfinite(most):
        raise MnemonError(
            "the Jacobian is not finite: a step of this cell has no derivative at a state it went through"
        )
    if most == 0.0:
        return rows, 1.0
    return {part: values / np.asarray(most, values.dtype) for part, values in rows.items()}, most


def as_matrix(rows: Rows, names: Sequence[str]) -> np.ndarray:
    return np.concatenate([rows[name].reshape(len(rows[name]), -1) for name in names], axis=1).astype(float)


def top_singular_values(matrices: np.ndarray) -> np.ndarray:
    """The largest singular value of each matrix."""
    return np.asarray(np.linalg.norm(matrices, ord=2, axis=(-2, -1)))
