"""How a state depends on earlier ones: exact Jacobians through time, for any cell.

Singular values are measured beyond the range of float32: after each step the rows are scaled to magnitude 1, and the
scale is kept apart in float64.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from ..cells import AbstractCell
from ._rows import Rows, advance, all_states, as_matrix, chosen_parts, pulled, real_parts, scaled, unit_rows

WHOLE = "state"
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
    names = chosen_parts(cell, parts)
    states, end = all_states(cell, inputs, start, end)
    rows, scale = unit_rows(states, names), 1.0
    for t in range(end, start, -1):
        rows, factor = scaled(pulled(cell, states, inputs, t, rows))
        scale *= factor
    return scale * as_matrix(rows, names)


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
    names = chosen_parts(cell, parts)
    states, end = all_states(cell, inputs, start, end)
    rows, scale = unit_rows(states, names), 1.0
    found = [_spectra(rows, names, scale)]
    for t in range(end, start, -1):
        rows, factor = scaled(pulled(cell, states, inputs, t, rows))
        scale *= factor
        found.append(_spectra(rows, names, scale))
        if on_progress is not None:
            on_progress(end - t + 1, end - start)
    spectra = {part: np.stack([spectrum[part] for spectrum in found[::-1]]) for part in found[0]}
    return Flow(end, np.arange(start, end + 1), spectra, _largest_step(cell, states, inputs, start, end))


def _spectra(rows: Rows, names: Sequence[str], scale: float) -> dict[str, np.ndarray]:
    """Singular values of all the parts together, and of the block of each."""
    matrix = as_matrix(rows, names)
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
        flat, unravel = ravel_pytree(real_parts(state))
        _, pullback = jax.vjp(lambda v: ravel_pytree(advance(cell, state, x, unravel(v)))[0], flat)
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
