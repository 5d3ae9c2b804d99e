"""How a state depends on earlier ones: exact Jacobians through time, for any cell.

The state after step t is s_t, and s_0 is the state before the first step. The rows of d s_t1 / d s_t0 are pulled back
through the recorded states one step at a time (a vector-Jacobian product of the step for each row), so that one pass
from t1 gives the Jacobians with respect to every earlier state, and no matrix larger than rows x state is ever formed.
After each step the rows are scaled to magnitude 1 and the scale is kept apart in float64: what has vanished below the
range of float32 is still measured.

A part of a state that is complex counts as twice as many real numbers. Parts that are integers or truth values have no
derivative; nothing flows through them.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from .._errors import BadValue, MnemonError, require, unknown
from ..cells import AbstractCell
from ..unroll import Plan, unroll
from .trace import leaf_name, named_arrays

WHOLE = "state"
_Rows = dict[str, np.ndarray]  # by part, each [rows, ...]
# The subspace iteration that finds the largest singular value of a step: vectors and rounds.
_VECTORS, _ROUNDS = 6, 25


@dataclasses.dataclass(frozen=True)
class Flow:
    """Singular values of d part_t1 / d part_t0 for all t0 from `start` to t1 = `end`, and their bound."""

    end: int
    starts: np.ndarray  # [n], the t0
    # By part, [n, entries of the part], largest first; `state` is all the parts together.
    singular_values: dict[str, np.ndarray]
    eta: float  # the largest singular value of any one step of the whole state

    @property
    def distances(self) -> np.ndarray:
        """t1 - t0."""
        return self.end - self.starts

    @property
    def top(self) -> dict[str, np.ndarray]:
        """The largest singular value, by part."""
        return {part: values[:, 0] for part, values in self.singular_values.items()}

    @property
    def norm(self) -> dict[str, np.ndarray]:
        """The Frobenius norm, by part."""
        return {part: np.sqrt(np.sum(values**2, axis=1)) for part, values in self.singular_values.items()}

    @property
    def bound(self) -> np.ndarray:
        """eta^(t1 - t0), which no singular value exceeds (thesis 2.16)."""
        with np.errstate(over="ignore"):
            return self.eta**self.distances


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


def top_singular_values(matrices: np.ndarray) -> np.ndarray:
    """The largest singular value of each matrix."""
    return np.asarray(np.linalg.norm(matrices, ord=2, axis=(-2, -1)))


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


def jacobian(
    cell: AbstractCell, inputs: Array, start: int, end: int, *, parts: Sequence[str] | None = None
) -> np.ndarray:
    """d s_end / d s_start as one matrix: rows and columns are the named parts, flattened, one after another.

    >>> from mnemon.cells import RNN
    >>> cell = RNN(2, 3, key=jax.random.key(0))
    >>> jacobian(cell, jnp.ones((5, 2)), 4, 4)  # a state and itself
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    names = _chosen(cell, parts)
    states, end = _states(cell, inputs, start, end)
    rows, scale = _unit_rows(states, names), 1.0
    for t in range(end, start, -1):
        rows, factor = _scaled(_pulled(cell, states, inputs, t, rows))
        scale *= factor
    return scale * _matrix(rows, names)


