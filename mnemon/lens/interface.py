r"""How the interface vector of a memory network depends on earlier ones (stored programs, Proposition 1).

The interface network of an NTM makes the orders \(\xi_t\) of its heads from the controller's output \(c_t\), and sees
\(\xi_{t-1}\) again through what was read, \(r_{t-1} = M^T w_{t-1}\). Along this one way, with memory and controller
state held constant,

$$ \frac{\partial \xi_t}{\partial \xi_{t-1}} = W^c \frac{\partial c_t}{\partial r_{t-1}} M^T
\frac{\partial w_{t-1}}{\partial \xi_{t-1}}, \qquad \Big\| \frac{\partial \xi_t}{\partial \xi_{t-k}} \Big\|
\leq \prod_k \|W^c\| \|M\| \gamma_k $$

where \(\gamma_k\) is the product of the norms of the other two factors. In a real network \(\xi\) also acts through
what is written, the head positions and the controller's own memory: `total` is the derivative along all ways.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from .._errors import MnemonError
from ..cells import AbstractCell
from ..cells.ntm import NTM
from ._rows import all_states, joined, pulled, real_parts, scaled, state_at, top_singular_values


@dataclasses.dataclass(frozen=True)
class InterfaceFlow:
    """Largest singular values of d xi_t1 / d xi_t0 for all t0 from 1 to t1 = `end`."""

    end: int
    starts: np.ndarray  # [n], the t0
    total: np.ndarray  # [n], along all ways
    reads: np.ndarray  # [n], along the reads alone (Proposition 1)
    bound: np.ndarray  # [n], the bound of Proposition 1 on `reads`

    @property
    def distances(self) -> np.ndarray:
        """t1 - t0."""
        return self.end - self.starts


def interface_flow(cell: AbstractCell, inputs: Array, *, end: int | None = None) -> InterfaceFlow:
    """Measure Proposition 1 on an NTM, over one sequence [time, input]."""
    if not isinstance(cell, NTM) or cell.interface is None:
        raise MnemonError(f"{type(cell).__name__} has no interface network of fixed weights; this is for an NTM")
    states, end = all_states(cell, inputs, 1, end)
    steps = [_factors(cell, state_at(states, t - 1), inputs[t - 1]) for t in range(1, end + 1)]
    weight_norm = float(top_singular_values(np.asarray(cell.interface.weights)))

    # Along the reads: xi_t0 -> w_t0 -> r_t0 -> c_(t0+1) -> xi_(t0+1) -> ...
    along = np.eye(len(steps[-1].to_interface))
    reads, bounds = [1.0], [1.0]
    for after, before in zip(steps[:0:-1], steps[-2::-1], strict=True):
        along = along @ after.to_interface @ after.to_output @ before.to_reads @ before.to_weights
        reads.append(float(top_singular_values(along)))
        norms = [top_singular_values(matrix) for matrix in (after.to_output, before.to_reads, before.to_weights)]
        bounds.append(bounds[-1] * weight_norm * float(np.prod(norms)))

    # Along all ways: rows of xi_t1 with respect to the state, pulled back, then through the access of step t0.
    total, scale = [1.0], 1.0
    rows = jax.device_get(_unit_interface(cell, state_at(states, end - 1), inputs[end - 1]))
    for t in range(end - 1, 0, -1):
        through = _through_access(cell, state_at(states, t - 1), inputs[t - 1], rows)
        total.append(scale * float(top_singular_values(np.asarray(through, float))))
        if t > 1:
            rows, factor = scaled(pulled(cell, states, inputs, t, rows))
            scale *= factor
    starts = np.arange(1, end + 1)
    return InterfaceFlow(end, starts, *(np.asarray(values[::-1]) for values in (total, reads, bounds)))


@dataclasses.dataclass(frozen=True)
class _Factors:
    """The factors of one step."""

    to_output: np.ndarray  # d c_t / d r_(t-1)
    to_interface: np.ndarray  # W^c
    to_weights: np.ndarray  # d w_t / d xi_t, of the read heads; zero where xi gives orders to write heads (D_r)
    to_reads: np.ndarray  # M^T


def _factors(cell: Any, state: Any, x: Array) -> _Factors:
    to_output, to_weights, memory = (np.array(matrix, float) for matrix in _measure(cell, state, x))
    to_weights[:, sum(cell.units[: cell.read_heads]) :] = 0.0
    to_reads = np.kron(np.eye(cell.read_heads), memory.T)
    return _Factors(to_output, np.asarray(cell.interface.weights, float).T, to_weights, to_reads)


@eqx.filter_jit
def _measure(cell: Any, state: Any, x: Array) -> tuple[Array, Array, Array]:
    drive = cell.drive(x)
    to_output = jax.jacrev(lambda reads: cell.controller(state.controller, drive, reads).output)(state.reads)
    controller = cell.controller(state.controller, drive, state.reads)
    xi = cell.interface(controller.output)
    to_weights = jax.jacrev(lambda v: cell.access(state, controller, v)[0].read_weights.ravel())(xi)
    seen = state.memory if cell.read_before_write else cell.access(state, controller, xi)[0].memory
    return to_output.reshape(len(controller.output), -1), to_weights, seen


@eqx.filter_jit
def _unit_interface(cell: Any, state: Any, x: Array) -> dict[str, Array]:
    """d xi / d (the parts of the state before this step)."""

    def interface(parts):
        begun = joined(state, parts)
        return cell.interface(cell.controller(begun.controller, cell.drive(x), begun.reads).output)

    return jax.jacrev(interface)(real_parts(state))


@eqx.filter_jit
def _through_access(cell: Any, state: Any, x: Array, rows: Mapping[str, Any]) -> Array:
    """Rows with respect to the state after a step, as rows with respect to the interface vector of that step."""
    controller = cell.controller(state.controller, cell.drive(x), state.reads)
    xi = cell.interface(controller.output)
    _, pullback = jax.vjp(lambda v: real_parts(cell.access(state, controller, v)[0]), xi)
    return jax.vmap(lambda row: pullback(row)[0])(rows)
