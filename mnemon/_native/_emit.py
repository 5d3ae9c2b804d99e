"""A loop in C: operations are put together in kernels, values get places in memory, kernels become functions."""

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ._graph import Op, Value
from ._layout import (
    C_TYPES,
    View,
    as_one_axis,
    c_type,
    contiguous,
    index_along,
    index_of,
    literal,
    loop_nest,
    loops_along,
    loops_over,
    merged,
    rounded,
    spread,
    strides_in,
)

# What the kernels of a group may touch before they are done for one example after another.
_FITTING_BYTES = 2**18


# An entry of the result from entries of the operands.
_POINTWISE = {
    "add": "{0} + {1}",
    "add_any": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "sign": "sign_of({0})",
    "max": "{0} > {1} || {0} != {0} ? {0} : {1}",
    "min": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "abs": "__builtin_fabsf({0})",
    "exp": "fast_exp({0})",
    "log": "fast_log({0})",
    "log1p": "fast_log1p({0})",
    "tanh": "fast_tanh({0})",
    "logistic": "fast_sigmoid({0})",
    "sqrt": "__builtin_sqrtf({0})",
    "rsqrt": "1.0f / __builtin_sqrtf({0})",
    "square": "{0} * {0}",
    "floor": "__builtin_floorf({0})",
    "pow": "fast_pow({0}, {1})",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "select_n": "{0} ? {2} : {1}",
    "clamp": "{1} < {0} ? {0} : ({1} > {2} ? {2} : {1})",
    "convert_element_type": "",
    "integer_pow": "",
    "not": "",
    "is_finite": "",
}
_ONLY_FLOAT = {"abs", "sign", "exp", "log", "log1p", "tanh", "logistic", "sqrt", "rsqrt", "floor", "pow", "is_finite"}
_VIEWS = {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "slice", "split", "unstack", "rev"}
_REDUCTIONS = {
    "reduce_sum": ("0", "{0} + {1}", "+"),
    "reduce_max": ("-__builtin_inff()", "{0} > {1} ? {0} : {1}", "max"),
    "reduce_min": ("__builtin_inff()", "{0} < {1} ? {0} : {1}", "min"),
    "reduce_or": ("0", "{0} | {1}", "|"),
    "reduce_and": ("1", "{0} & {1}", "&"),
}
_CUMULATIVE = {"cumsum": "{0} + {1}", "cumprod": "{0} * {1}", "cummax": "{0} > {1} ? {0} : {1}"}
_OTHERS = {"dot_general", "concatenate", "stack", "pad", "argmax", "argmin"}


def supported(op: Op) -> bool:
    """Whether this operation can be in a loop in C."""
    values = (*op.inputs, *op.outputs)
    if any(str(value.dtype) not in C_TYPES for value in values):
        return False
    of_floats = all(str(value.dtype) == "float32" for value in op.inputs)
    if op.name in _ONLY_FLOAT | {"dot_general", "reduce_max", "reduce_min", "argmax", "argmin"} | set(_CUMULATIVE):
        return of_floats
    if op.name == "select_n":
        return len(op.inputs) == 3 and str(op.inputs[0].dtype) == "bool"
    if op.name == "pad":
        return all(inner == 0 for _, _, inner in op.params["padding_config"])
    if op.name == "not":
        return str(op.inputs[0].dtype) == "bool"
    if op.name == "reshape":
        return op.params.get("dimensions") is None
    if op.name == "reduce_sum":
        return str(op.inputs[0].dtype) != "bool"
    return op.name in _POINTWISE or op.name in _VIEWS or op.name in _REDUCTIONS or op.name in _OTHERS


@dataclasses.dataclass(eq=False)
class _Kernel:
    """Operations of one loop nest: several pointwise ones over the same shape, or one of another kind."""

    ops: list[Op]
    pointwise: bool


class _Packed(NamedTuple):
    """A product of vectors with a packed matrix."""

    left: View
    right: View
    lda: int  # from one vector to the next
    m: int  # how many there are
    matrix: tuple[int, int, int, int]  # strides of rows and columns, number of rows and of columns


@dataclasses.dataclass
class Loop:
    """What is to be emitted: the operations of a step, and where its inputs come from and its outputs go.

    A step sees `fixed` values, its slices of the `stepped` ones, and the `carried` ones of the step before. It leaves
    `next_carried`, and a slice of each of the `stacked` values.
    """

    ops: list[Op]
    fixed: list[Value]
    stepped: list[Value]
    carried: list[Value]
    next_carried: list[Value]
    stacked: list[Value]
    length: int
    reverse: bool


def emit(loop: Loop) -> str:
    """The C source of a loop, to be compiled with `kernels.h`."""
    return _Emitter(loop).source()


