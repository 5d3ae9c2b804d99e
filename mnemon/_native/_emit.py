"""The kernels of a loop as C functions, and the file around them."""

import dataclasses
from collections.abc import Sequence

from ._graph import Op, Value
from ._layout import (
    View,
    c_type,
    contiguous,
    index_along,
    index_of,
    literal,
    loops_along,
    loops_over,
    merged,
    spread,
)
from ._loose import loose_product
from ._ops import CUMULATIVE, POINTWISE, REDUCTIONS, expression, factors
from ._places import Copy, Places
from ._schedule import Loop, Schedule
from ._sums import Sum, nest_with_sums


def emit(loop: Loop) -> str:
    """The C source of a loop, to be compiled with `kernels.h`."""
    return _Emitter(Schedule(loop)).source()


class _Emitter:
    def __init__(self, schedule: Schedule):
        self.schedule, self.loop, self.places = schedule, schedule.loop, Places(schedule)
        self.views, self.address = schedule.views, self.places.address
        self.functions: list[str] = []
        self.calls: list[str] = []
        self.prologue: list[str] = list(self.places.spares)
        self.packed: dict[tuple, str] = {}
        self.by_example = False  # whether kernels are emitted for one example

    def source(self) -> str:
        """The whole file."""
        for first, end, by_example in self.schedule.groups:
            self.by_example = by_example
            if by_example:
                self.calls.append(f"for (long b = 0; b < {self.schedule.rows}; b++) {{")
            for index in range(first, end):
                self._kernel(index)
            if by_example:
                self.calls.append("}")
        return self._assemble()

    def _kernel(self, index: int) -> None:
        kernel = self.schedule.kernels[index]
        op = kernel.ops[0]
        product = kernel.ops[-1].params.get("product")
        if product is not None and len(kernel.ops) == 2 and op.outputs[0] is kernel.ops[1].inputs[0]:
            self._product(index, product)  # of a matrix and a vector, and nothing else in the same loops
        elif kernel.shape is not None:
            self._entrywise(index, kernel.ops, kernel.shape)
        elif op.name in REDUCTIONS:
            self._reduction(index, op)
        elif op.name in CUMULATIVE:
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
            view, out = self._reading(op.inputs[0]), self._reading(op.outputs[0])
            self._fill_from(index, view, out._replace(shape=view.shape, strides=contiguous(view.shape)))

    def _reading(self, value: Value) -> View:
        return self.views[value].of_one() if self.by_example else self.views[value]

    def _entrywise(
        self, index: int, ops: Sequence[Op], shape: tuple[int, ...], order: Sequence[int] | None = None
    ) -> None:
        """Pointwise operations over a shape, and reductions of their operands and results.

        The loops have the order of the axes unless another is given.
        """
        shape = shape[self.by_example :]
        order = range(len(shape)) if order is None else order
        pointwise = [op for op in ops if op.name in POINTWISE]
        made = [op.outputs[0] for op in pointwise]
        given = dict.fromkeys(v for op in ops for v in op.inputs if v.constant is None and v not in set(made))
        reads = {value: self._reading(value) for value in given}
        writes = {value: self._reading(value) for value in made if value in self.schedule.stored}
        reductions = [op for op in ops if op.name in REDUCTIONS]
        results = [self._reading(op.outputs[0]) for op in reductions]
        everywhere = [spread(view, shape) for view in (*reads.values(), *writes.values())]
        everywhere += [self._along(op, shape) for op in reductions]
        ordered = [tuple(strides[d] for d in order) for strides in everywhere]
        dims, strides = merged([shape[d] for d in order], ordered)
        names = {value: f"v{n}" for n, value in enumerate([*reads, *made])}
        parameters, arguments, pointer = self._parameters([*reads.values()], [*writes.values(), *results])

        def entry(value: Value) -> str:
            return literal(value) if value.constant is not None else names[value]

        body = []
        places = iter(strides)
        for value, view in reads.items():
            body.append(
                f"{c_type(value)} {names[value]} = {pointer[view.key]}[{index_along(next(places), view.offset)}];"
            )
        for op in pointwise:
            right = expression(op, [entry(value) for value in op.inputs])
            body.append(f"{c_type(op.outputs[0])} {names[op.outputs[0]]} = {right};")
        for value, view in writes.items():
            body.append(f"{pointer[view.key]}[{index_along(next(places), 0)}] = {names[value]};")
        sums = []
        for n, (op, result) in enumerate(zip(reductions, results, strict=True)):
            sums.append(Sum(op.name, c_type(op.outputs[0]), f"sum{n}", dims, next(places), pointer[result.key]))
            body.append(sums[-1].add(entry(op.inputs[0])))
        self._function(index, parameters, arguments, nest_with_sums(dims, body, sums))

    def _along(self, op: Op, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Strides in the result of a reduction over the shape of its operand."""
        axes = {axis - self.by_example for axis in op.params["axes"]}
        kept = [d for d in range(len(shape)) if d not in axes]
        strides = dict(zip(kept, contiguous([shape[d] for d in kept]), strict=True))
        return tuple(strides.get(d, 0) for d in range(len(shape)))

    def _reduction(self, index: int, op: Op) -> None:
        """One whose results are too many to be kept beside a loop in the order of the axes: those come first."""
        view = self._reading(op.inputs[0])
        axes = {axis - self.by_example for axis in op.params["axes"]}
        order = [d for d in range(len(view.shape)) if d not in axes]
        reduced = [d for d in range(len(view.shape)) if d in axes]
        # The innermost loop goes along the entries that are next to each other.
        if not order or abs(view.strides[reduced[-1]]) < abs(view.strides[order[-1]] or 10**9):
            order += reduced
        else:
            order = [*order[:-1], *reduced, order[-1]]
        self._entrywise(index, [op], op.inputs[0].shape, order)

    def _parameters(self, reads: Sequence[View], writes: Sequence[View]) -> tuple[list[str], list[str], dict]:
        pointer: dict[tuple[Value, int], str] = {}
        parameters, arguments = [], []
        for views, const in ((reads, "const "), (writes, "")):
            for view in views:
                if view.key not in pointer:
                    pointer[view.key] = f"p{len(pointer)}"
                    parameters.append(f"{const}{c_type(view.root)} *restrict {pointer[view.key]}")
                    moved = f" + b * {view.lead}L" if view.lead and view.root not in self.schedule.alone else ""
                    arguments.append(f"{self.address[view.root]}{moved}")
        return parameters, arguments, pointer

    def _function(self, index: int, parameters: list[str], arguments: list[str], body: str) -> None:
        name = f"kernel{index}_{len(self.functions)}"
        self.functions.append(f"KERNEL void {name}({', '.join(parameters)}) {{\n{body}\n}}")
        self.calls.append(f"{name}({', '.join(arguments)});")

    def _cumulative(self, index: int, op: Op) -> None:
        view, out = self._reading(op.inputs[0]), self._reading(op.outputs[0])
        axis = int(op.params["axis"]) - self.by_example
        parameters, arguments, pointer = self._parameters([view], [out])
        size, others = view.shape[axis], [(d, view.shape[d]) for d in range(len(view.shape)) if d != axis]
        place = f"i{axis} = {size - 1}L - step" if op.params["reverse"] else f"i{axis} = step"
        combined = CUMULATIVE[op.name].format("acc", "x")
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

    def _copy(self, copy: Copy) -> str:
        """A statement that writes a value where nothing else of the loop is."""
        value, target = copy
        if value.constant is not None:
            return f"for (long i = 0; i < {value.size}; i++) ({target})[i] = {literal(value)};"
        view = self.views[value]
        if view.strides == contiguous(value.shape):
            address = f"{self.address[view.root]} + {view.offset}L"
            return f"memcpy({target}, {address}, {value.size}L * sizeof({c_type(value)}));"
        dims, (read,) = merged(view.shape, [view.strides])
        source = f"({self.address[view.root]})[{index_along(read, view.offset)}]"
        return loops_along(dims, [f"({target})[{index_along(contiguous(dims), 0)}] = {source};"], simd=False)

    def _product(self, index: int, op: Op) -> None:
        packed = self.schedule.packing.get(op)
        if packed is None:
            left, right = (self._reading(value) for value in op.inputs)
            self._loose_product(index, self._reading(op.outputs[0]), *factors(op, left, right, drop=self.by_example))
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

    def _loose_product(self, index: int, out: View, left: View, right: View, *axes) -> None:
        """A product of matrices that both change from step to step."""
        parameters, arguments, pointer = self._parameters([left, right], [out])
        pointers = pointer[left.key], pointer[right.key], pointer[out.key]
        self._function(index, parameters, arguments, loose_product(pointers, (left.offset, right.offset), *axes))

    def _assemble(self) -> str:
        loop = self.loop
        lines = ["static void run(void *const *in, void *const *out) {"]
        groups = (("fixed", loop.fixed), ("in_carried", loop.carried), ("stepped", loop.stepped))
        lines.append("const long steps = *(const int32_t *)in[0];")
        number = 1
        for name, values in groups:
            for n, value in enumerate(values):
                lines.append(f"const {c_type(value)} *{name}{n} = in[{number}];")
                number += 1
        number = 0
        for name, values in (("out_carried", loop.carried), ("stacked", loop.stacked)):
            for n, value in enumerate(values):
                lines.append(f"{c_type(value)} *{name}{n} = out[{number}];")
                number += 1
        lines.append(f"char *memory = aligned_alloc(64, {max(self.places.size, 64)}L);")
        lines += self.prologue
        first = "(steps - 1)" if loop.reverse else "0L"
        for n, value in enumerate(loop.carried):
            if value in self.places.homes:
                home = f"stacked{self.places.homes[value]} + {first} * {value.size}L"
                lines.append(f"memcpy({home}, in_carried{n}, {value.size}L * sizeof({c_type(value)}));")
                lines.append(f"const {c_type(value)} *carried{n} = {home};")
            else:
                lines.append(f"const {c_type(value)} *carried{n} = in_carried{n};")
        lines.append("for (long n = 0; n < steps; n++) {")
        step = "long t = steps - 1 - n, next = t - 1;" if loop.reverse else "long t = n, next = t + 1;"
        lines.append(f"{step} int last = n == steps - 1; (void)next; (void)last; (void)t;")
        lines += self.calls
        lines += [self._copy(copy) for copy in self.places.copies]
        after = []
        for n, before in enumerate(loop.carried):
            lines.append(f"const {c_type(before)} *after{n} = {self.places.after[n]};")
            after.append(f"carried{n} = after{n};")
        lines += [*after, "}"]
        for n, value in enumerate(loop.carried):
            lines.append(
                f"if (carried{n} != out_carried{n}) memcpy(out_carried{n}, carried{n}, "
                f"{value.size}L * sizeof({c_type(value)}));"
            )
        for n, value in enumerate(loop.stacked):
            rest = f"({loop.length} - steps) * {value.size}L * sizeof({c_type(value)})"
            lines.append(f"memset(stacked{n} + steps * {value.size}L, 0, {rest});")
        lines += [f"free({name});" for name in self.packed.values()]
        lines += ["free(memory);", "}"]
        used = any("loose_product(" in text or "inner_products(" in text for text in self.functions)
        wanted = ["#define LOOSE_PRODUCTS"] if used else []
        return "\n".join([*wanted, '#include "kernels.h"', *self.functions, *lines, ""])
