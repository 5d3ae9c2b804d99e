"""Which part of a gradient flows through the recurrent chain and which through the memory (thesis 3.4)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.extend import core as jex
from jaxtyping import Array

from .._errors import MnemonError, require
from ..cells import AbstractCell
from ._rows import (
    Rows,
    all_states,
    as_matrix,
    chosen_parts,
    differentiable_parts,
    pulled,
    real_parts,
    scaled,
    state_at,
    top_singular_values,
    unit_rows,
)
from .trace import named_arrays


@dataclasses.dataclass(frozen=True)
class Decomposition:
    r"""d s_t1 / d s_t0 of the chain's parts as a sum over where the gradient travels (thesis 3.22-3.25).

    s_t0 is the chain at step t0 before that step writes it to the memory, so that what it writes depends on it.
    `chain` is Q: it never leaves the chain. `direct` is the third term of 3.22: it leaves the chain at step t1 itself,
    by what step t1 reads. `detours` is the second: it leaves the chain at an earlier step. R = `detours` + `direct`.

    **Notes.** The second term of 3.22 is printed as a sum over \(k = t_0 \ldots t_1 - 1\) of products over
    \(k < t^* < t_1\). It is the Jacobian only with \(k = t_0 + 1 \ldots t_1 - 1\) and \(k < t^* \leq t_1\), which is
    what is computed here: `total` equals automatic differentiation.
    """

    end: int
    starts: np.ndarray  # [n], the t0
    chain: np.ndarray  # [n, entries, entries]
    detours: np.ndarray
    direct: np.ndarray

    @property
    def memory(self) -> np.ndarray:
        """R, all that travels outside the chain."""
        return self.detours + self.direct

    @property
    def total(self) -> np.ndarray:
        """Q + R."""
        return self.chain + self.memory

    @property
    def lower_bound(self) -> np.ndarray:
        """||R|| - ||Q||, which the norm of the Jacobian is never below (3.27; largest singular values)."""
        return top_singular_values(self.memory) - top_singular_values(self.chain)


def decompose(
    cell: AbstractCell,
    inputs: Array,
    *,
    chain: Sequence[str] | None = None,
    start: int = 0,
    end: int | None = None,
) -> Decomposition:
    """Split d s_t1 / d s_t0 in what flows through the recurrent chain (Q) and what flows through the memory (R).

    **Arguments:**

    - `cell`: any cell whose state has a chain and something else.
    - `inputs`: one sequence.
    - `chain`: the parts of the state that are the chain; those called `hidden` and `cell` without it.
    - `start`, `end`: the earliest t0, and t1.
    """
    known = differentiable_parts(cell)
    names = chosen_parts(cell, chain or [name for name in known if name.rsplit(".")[-1] in ("hidden", "cell")])
    rest = [name for name in known if name not in names]
    require(bool(rest), "chain", names, "a chain beside which there is a memory", 'chain=["hidden"]')
    states, end = all_states(cell, inputs, start, end)
    identity = unit_rows(states, names)
    count = len(next(iter(identity.values())))
    ways = {way: identity if way == "chain" else _zero(identity) for way in ("chain", "detours", "direct")}
    scale = 1.0
    found = {way: [as_matrix(rows, names)] for way, rows in ways.items()}
    for t in range(end, start, -1):
        stacked = {part: np.concatenate([rows[part] for rows in ways.values()]) for part in known}
        stacked, factor = scaled(pulled(cell, states, inputs, t, stacked))
        scale *= factor
        by_way = {
            way: {part: rows[n * count : (n + 1) * count] for part, rows in stacked.items()}
            for n, way in enumerate(ways)
        }
        leaving = _only(by_way["chain"], rest)
        left_by = "direct" if t == end else "detours"
        ways = {**by_way, "chain": _only(by_way["chain"], names)}
        ways[left_by] = {part: rows + leaving[part] for part, rows in ways[left_by].items()}
        for way, rows in ways.items():
            # The initial state has been written by no step.
            written = _written(cell, states, inputs, t - 1, rows, names) if t > 1 else _zero(rows)
            found[way].append(scale * (as_matrix(rows, names) + as_matrix(written, names)))
    stacks = {way: np.stack(matrices[::-1]) for way, matrices in found.items()}
    return Decomposition(end, np.arange(start, end + 1), **stacks)


@eqx.filter_jit
def _pull_write(
    cell: AbstractCell, state: Any, x: Array, after: dict[str, Array], rows: Mapping[str, Any], names: tuple[str, ...]
) -> dict[str, Array]:
    """Rows with respect to the rest of the state, as rows with respect to the chain of the same step.

    In the traced step the chain's new values are made inputs of their own; what else the step returns is then a
    function of them.
    """
    prepared = cell.prepare()
    drive = prepared.drive(x)
    closed, shape = jax.make_jaxpr(lambda s, d: prepared.step(s, d)[0], return_shape=True)(state, drive)
    jaxpr = closed.jaxpr
    by_name = dict(zip(named_arrays(shape), jaxpr.outvars, strict=True))
    chain = {name: by_name[name] for name in names}
    made = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars if var in chain.values()}
    for name, var in chain.items():
        if isinstance(var, jex.Literal) or var not in made or len(made[var].outvars) != 1:
            raise MnemonError(f"{name!r} of {type(cell).__name__} cannot be told apart from the rest of its step")
    kept = [eqn for eqn in jaxpr.eqns if eqn.outvars[0] not in made]
    given = jex.ClosedJaxpr(jaxpr.replace(invars=[*jaxpr.invars, *chain.values()], eqns=kept), closed.consts)
    before = [*jax.tree.leaves(state), *jax.tree.leaves(drive)]

    def step(values: dict[str, Array]) -> dict[str, Array]:
        outputs = jex.jaxpr_as_fun(given)(*before, *(values[name] for name in names))
        return real_parts(jax.tree.unflatten(jax.tree.structure(shape), outputs))

    _, pullback = jax.vjp(step, {name: after[name] for name in names})
    return jax.vmap(lambda row: pullback(row)[0])(rows)


def _written(cell: AbstractCell, states: Any, inputs: Array, t: int, rows: Rows, names: Sequence[str]) -> Rows:
    """What the chain at step t does to the rows through what step t writes beside the chain."""
    beside = {part: values if part not in names else np.zeros_like(values) for part, values in rows.items()}
    after = real_parts(state_at(states, t))
    return jax.device_get(_pull_write(cell, state_at(states, t - 1), inputs[t - 1], after, beside, tuple(names)))


def _zero(rows: Rows) -> Rows:
    return {part: np.zeros_like(values) for part, values in rows.items()}


def _only(rows: Rows, names: Sequence[str]) -> Rows:
    return {part: values if part in names else np.zeros_like(values) for part, values in rows.items()}