class _Emitter:
    def __init__(self, loop: Loop):
        self.loop = loop
        self.views: dict[Value, View] = {}
        self.kernels: list[_Kernel] = []
        self.made_by: dict[Value, int] = {}  # the kernel, for values that are made in the loop
        self.inner: set[Value] = set()  # pointwise results, which can be used inside their kernel
        self.stored: dict[Value, None] = {}  # values that need memory, in the order in which that was found
        self.functions: list[str] = []
        self.calls: list[str] = []
        self.prologue: list[str] = []
        self.packed: dict[tuple, str] = {}
        self.packing: dict[Op, _Packed] = {}
        self.fixed = set(loop.fixed)
        self.by_example = False  # whether kernels are emitted for one example
        for value in (*loop.fixed, *loop.stepped, *loop.carried):
            self.views[value] = View(value, value.shape, contiguous(value.shape), 0)
        for op in loop.ops:
            self._schedule(op)

    # Which operations share a kernel.

    def _schedule(self, op: Op) -> None:
        if op.name in _VIEWS:
            views = self._view(op)
            if views is not None:
                self.views |= {v: view for v, view in zip(op.outputs, views, strict=True) if v.constant is None}
                return
        pointwise = op.name in _POINTWISE
        earliest = 0
        for value in op.inputs:
            if value.constant is None:
                earliest = max(earliest, self._ready(value, op.outputs[0].shape if pointwise else None))
        index = None
        if pointwise:
            shape = op.outputs[0].shape
            for at in range(len(self.kernels) - 1, earliest - 1, -1):
                kernel = self.kernels[at]
                if kernel.pointwise and kernel.ops[0].outputs[0].shape == shape:
                    index = at
                    break
        if index is None:
            index = len(self.kernels)
            self.kernels.append(_Kernel([], pointwise))
        self.kernels[index].ops.append(op)
        for value in op.inputs:
            if value.constant is None and not (value in self.inner and self.made_by[value] == index):
                self._store(value)
        for value in op.outputs:
            self.made_by[value] = index
            self.views[value] = View(value, value.shape, contiguous(value.shape), 0)
            if op.name == "dot_general":
                self._pack(op)
            if pointwise:
                self.inner.add(value)
            else:
                self.stored[value] = None

    def _ready(self, value: Value, shape: tuple[int, ...] | None) -> int:
        """The first kernel that can use it."""
        root = self.views[value].root
        if root not in self.made_by:
            return 0
        direct = shape is not None and value in self.inner and value.shape == shape
        return self.made_by[root] + (0 if direct else 1)

    def _store(self, value: Value) -> None:
        root = self.views[value].root
        if root in self.made_by:
            self.stored[root] = None

    def _view(self, op: Op) -> list[View] | None:
        source, params = self.views.get(op.inputs[0]), op.params
        if source is None:
            return None
        shape, strides, offset = source.shape, source.strides, source.offset
        out = op.outputs[0].shape
        if op.name == "broadcast_in_dim":
            spread = [0] * len(out)
            for d, to in enumerate(params["broadcast_dimensions"]):
                spread[to] = strides[d] if shape[d] == out[to] else 0
            return self._views(source, [(out, tuple(spread), offset)])
        if op.name in ("reshape", "squeeze", "expand_dims"):
            reshaped = strides_in(shape, strides, out)
            return None if reshaped is None else self._views(source, [(out, reshaped, offset)])
        if op.name == "transpose":
            order = params["permutation"]
            return self._views(source, [(out, tuple(strides[d] for d in order), offset)])
        if op.name == "slice":
            steps = params["strides"] or (1,) * len(shape)
            start = offset + sum(s * first for s, first in zip(strides, params["start_indices"], strict=True))
            return self._views(source, [(out, tuple(s * n for s, n in zip(strides, steps, strict=True)), start)])
        if op.name == "rev":
            turned = set(params["dimensions"])
            start = offset + sum(strides[d] * (shape[d] - 1) for d in turned)
            return self._views(source, [(out, tuple(-s if d in turned else s for d, s in enumerate(strides)), start)])
        axis, parts = params["axis"], []
        for output in op.outputs:
            whole = op.name == "split"
            parts.append((output.shape, strides if whole else strides[:axis] + strides[axis + 1 :], offset))
            offset += (output.shape[axis] if whole else 1) * strides[axis]
        return self._views(source, parts)

    def _views(self, source: View, parts: list[tuple]) -> list[View]:
        """Views of what another view shows; numbers in the parameters of an operation may be those of NumPy."""
        return [View(source.root, shape, tuple(map(int, strides)), int(offset)) for shape, strides, offset in parts]

    # Where values are.

    def source(self) -> str:
        """The whole file."""
        loop = self.loop
        for value in (*loop.next_carried, *loop.stacked):
            if value.constant is None:
                self._store(value)
        self._group()
        self._place()
        for first, end, by_example in self.groups:
            self.by_example = by_example
            if by_example:
                self.calls.append(f"for (long b = 0; b < {self.rows}; b++) {{")
            for index in range(first, end):
                self._kernel(index, self.kernels[index])
            if by_example:
                self.calls.append("}")
        return self._assemble()

    def _group(self) -> None:
        """Find kernels in a row that can be done for one example after another, and do so if these would not fit.

        What a group makes for itself then needs the memory of one example, which stays in the first cache.
        """
        loop = self.loop
        leads = collections.Counter(value.shape[0] for value in (*loop.stepped, *loop.carried) if value.shape)
        self.rows = leads.most_common(1)[0][0] if leads else 0
        groups: list[tuple[int, int]] = []
        first = 0
        for index in range(len(self.kernels) + 1):
            end = index == len(self.kernels)
            if end or not self._joins(index, first):
                if index > first:
                    groups.append((first, index))
                first = index
                if not end and not self._joins(index, first):
                    groups.append((index, index + 1))
                    first = index + 1
        self.groups = [(*group, self._too_large(*group)) for group in groups]
        self.alone: set[Value] = set()  # what is used only in its own group
        users = self._users()
        outputs = {self.views[v].root for v in (*loop.next_carried, *loop.stacked) if v.constant is None}
        for first, end, by_example in self.groups:
            if by_example:
                made = [v for v in self.stored if first <= self.made_by[v] < end and v not in outputs]
                self.alone |= {v for v in made if all(first <= user < end for user in users.get(v, ()))}

    def _users(self) -> dict[Value, set[int]]:
        users: dict[Value, set[int]] = {}
        for index, kernel in enumerate(self.kernels):
            for op in kernel.ops:
                for value in (*op.inputs, *op.outputs):
                    if value.constant is None:
                        users.setdefault(self.views[value].root, set()).add(index)
        return users

    def _joins(self, index: int, first: int) -> bool:
        """Whether a kernel can be done for one example with those from `first` on."""
        kernel = self.kernels[index]
        for op in kernel.ops:
            if not _is_by_example(op, self.rows) or op in self.packing:
                return False
            for value in op.inputs:
                if value.constant is not None or (value in self.inner and self.made_by[value] == index):
                    continue
                view = self.views[value]
                made = self.made_by.get(view.root, -1)
                if first <= made < index and not view.shows_only(self.rows):
                    return False
                if kernel.pointwise and view.shape and len(view.shape) != len(op.outputs[0].shape):
                    return False
        return True

    def _too_large(self, first: int, end: int) -> bool:
        roots = {
            self.views[value].root
            for kernel in self.kernels[first:end]
            for op in kernel.ops
            for value in (*op.inputs, *op.outputs)
            if value.constant is None
        }
        large = [v for v in roots if v not in self.fixed and (v in self.stored or v not in self.made_by)]
        return self._joins(first, first) and sum(v.size * v.dtype.itemsize for v in large) > _FITTING_BYTES

    def _place(self) -> None:
        """Inputs and outputs where XLA has them, the rest in one block of memory, reused as soon as it is free."""
        loop = self.loop
        self.address: dict[Value, str] = {}
        self.size = 0
        for n, value in enumerate(loop.fixed):
            self.address[value] = f"fixed{n}"
        for n, value in enumerate(loop.stepped):
            self.address[value] = f"(stepped{n} + t * {value.size}L)"
        for n, value in enumerate(loop.carried):
            self.address[value] = f"carried{n}"
        # A carried value that is stacked as well lives in the stack: a step puts the next one where it belongs.
        self.homes = {value: loop.stacked.index(value) for value in loop.carried if value in loop.stacked}
        self.copies: list[Callable[[], str]] = []
        self.after: list[str] = []  # where what is carried is after a step
        for n, (before, after) in enumerate(zip(loop.carried, loop.next_carried, strict=True)):
            if before in self.homes:
                self.after.append(f"(last ? out_carried{n} : stacked{self.homes[before]} + next * {before.size}L)")
            elif after is before or self._stays(after):
                self.after.append(self.address[self.views[after].root])
                continue
            elif after in loop.stacked and self._placeable(after):
                self.after.append(f"(stacked{loop.stacked.index(after)} + t * {after.size}L)")
            else:
                self.after.append(f"(spare{n} + (n & 1) * {before.size}L)")
                self.prologue.append(self._spare(f"spare{n}", before, 2))
            if self._placeable(after):
                self.address[after] = self.after[-1]
            else:
                self.copies.append(self._copying(after, self.after[-1]))
        for n, value in enumerate(loop.stacked):
            if self.homes.get(value) == n:
                continue
            target = f"(stacked{n} + t * {value.size}L)"
            if self.address.get(value) == target:
                continue
            if self._placeable(value):
                self.address[value] = target
            else:
                self.copies.append(self._copying(value, target))
        self._place_rest()

    def _placeable(self, value: Value) -> bool:
        """Whether its kernel can write it anywhere."""
        plain = View(value, value.shape, contiguous(value.shape), 0)
        return value in self.stored and value not in self.address and self.views[value] == plain

    def _stays(self, value: Value) -> bool:
        """Whether what is carried can be left where it is: it is an input that does not change."""
        view = self.views.get(value)
        if view is None or view != View(view.root, value.shape, contiguous(value.shape), 0):
            return False
        return view.root in self.fixed or view.root in self.loop.stepped

    def _spare(self, name: str, value: Value, count: int) -> str:
        ctype = C_TYPES[str(value.dtype)]
        start = self.size
        self.size += rounded(value.size * count * np.dtype(value.dtype).itemsize)
        return f"{ctype} *{name} = ({ctype} *)(memory + {start}L);"

    def _place_rest(self) -> None:
        end_of = [end for first, end, by_example in self.groups for _ in range(first, end)]
        start_of = [first for first, end, by_example in self.groups for _ in range(first, end)]
        together = [by_example for first, end, by_example in self.groups for _ in range(first, end)]
        last = {value: max(users) for value, users in self._users().items()}
        for value in (*self.loop.next_carried, *self.loop.stacked):
            if value.constant is None:
                last[self.views[value].root] = len(self.kernels)
        free: list[tuple[int, int]] = []  # size, start
        begins: dict[int, list[Value]] = collections.defaultdict(list)
        ends: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
        for value in self.stored:
            if value not in self.address:
                made = self.made_by[value]
                begins[made if value in self.alone or not together[made] else start_of[made]].append(value)
        for index in range(len(self.kernels)):
            for value in begins[index]:
                size = value.size // self.rows if value in self.alone else value.size
                need = rounded(size * value.dtype.itemsize)
                fitting = [block for block in free if need <= block[0] <= 2 * need]
                block = min(fitting) if fitting else (need, self.size)
                if fitting:
                    free.remove(block)
                else:
                    self.size += need
                ctype = C_TYPES[str(value.dtype)]
                self.address[value] = f"(({ctype} *)(memory + {block[1]}L))"
                used = last.get(value, index)
                # Of other examples' values nothing may be overwritten while the group goes on.
                whole = used < len(self.kernels) and together[used] and value not in self.alone
                ends[end_of[used] - 1 if whole else max(used, index)].append(block)
            free += ends[index]

    # Kernels as functions.

    def _kernel(self, index: int, kernel: _Kernel) -> None:
        op = kernel.ops[0]
        if kernel.pointwise:
            self._pointwise(index, kernel)
        elif op.name in _REDUCTIONS:
            self._reduction(index, op)
        elif op.name in _CUMULATIVE:
            self._cumulative(index, op)
        elif op.name == "dot_general":
            self._product(index, op)
        elif op.name == "concatenate":
            self._concatenate(index, op)
        elif op.name == "stack":
            self._stack(index, op)
        elif op.name == "pad":
            self._pad(index, op)
        elif op.name in ("argmax", "argmin"):
            self._arg(index, op)
        else:  # a view of what no strides can describe
            self.calls.append(self._copy_view(index, self._reading(op.inputs[0]), op))

    def _reading(self, value: Value) -> View:
        return self.views[value].of_one() if self.by_example else self.views[value]

    def _pointwise(self, index: int, kernel: _Kernel) -> None:
        shape = self._reading(kernel.ops[0].outputs[0]).shape
        reads: dict[Value, View] = {}
        made = {output for op in kernel.ops for output in op.outputs}
        for op in kernel.ops:
            for value in op.inputs:
                if value.constant is None and value not in made:
                    reads[value] = self._reading(value)
        writes = {value: self._reading(value) for value in made if value in self.stored}
        ordered = [value for op in kernel.ops for value in op.outputs if value in writes]
        arrays = [*reads.items(), *((value, writes[value]) for value in ordered)]
        dims, strides = merged(shape, [spread(view, shape) for _, view in arrays])
        names = {value: f"v{n}" for n, value in enumerate([*reads, *(v for op in kernel.ops for v in op.outputs)])}
        body = []
        parameters, arguments, pointer = self._parameters([*reads.values()], [writes[value] for value in ordered])
        for (value, view), stride in zip(arrays[: len(reads)], strides, strict=False):
            where = index_along(stride, view.offset)
            body.append(f"{c_type(value)} {names[value]} = {pointer[view.key]}[{where}];")
        for op in kernel.ops:
            operands = [literal(value) if value.constant is not None else names[value] for value in op.inputs]
            body.append(f"{c_type(op.outputs[0])} {names[op.outputs[0]]} = {_expression(op, operands)};")
        for value, stride in zip(ordered, strides[len(reads) :], strict=True):
            body.append(f"{pointer[writes[value].key]}[{index_along(stride, 0)}] = {names[value]};")
        self._function(index, parameters, arguments, loops_along(dims, body, simd=True))

    def _parameters(self, reads: Sequence[View], writes: Sequence[View]) -> tuple[list[str], list[str], dict]:
        pointer: dict[tuple[Value, int], str] = {}
        parameters, arguments = [], []
        for views, const in ((reads, "const "), (writes, "")):
            for view in views:
                if view.key not in pointer:
                    pointer[view.key] = f"p{len(pointer)}"
                    parameters.append(f"{const}{c_type(view.root)} *restrict {pointer[view.key]}")
                    moved = f" + b * {view.lead}L" if view.lead and view.root not in self.alone else ""
                    arguments.append(f"{self.address[view.root]}{moved}")
        return parameters, arguments, pointer

    def _function(self, index: int, parameters: list[str], arguments: list[str], body: str) -> None:
        name = f"kernel{index}_{len(self.functions)}"
        self.functions.append(f"KERNEL void {name}({', '.join(parameters)}) {{\n{body}\n}}")
        self.calls.append(f"{name}({', '.join(arguments)});")

    def _reduction(self, index: int, op: Op) -> None:
        view, out = self._reading(op.inputs[0]), op.outputs[0]
        axes = {axis - self.by_example for axis in op.params["axes"]}
        start, combine, symbol = _REDUCTIONS[op.name]
        into = self._reading(out)
        parameters, arguments, pointer = self._parameters([view], [into])
        kept = [d for d in range(len(view.shape)) if d not in axes]
        reduced = [d for d in range(len(view.shape)) if d in axes and view.shape[d] > 1]
        out_strides = dict(zip(kept, contiguous([view.shape[d] for d in kept]), strict=True))
        kept = [d for d in kept if view.shape[d] > 1]
        ctype, source, target = c_type(out), pointer[view.key], pointer[into.key]
        # The innermost loop goes along the entries that are next to each other.
        by_row = not kept or (reduced and abs(view.strides[reduced[-1]]) < abs(view.strides[kept[-1]] or 10**9))
        everywhere = index_of(view, range(len(view.shape)))
        if by_row or len(kept) == 0:
            where = " + ".join(f"i{d} * {out_strides[d]}L" for d in kept) or "0"
            inner = f"acc = {combine.format('acc', 'x')};"
            inside = [f"{ctype} x = {source}[{everywhere}];", inner]
            sums = loops_over([(d, view.shape[d]) for d in reduced], inside, f"reduction({symbol}:acc)")
            body = [f"{ctype} acc = {start};", sums, f"{target}[{where}] = acc;"]
            text = loops_over([(d, view.shape[d]) for d in kept], body)
        else:
            last, outer = kept[-1], kept[:-1]
            row = f"{ctype} acc[{view.shape[last]}];"
            where = " + ".join(f"i{d} * {out_strides[d]}L" for d in outer) or "0"
            clear = loops_over([(last, view.shape[last])], [f"acc[i{last}] = {start};"], "")
            inside = [
                f"{ctype} x = {source}[{everywhere}];",
                f"acc[i{last}] = {combine.format(f'acc[i{last}]', 'x')};",
            ]
            add = loops_over([*((d, view.shape[d]) for d in reduced), (last, view.shape[last])], inside, "")
            put = loops_over(
                [(last, view.shape[last])],
                [f"{target}[{where} + i{last} * {out_strides[last]}L] = acc[i{last}];"],
                "",
            )
            text = loops_over([(d, view.shape[d]) for d in outer], [row, clear, add, put])
        self._function(index, parameters, arguments, text)

    def _cumulative(self, index: int, op: Op) -> None:
        view, out = self._reading(op.inputs[0]), self._reading(op.outputs[0])
        axis = int(op.params["axis"]) - self.by_example
        parameters, arguments, pointer = self._parameters([view], [out])
        size, others = view.shape[axis], [(d, view.shape[d]) for d in range(len(view.shape)) if d != axis]
        place = f"i{axis} = {size - 1}L - step" if op.params["reverse"] else f"i{axis} = step"
        combined = _CUMULATIVE[op.name].format("acc", "x")
        target = index_of(out, range(len(view.shape)))
        body = [
            "float acc = 0;",
            f"for (long step = 0; step < {size}; step++) {{ long {place}; float x = "
            f"{pointer[view.key]}[{index_of(view, range(len(view.shape)))}]; acc = step ? {combined} : x; "
            f"{pointer[out.key]}[{target}] = acc; }}",
        ]
        self._function(index, parameters, arguments, loops_over(others, body))

    def _arg(self, index: int, op: Op) -> None:
        view, out = self._reading(op.inputs[0]), self._reading(op.outputs[0])
        axis = op.params["axes"][0] - self.by_example
        parameters, arguments, pointer = self._parameters([view], [out])
        dims = [d for d in range(len(view.shape)) if d != axis]
        where = " + ".join(
            f"i{d} * {stride}L" for d, stride in zip(dims, contiguous([view.shape[d] for d in dims]), strict=True)
        )
        better = ">" if op.name == "argmax" else "<"
        body = [
            "float best = 0; long at = 0;",
            f"for (long i{axis} = 0; i{axis} < {view.shape[axis]}; i{axis}++) {{ "
            f"float x = {pointer[view.key]}[{index_of(view, range(len(view.shape)))}]; "
            f"if (i{axis} == 0 || x {better} best || (x != x && best == best)) {{ best = x; at = i{axis}; }} }}",
            f"{pointer[out.key]}[{where or '0'}] = at;",
        ]
        self._function(index, parameters, arguments, loops_over([(d, view.shape[d]) for d in dims], body))

    def _concatenate(self, index: int, op: Op) -> None:
        out, axis, first = self._reading(op.outputs[0]), int(op.params["dimension"]) - self.by_example, 0
        for value in op.inputs:
            shape = value.shape[self.by_example :]
            part = out._replace(shape=shape, offset=out.offset + first * out.strides[axis])
            self._fill(index, value, part)
            first += shape[axis]

    def _stack(self, index: int, op: Op) -> None:
        out, axis = self._reading(op.outputs[0]), int(op.params["axis"]) - self.by_example
        strides = out.strides[:axis] + out.strides[axis + 1 :]
        for n, value in enumerate(op.inputs):
            shape, offset = value.shape[self.by_example :], out.offset + n * out.strides[axis]
            self._fill(index, value, out._replace(shape=shape, strides=strides, offset=offset))

    def _pad(self, index: int, op: Op) -> None:
        (value, filler), out = op.inputs, self._reading(op.outputs[0])
        config = [tuple(map(int, pads)) for pads in op.params["padding_config"]][self.by_example :]
        shape = value.shape[self.by_example :]
        if any(low > 0 or high > 0 for low, high, _ in config):
            self._fill(index, filler, out)
        # Negative padding takes entries away.
        kept = tuple(n + min(low, 0) + min(high, 0) for n, (low, high, _) in zip(shape, config, strict=True))
        start = sum(max(low, 0) * stride for (low, _, _), stride in zip(config, out.strides, strict=True))
        target = out._replace(shape=kept, offset=start)
        if value.constant is not None:
            self._fill(index, dataclasses.replace(value, shape=kept), target)
            return
        view = self._reading(value)
        first = view.offset + sum(
            max(-low, 0) * stride for (low, _, _), stride in zip(config, view.strides, strict=True)
        )
        self._fill_from(index, view._replace(shape=kept, offset=first), target)

    def _fill(self, index: int, value: Value, target: View) -> None:
        """Write a value, or a single one everywhere, to part of an array."""
        if value.constant is None:
            self._fill_from(index, self._reading(value), target)
            return
        parameters, arguments, pointer = self._parameters([], [target])
        dims, (stride,) = merged(target.shape, [target.strides])
        body = [f"{pointer[target.key]}[{index_along(stride, target.offset)}] = {literal(value)};"]
        self._function(index, parameters, arguments, loops_along(dims, body, simd=True))

    def _fill_from(self, index: int, view: View, target: View) -> None:
        parameters, arguments, pointer = self._parameters([view], [target])
        dims, (read, write) = merged(target.shape, [spread(view, target.shape), target.strides])
        place, source = index_along(write, target.offset), index_along(read, view.offset)
        body = [f"{pointer[target.key]}[{place}] = {pointer[view.key]}[{source}];"]
        self._function(index, parameters, arguments, loops_along(dims, body, simd=True))

    def _copy_view(self, index: int, view: View, op: Op) -> str:
        out = self._reading(op.outputs[0])
        parameters, arguments, pointer = self._parameters([view], [out])
        dims, (read,) = merged(view.shape, [view.strides])
        flat = contiguous(dims)
        body = [f"{pointer[out.key]}[{index_along(flat, 0)}] = {pointer[view.key]}[{index_along(read, view.offset)}];"]
        self._function(index, parameters, arguments, loops_along(dims, body, simd=True))
        return self.calls.pop()

    def _copying(self, value: Value, target: str) -> Callable[[], str]:
        return lambda: self._copy(value, target)

    def _copy(self, value: Value, target: str) -> str:
        """A statement that writes a value where nothing else of the loop is."""
        ctype = c_type(value)
        if value.constant is not None:
            return f"for (long i = 0; i < {value.size}; i++) ({target})[i] = {literal(value)};"
        view = self.views[value]
        if view.strides == contiguous(value.shape):
            address = f"{self.address[view.root]} + {view.offset}L"
            return f"memcpy({target}, {address}, {value.size}L * sizeof({ctype}));"
        dims, (read,) = merged(view.shape, [view.strides])
        source = f"({self.address[view.root]})[{index_along(read, view.offset)}]"
        return loops_along(dims, [f"({target})[{index_along(contiguous(dims), 0)}] = {source};"], simd=False)

    def _product(self, index: int, op: Op) -> None:
        packed = self.packing.get(op)
        if packed is None:
            left, right = (self._reading(value) for value in op.inputs)
            factors = _factors(op, left, right, drop=self.by_example)
            self._looped_product(index, self._reading(op.outputs[0]), *factors)
            return
        right, key = packed.right, (packed.right.root, packed.right.offset, *packed.matrix)
        if key not in self.packed:
            name = self.packed[key] = f"packed{len(self.packed)}"
            source = f"{self.address[right.root]} + {right.offset}L"
            row, column, k, n = packed.matrix
            size = f"packed_size({k}, {n})"
            self.prologue.append(f"float *{name} = aligned_alloc(64, ({size} * 4 + 63) / 64 * 64);")
            self.prologue.append(f"pack({source}, {row}, {column}, {k}, {n}, {name});")
        *_, k, n = packed.matrix
        start = f"{self.address[packed.left.root]} + {packed.left.offset}L"
        target = self.address[op.outputs[0]]
        self.calls.append(f"product({start}, {packed.lda}, {self.packed[key]}, {target}, {n}, {packed.m}, {k}, {n});")

    def _pack(self, op: Op) -> None:
        """Note a product with a matrix that is the same in all steps: it is packed before the loop."""
        left, right, batch, rows, columns, sums = _factors(op, self.views[op.inputs[0]], self.views[op.inputs[1]])
        swapped = left.root in self.fixed
        if batch or swapped == (right.root in self.fixed):
            return
        if swapped:
            left, right, rows, columns, sums = right, left, columns, rows, [(n, r, s) for n, s, r in sums]
        along_left, along_right = as_one_axis([(n, s) for n, s, _ in sums]), as_one_axis([(n, r) for n, _, r in sums])
        vectors, matrix = as_one_axis(rows), as_one_axis(columns)
        if along_left is None or along_right is None or vectors is None or matrix is None:
            return
        (k, step), (_, row), (m, lda), (n, column) = along_left, along_right, vectors, matrix
        if (step != 1 and k > 1) or n < 4:
            return
        self.packing[op] = _Packed(left, right, lda, m, (row, column, k, n))
        if swapped:  # what is computed is the transpose of what is wanted
            out, free = op.outputs[0], len(columns)
            strides = contiguous((*out.shape[free:], *out.shape[:free]))
            ahead = len(out.shape) - free
            self.views[out] = View(out, out.shape, (*strides[ahead:], *strides[:ahead]), 0)

    def _looped_product(self, index: int, out: View, left: View, right: View, batch, rows, columns, sums) -> None:
        parameters, arguments, pointer = self._parameters([left, right], [out])
        names = iter(f"i{n}" for n in range(100))
        shape = [n for n, *_ in (*batch, *rows, *columns)]
        out_strides = iter(contiguous(shape))
        axes = []  # name, size, strides in left, right, out
        for n, s, r in batch:
            axes.append(("batch", next(names), n, s, r, next(out_strides)))
        for n, s in rows:
            axes.append(("row", next(names), n, s, 0, next(out_strides)))
        for n, r in columns:
            axes.append(("column", next(names), n, 0, r, next(out_strides)))
        for n, s, r in sums:
            axes.append(("sum", next(names), n, s, r, 0))
        axes = [axis for axis in axes if axis[2] > 1]

        def where(which: int, offset: int, chosen) -> str:
            terms = [f"{name} * {strides[which]}L" for _, name, _, *strides in chosen if strides[which]]
            return " + ".join([*terms, str(offset)] if offset or not terms else terms)

        a = f"{pointer[left.key]}[{where(0, left.offset, axes)}]"
        b = f"{pointer[right.key]}[{where(1, right.offset, axes)}]"
        target = pointer[out.key]
        summed = [axis for axis in axes if axis[0] == "sum"]
        kept = [axis for axis in axes if axis[0] != "sum"]
        # Along which axis neighbours are used: of the result, or of the sum.
        vector = next((axis for axis in reversed(kept) if axis[5] == 1 and 1 in axis[3:5] and axis[0] != "batch"), None)
        along_sum = next((axis for axis in summed if axis[3] == 1 and axis[4] == 1), None)
        if along_sum is not None and (vector is None or along_sum[2] > vector[2]):
            others = [axis for axis in summed if axis is not along_sum]
            order = [(axis[1], axis[2]) for axis in (*others, along_sum)]
            body = [
                "float acc = 0;",
                loop_nest(order, [f"acc += {a} * {b};"], "reduction(+:acc)"),
                f"{target}[{where(2, 0, kept)}] = acc;",
            ]
            text = loop_nest([(axis[1], axis[2]) for axis in kept], body, None)
        elif vector is not None:
            outer = [axis for axis in kept if axis is not vector]
            name, size = vector[1], vector[2]
            body = [
                f"float acc[{size}];",
                loop_nest([(name, size)], [f"acc[{name}] = 0;"], ""),
                loop_nest([*((axis[1], axis[2]) for axis in summed), (name, size)], [f"acc[{name}] += {a} * {b};"], ""),
                loop_nest([(name, size)], [f"{target}[{where(2, 0, kept)}] = acc[{name}];"], ""),
            ]
            text = loop_nest([(axis[1], axis[2]) for axis in outer], body, None)
        else:
            body = [
                "float acc = 0;",
                loop_nest([(axis[1], axis[2]) for axis in summed], [f"acc += {a} * {b};"], "reduction(+:acc)"),
                f"{target}[{where(2, 0, kept)}] = acc;",
            ]
            text = loop_nest([(axis[1], axis[2]) for axis in kept], body, None)
        self._function(index, parameters, arguments, text)

    # The file.

    def _assemble(self) -> str:
        loop = self.loop
        lines = ["static void run(void *const *in, void *const *out) {"]
        groups = (("fixed", loop.fixed), ("in_carried", loop.carried), ("stepped", loop.stepped))
        number = 0
        for name, values in groups:
            for n, value in enumerate(values):
                lines.append(f"const {c_type(value)} *{name}{n} = in[{number}];")
                number += 1
        number = 0
        for name, values in (("out_carried", loop.carried), ("stacked", loop.stacked)):
            for n, value in enumerate(values):
                lines.append(f"{c_type(value)} *{name}{n} = out[{number}];")
                number += 1
        lines.append(f"char *memory = aligned_alloc(64, {max(self.size, 64)}L);")
        lines += self.prologue
        first = loop.length - 1 if loop.reverse else 0
        for n, value in enumerate(loop.carried):
            if value in self.homes:
                home = f"stacked{self.homes[value]} + {first}L * {value.size}L"
                lines.append(f"memcpy({home}, in_carried{n}, {value.size}L * sizeof({c_type(value)}));")
                lines.append(f"const {c_type(value)} *carried{n} = {home};")
            else:
                lines.append(f"const {c_type(value)} *carried{n} = in_carried{n};")
        lines.append(f"for (long n = 0; n < {loop.length}; n++) {{")
        step = f"long t = {loop.length - 1} - n, next = t - 1;" if loop.reverse else "long t = n, next = t + 1;"
        lines.append(f"{step} int last = n == {loop.length - 1}; (void)next; (void)last; (void)t;")
        lines += self.calls
        lines += [copy() for copy in self.copies]
        after = []
        for n, before in enumerate(loop.carried):
            lines.append(f"const {c_type(before)} *after{n} = {self.after[n]};")
            after.append(f"carried{n} = after{n};")
        lines += [*after, "}"]
        for n, value in enumerate(loop.carried):
            lines.append(
                f"if (carried{n} != out_carried{n}) memcpy(out_carried{n}, carried{n}, "
                f"{value.size}L * sizeof({c_type(value)}));"
            )
        lines += [f"free({name});" for name in self.packed.values()]
        lines += ["free(memory);", "}"]
        return "\n".join(['#include "kernels.h"', *self.functions, *lines, ""])


