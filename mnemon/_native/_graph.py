"""The body of a loop as a flat list of operations on arrays."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex

from .._operations import apply_equation

# What an operation depends on.
FIXED, BY_STEP, CARRIED = 0, 1, 2


@dataclasses.dataclass(eq=False)
class Value:
    """An array of the loop's body; one whose entries are all the same number may be known."""

    shape: tuple[int, ...]
    dtype: Any
    constant: Any = None
    level: int = FIXED

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


@dataclasses.dataclass(eq=False)
class Op:
    """An operation, with the equation it comes from; one that was made for C alone has none."""

    name: str
    params: dict[str, Any]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    source: tuple[Any, Any] | None = None  # a jaxpr and one of its equations

    def evaluate(self, values: Sequence[Any]) -> list[Any]:
        """What JAX makes of it."""
        if self.source is None:
            raise TypeError(f"{self.name} is known in C alone")
        return apply_equation(*self.source, list(values))


@dataclasses.dataclass
class Graph:
    """What `flatten` makes of a jaxpr. Of `arrays` the values are known when the loop is traced."""

    inputs: list[Value]
    outputs: list[Value]
    ops: list[Op]
    arrays: dict[Value, Any]


# Operations that are a call of another jaxpr, and the parameter that holds it.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}
_SAME = {"copy", "copy_p", "stop_gradient", "optimization_barrier", "pvary", "reshard"}


def flatten(closed: jex.ClosedJaxpr, levels: Sequence[int]) -> Graph:
    """The operations of a jaxpr and of those it calls, without those that change nothing or are done twice.

    `levels` says what each of its inputs depends on.
    """
    graph = Graph([], [], [], {})
    for var, level in zip(closed.jaxpr.invars, levels, strict=True):
        graph.inputs.append(_value(var, level))
    graph.outputs = _inline(graph, closed.jaxpr, closed.consts, graph.inputs, {})
    graph.ops = used_for(graph.outputs, graph.ops)
    return graph


def _inline(graph: Graph, jaxpr, consts, inputs: Sequence[Value], seen: dict) -> list[Value]:
    values: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
    for var, const in zip(jaxpr.constvars, consts, strict=True):
        values[var] = _array(graph, const)

    def read(atom) -> Value:
        if not isinstance(atom, jex.Literal):
            return values[atom]
        if np.ndim(atom.val) == 0:
            return Value((), jax.dtypes.result_type(atom.aval), np.asarray(atom.val).item())
        return _array(graph, atom.val)

    for eqn in jaxpr.eqns:
        operands, name = tuple(map(read, eqn.invars)), eqn.primitive.name
        if name in _CALLS and _CALLS[name] in eqn.params:
            inner = eqn.params[_CALLS[name]]
            inner, inner_consts = (inner.jaxpr, inner.consts) if isinstance(inner, jex.ClosedJaxpr) else (inner, ())
            outputs = _inline(graph, inner, inner_consts, operands, seen)
        elif name in _SAME:
            outputs = list(operands)
        else:
            outputs = [_simplify(name, eqn, operands)] if len(eqn.outvars) == 1 else [None]
            if outputs[0] is None:
                outputs = _append(graph, jaxpr, eqn, operands, seen)
        values |= dict(zip(eqn.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _shape(var: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in var.aval.shape)


def _value(var: Any, level: int) -> Value:
    return Value(_shape(var), var.aval.dtype, level=level)


def _array(graph: Graph, array: Any) -> Value:
    value = Value(tuple(np.shape(array)), jax.dtypes.result_type(array))
    graph.arrays[value] = array
    return value


def _simplify(name: str, eqn, operands: tuple[Value, ...]) -> Value | None:
    """What the operation gives, if that is one of its operands or a known number."""
    if not operands:
        return None
    if name == "concatenate" and sum(value.size > 0 for value in operands) == 1:
        return next(value for value in operands if value.size > 0)
    shape, dtype, one = _shape(eqn.outvars[0]), eqn.outvars[0].aval.dtype, operands[0]
    if name in ("broadcast_in_dim", "reshape", "squeeze", "transpose", "slice", "rev") and one.constant is not None:
        return Value(shape, dtype, one.constant)
    if name in ("reshape", "broadcast_in_dim", "transpose", "squeeze", "convert_element_type", "expand_dims"):
        return one if one.shape == shape and one.dtype == dtype and name != "transpose" else None
    if name in ("add", "add_any", "sub", "mul", "div") and len(operands) == 2:
        neutral = 0 if name in ("add", "add_any", "sub") else 1
        other = operands[1]
        if other.constant == neutral and one.shape == shape and one.constant is None:
            return one
        if name in ("add", "add_any", "mul") and one.constant == neutral and other.shape == shape:
            return other
    return None


def _append(graph: Graph, jaxpr, eqn, operands: tuple[Value, ...], seen: dict) -> list[Value]:
    key = (
        eqn.primitive.name,
        tuple((v.shape, str(v.dtype), v.constant) if v.constant is not None else id(v) for v in operands),
        str(sorted((name, str(value)) for name, value in eqn.params.items())),
    )
    if key in seen:
        return seen[key]
    level = max((v.level for v in operands), default=FIXED)
    outputs = [_value(var, level) for var in eqn.outvars]
    for value in outputs:
        if value.size == 0:  # whatever its entries are
            value.constant, value.level = 0, FIXED
    graph.ops.append(Op(eqn.primitive.name, eqn.params, operands, tuple(outputs), (jaxpr, eqn)))
    seen[key] = outputs
    return outputs


def used_for(outputs: Sequence[Value], ops: Sequence[Op]) -> list[Op]:
    """The operations without those that nothing needs."""
    used = set(outputs)
    kept = []
    for op in reversed(ops):
        if any(value in used for value in op.outputs):
            used |= set(op.inputs)
            kept.append(op)
    return kept[::-1]
