"""The body of a loop as a flat list of operations on arrays."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
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
    """An operation."""

    name: str
    params: dict[str, Any]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    evaluate: Callable[[list[Any]], list[Any]]  # what JAX makes of it


@dataclasses.dataclass
class Graph:
    """What `flatten` makes of a jaxpr. Of `arrays` the values are known when the loop is traced."""

    inputs: list[Value]
    outputs: list[Value]
    ops: list[Op]
    arrays: dict[Value, Any]
    outer: dict[Value, Any] = dataclasses.field(default_factory=dict)  # products without a sum: factors and their axes


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
    _drop_unused(graph)
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
                outer = _as_outer_product(graph, name, eqn, operands)
                outputs = _append(graph, jaxpr, eqn, operands, seen) if outer is None else [outer]
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


def _as_outer_product(graph: Graph, name: str, eqn, operands: tuple[Value, ...]) -> Value | None:
    """A product without a sum, or the transpose of one, as a multiplication, which can share loops with others."""
    if name == "transpose" and operands[0] in graph.outer:
        (left, left_axes), (right, right_axes) = graph.outer[operands[0]]
        moved = {old: new for new, old in enumerate(eqn.params["permutation"])}
        left_axes, right_axes = ([moved[axis] for axis in axes] for axes in (left_axes, right_axes))
    elif name == "dot_general" and not eqn.params["dimension_numbers"][0][0]:
        left, right = operands
        _, (left_batch, right_batch) = eqn.params["dimension_numbers"]
        shared, left_rank = len(left_batch), len(left.shape)
        left_free, right_free = iter(range(shared, left_rank)), iter(range(left_rank, left_rank + len(right.shape)))
        left_axes = [left_batch.index(d) if d in left_batch else next(left_free) for d in range(left_rank)]
        right_axes = [right_batch.index(d) if d in right_batch else next(right_free) for d in range(len(right.shape))]
    else:
        return None
    shape, dtype = _shape(eqn.outvars[0]), eqn.outvars[0].aval.dtype
    if left.dtype != dtype or right.dtype != dtype or 0 in shape:
        return None
    wide = [_broadcast(graph, value, shape, axes) for value, axes in ((left, left_axes), (right, right_axes))]
    product = Value(shape, dtype, level=max(left.level, right.level))
    graph.ops.append(Op("mul", {}, tuple(wide), (product,), lambda values: [jax.lax.mul(*values)]))
    graph.outer[product] = (left, left_axes), (right, right_axes)
    return product


def _broadcast(graph: Graph, value: Value, shape: tuple[int, ...], axes: Sequence[int]) -> Value:
    if value.constant is not None:
        return Value(shape, value.dtype, value.constant)
    # In the order of the result, as JAX wants it.
    order = sorted(range(len(axes)), key=lambda d: axes[d])
    if order != list(range(len(axes))):
        turned = Value(tuple(value.shape[d] for d in order), value.dtype, level=value.level)
        evaluate = functools.partial(_on_one, jax.lax.transpose, permutation=tuple(order))
        graph.ops.append(Op("transpose", {"permutation": tuple(order)}, (value,), (turned,), evaluate))
        value, axes = turned, sorted(axes)
    wide = Value(shape, value.dtype, level=value.level)
    options = {"shape": shape, "broadcast_dimensions": tuple(axes)}
    evaluate = functools.partial(_on_one, jax.lax.broadcast_in_dim, **options)
    graph.ops.append(Op("broadcast_in_dim", options, (value,), (wide,), evaluate))
    return wide


def _on_one(function: Callable, values: list[Any], **options: Any) -> list[Any]:
    return [function(values[0], **options)]


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
    evaluate = functools.partial(apply_equation, jaxpr, eqn)
    graph.ops.append(Op(eqn.primitive.name, eqn.params, operands, tuple(outputs), evaluate))
    seen[key] = outputs
    return outputs


def _drop_unused(graph: Graph) -> None:
    used = set(graph.outputs)
    kept = []
    for op in reversed(graph.ops):
        if any(value in used for value in op.outputs):
            used |= set(op.inputs)
            kept.append(op)
    graph.ops = kept[::-1]