def _is_by_example(op: Op, rows: int) -> bool:
    """Whether an operation is one for each of so many examples, which are along the first axes."""
    out, params = op.outputs[0].shape, op.params
    if not out or out[0] != rows:
        return False
    if op.name in _POINTWISE:
        return True
    if op.name == "dot_general":
        _, (left, right) = params["dimension_numbers"]
        return tuple(left[:1]) == tuple(right[:1]) == (0,)
    if op.name == "pad":
        return tuple(params["padding_config"][0]) == (0, 0, 0)
    if op.name in ("concatenate", "stack"):
        return bool(params["dimension" if op.name == "concatenate" else "axis"] > 0)
    if op.name in _CUMULATIVE:
        return bool(params["axis"] > 0)
    same = bool(op.inputs[0].shape) and op.inputs[0].shape[0] == rows
    return same and 0 not in params.get("axes", ())


def _factors(op: Op, left: View, right: View, drop: bool = False) -> tuple:
    """The operands of a product, and sizes and strides of its axes: of the batch, rows, columns and the sum.

    The views may lack the first axis, which is then of the batch.
    """
    (left_sum, right_sum), (left_batch, right_batch) = op.params["dimension_numbers"]
    if drop:
        left_batch, right_batch = left_batch[1:], right_batch[1:]
        dims = (left_sum, right_sum, left_batch, right_batch)
        left_sum, right_sum, left_batch, right_batch = ([d - 1 for d in part] for part in dims)

    def axes(view: View, dims: Sequence[int]) -> list[tuple[int, int]]:
        return [(view.shape[d], view.strides[d]) for d in dims]

    def both(left_dims: Sequence[int], right_dims: Sequence[int]) -> list[tuple[int, int, int]]:
        return [(n, s, r) for (n, s), (_, r) in zip(axes(left, left_dims), axes(right, right_dims), strict=True)]

    rows = axes(left, [d for d in range(len(left.shape)) if d not in (*left_sum, *left_batch)])
    columns = axes(right, [d for d in range(len(right.shape)) if d not in (*right_sum, *right_batch)])
    return left, right, both(left_batch, right_batch), rows, columns, both(left_sum, right_sum)


def _expression(op: Op, operands: list[str]) -> str:
    of = str(op.inputs[0].dtype)
    if op.name == "convert_element_type":
        if str(op.outputs[0].dtype) == "bool":
            return f"{operands[0]} != 0"
        return f"({c_type(op.outputs[0])}){operands[0]}"
    if op.name == "integer_pow":
        power = op.params["y"]
        product = " * ".join([operands[0]] * abs(power)) or "1.0f"
        return product if power >= 0 else f"1.0f / ({product})"
    if op.name == "not":
        return f"!{operands[0]}"
    if op.name == "is_finite":
        return f"({operands[0]} - {operands[0]}) == 0.0f"
    if op.name in ("max", "min") and of != "float32":
        return f"{operands[0]} {'>' if op.name == 'max' else '<'} {operands[1]} ? {operands[0]} : {operands[1]}"
    return _POINTWISE[op.name].format(*operands)