def jacobian_flow(
    cell: AbstractCell,
    inputs: Array,
    *,
    parts: Sequence[str] | None = None,
    start: int = 0,
    end: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Flow:
    """The spectrum of d s_t1 / d s_t0 over the distance t1 - t0, for each part of the state and for all together.

    **Arguments:**

    - `cell`: any cell; it runs without a key.
    - `inputs`: one sequence.
    - `parts`: the parts of the state to look at; all that have derivatives without it. Gradients also flow through
      the others.
    - `start`: the earliest t0.
    - `end`: t1; the last step without it.
    - `on_progress`: called with (steps done, steps in all).

    >>> from mnemon.cells import LSTM
    >>> flow = jacobian_flow(LSTM(2, 3, key=jax.random.key(0)), jnp.ones((9, 2)), start=4)
    >>> flow.distances.tolist(), flow.singular_values["cell"].shape
    ([5, 4, 3, 2, 1, 0], (6, 3))
    """
    names = _chosen(cell, parts)
    states, end = _states(cell, inputs, start, end)
    rows, scale = _unit_rows(states, names), 1.0
    found = [_spectra(rows, names, scale)]
    for t in range(end, start, -1):
        rows, factor = _scaled(_pulled(cell, states, inputs, t, rows))
        scale *= factor
        found.append(_spectra(rows, names, scale))
        if on_progress is not None:
            on_progress(end - t + 1, end - start)
    spectra = {part: np.stack([spectrum[part] for spectrum in found[::-1]]) for part in found[0]}
    return Flow(end, np.arange(start, end + 1), spectra, _largest_step(cell, states, inputs, start, end))


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
    names = _chosen(cell, chain or [name for name in known if name.rsplit(".")[-1] in ("hidden", "cell")])
    rest = [name for name in known if name not in names]
    require(bool(rest), "chain", names, "a chain beside which there is a memory", 'chain=["hidden"]')
    states, end = _states(cell, inputs, start, end)
    identity = _unit_rows(states, names)
    count = len(next(iter(identity.values())))
    ways = {way: identity if way == "chain" else _zero(identity) for way in ("chain", "detours", "direct")}
    scale = 1.0
    found = {way: [_matrix(rows, names)] for way, rows in ways.items()}
    for t in range(end, start, -1):
        stacked = {part: np.concatenate([rows[part] for rows in ways.values()]) for part in known}
        stacked, factor = _scaled(_pulled(cell, states, inputs, t, stacked))
        scale *= factor
        pulled = {
            way: {part: rows[n * count : (n + 1) * count] for part, rows in stacked.items()}
            for n, way in enumerate(ways)
        }
        leaving = _only(pulled["chain"], rest)
        left_by = "direct" if t == end else "detours"
        ways = {**pulled, "chain": _only(pulled["chain"], names)}
        ways[left_by] = {part: rows + leaving[part] for part, rows in ways[left_by].items()}
        for way, rows in ways.items():
            # The initial state has been written by no step.
            written = _written(cell, states, inputs, t - 1, rows, names) if t > 1 else _zero(rows)
            found[way].append(scale * (_matrix(rows, names) + _matrix(written, names)))
    stacks = {way: np.stack(matrices[::-1]) for way, matrices in found.items()}
    return Decomposition(end, np.arange(start, end + 1), **stacks)


def _parts(state: Any) -> dict[str, Array]:
    """The parts that have derivatives, as real arrays."""
    arrays = {name: leaf for name, leaf in named_arrays(state).items() if jnp.issubdtype(leaf.dtype, jnp.inexact)}
    return {name: _real(leaf) for name, leaf in arrays.items()}


def _real(leaf: Array) -> Array:
    return jnp.stack([leaf.real, leaf.imag], axis=-1) if jnp.iscomplexobj(leaf) else leaf


def _joined(state: Any, parts: dict[str, Array]) -> Any:
    """The state with these parts."""

    def put(path, leaf):
        part = parts.get(leaf_name(path))
        if part is None:
            return leaf
        return jax.lax.complex(part[..., 0], part[..., 1]) if jnp.iscomplexobj(leaf) else part

    return jax.tree_util.tree_map_with_path(put, state)


def _chosen(cell: AbstractCell, parts: Sequence[str] | None) -> list[str]:
    known = differentiable_parts(cell)
    if not known:
        raise MnemonError(f"the state of {type(cell).__name__} holds no real or complex numbers: it has no Jacobian")
    for part in parts or ():
        if part not in known:
            raise unknown("part of the state with a derivative", part, known)
    return list(parts) if parts else list(known)


def _states(cell: AbstractCell, inputs: Array, start: int, end: int | None) -> tuple[Any, int]:
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


def _at(states: Any, t: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[t], states)


def _advance(cell: AbstractCell, state: Any, x: Array, parts: dict[str, Array]) -> dict[str, Array]:
    """The parts of the state one step later."""
    batched = jax.tree.map(lambda leaf: leaf[None], _joined(state, parts))
    after = unroll(cell, x[None, None], state=batched, plan=Plan(defer=False)).state
    return _parts(jax.tree.map(lambda leaf: leaf[0], after))


@eqx.filter_jit
def _pull(cell: AbstractCell, state: Any, x: Array, rows: Mapping[str, Any]) -> dict[str, Array]:
    _, pullback = jax.vjp(lambda parts: _advance(cell, state, x, parts), _parts(state))
    return jax.vmap(lambda row: pullback(row)[0])(rows)


def _pulled(cell: AbstractCell, states: Any, inputs: Array, t: int, rows: _Rows) -> _Rows:
    """Rows of a derivative with respect to s_t, as rows with respect to s_(t-1)."""
    return jax.device_get(_pull(cell, _at(states, t - 1), inputs[t - 1], rows))


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
        return _parts(jax.tree.unflatten(jax.tree.structure(shape), outputs))

    _, pullback = jax.vjp(step, {name: after[name] for name in names})
    return jax.vmap(lambda row: pullback(row)[0])(rows)


def _written(cell: AbstractCell, states: Any, inputs: Array, t: int, rows: _Rows, names: Sequence[str]) -> _Rows:
    """What the chain at step t does to the rows through what step t writes beside the chain."""
    beside = {part: values if part not in names else np.zeros_like(values) for part, values in rows.items()}
    after = _parts(_at(states, t))
    return jax.device_get(_pull_write(cell, _at(states, t - 1), inputs[t - 1], after, beside, tuple(names)))


def _unit_rows(states: Any, names: Sequence[str]) -> _Rows:
    """A row for each entry of the named parts: that entry's derivative with respect to the same state."""
    parts = jax.eval_shape(lambda: _parts(_at(states, 0)))
    count = sum(parts[name].size for name in names)
    rows = {name: np.zeros((count, part.size), part.dtype) for name, part in parts.items()}
    first = 0
    for name in names:
        size = parts[name].size
        rows[name][first : first + size] = np.eye(size)
        first += size
    return {name: values.reshape(count, *parts[name].shape) for name, values in rows.items()}


def _scaled(rows: _Rows) -> tuple[_Rows, float]:
    """Rows of magnitude at most 1, and the factor that was taken out."""
    most = max(float(np.max(np.abs(values), initial=0.0)) for values in rows.values())
    if not np.isfinite(most):
        raise MnemonError(
            "the Jacobian is not finite: a step of this cell has no derivative at a state it went through"
        )
    if most == 0.0:
        return rows, 1.0
    return {part: values / np.asarray(most, values.dtype) for part, values in rows.items()}, most


def _zero(rows: _Rows) -> _Rows:
    return {part: np.zeros_like(values) for part, values in rows.items()}


def _only(rows: _Rows, names: Sequence[str]) -> _Rows:
    return {part: values if part in names else np.zeros_like(values) for part, values in rows.items()}


def _matrix(rows: _Rows, names: Sequence[str]) -> np.ndarray:
    return np.concatenate([rows[name].reshape(len(rows[name]), -1) for name in names], axis=1).astype(float)


def _spectra(rows: _Rows, names: Sequence[str], scale: float) -> dict[str, np.ndarray]:
    """Singular values of all the parts together, and of the block of each."""
    matrix = _matrix(rows, names)
    spectra = {WHOLE: scale * _singular_values(matrix)}
    if len(names) == 1:
        return {names[0]: spectra[WHOLE]}
    first = 0
    for name in names:
        last = first + rows[name].reshape(len(rows[name]), -1).shape[1]
        spectra[name] = scale * _singular_values(matrix[first:last, first:last])
        first = last
    return spectra


def _singular_values(matrix: np.ndarray) -> np.ndarray:
    """Largest first. From the Gram matrix, which is several times faster; in float64 it loses nothing of float32."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(matrix @ matrix.T)[::-1], 0.0))


@eqx.filter_jit
def _step_tops(cell: AbstractCell, before: Any, inputs: Array) -> Array:
    """The largest singular value of d s_t / d s_(t-1), whole state, for each step, by subspace iteration."""

    def top(at):
        state, x = at
        flat, unravel = ravel_pytree(_parts(state))
        _, pullback = jax.vjp(lambda v: ravel_pytree(_advance(cell, state, x, unravel(v)))[0], flat)
        # The transpose of the pullback is the push-forward; cells need support reverse mode only.
        _, pushforward = jax.vjp(lambda v: pullback(v)[0], jnp.zeros_like(flat))
        pull = jax.vmap(lambda v: pullback(v)[0], 1, 1)
        push = jax.vmap(lambda v: pushforward(v)[0], 1, 1)
        begin = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (flat.size, min(_VECTORS, flat.size)), flat.dtype))[
            0
        ]
        vectors = jax.lax.fori_loop(0, _ROUNDS, lambda _, v: jnp.linalg.qr(pull(push(v)))[0], begin)
        return jnp.linalg.norm(push(vectors), ord=2)

    return jax.lax.map(top, (before, inputs))


def _largest_step(cell: AbstractCell, states: Any, inputs: Array, start: int, end: int) -> float:
    if start == end:
        return 1.0
    before = jax.tree.map(lambda leaf: leaf[start:end], states)
    return float(np.max(_step_tops(cell, before, inputs[start:end])))
