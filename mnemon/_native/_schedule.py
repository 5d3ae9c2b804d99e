"""Which operations of a loop share a kernel, which kernels go example by example, and which values need memory."""

import collections
import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from ._graph import Op, Value
from ._layout import View, as_one_axis, contiguous, strides_in
from ._ops import POINTWISE, REDUCTIONS, VIEWS, factors, is_by_example

# What the kernels of a group may touch before they are done for one example after another.
_FITTING_BYTES = 2**18
# Entries of a sum that is kept beside a loop over what is summed up.
_LARGEST_SUM = 2**12


@dataclasses.dataclass
class Loop:
    """What is to be emitted: the operations of a step, and where its inputs come from and its outputs go.

    A step sees `fixed` values, its slices of the `stepped` ones, and the `carried` ones of the step before. It leaves
    `next_carried`, and a slice of each of the `stacked` values. When it is called, a loop is told how many of its
    first steps to run; the others leave slices of zeros.
    """

    ops: list[Op]
    fixed: list[Value]
    stepped: list[Value]
    carried: list[Value]
    next_carried: list[Value]
    stacked: list[Value]
    length: int
    reverse: bool


@dataclasses.dataclass(eq=False)
class Kernel:
    """Operations of one loop nest: pointwise ones and reductions over the same shape, or one of another kind."""

    ops: list[Op]
    shape: tuple[int, ...] | None  # of the loops, if entries are independent


class Packed(NamedTuple):
    """A product of vectors with a packed matrix."""

    left: View
    right: View
    lda: int  # from one vector to the next
    m: int  # how many there are
    matrix: tuple[int, int, int, int]  # strides of rows and columns, number of rows and of columns


class Schedule:
    """The kernels of a loop in the order in which they run."""

    def __init__(self, loop: Loop):
        self.loop = loop
        self.views: dict[Value, View] = {}
        self.kernels: list[Kernel] = []
        self.made_by: dict[Value, int] = {}  # the kernel, for values that are made in the loop
        self.inner: set[Value] = set()  # pointwise results, which can be used inside their kernel
        self.stored: dict[Value, None] = {}  # values that need memory, in the order in which that was found
        self.packing: dict[Op, Packed] = {}
        self.fixed = set(loop.fixed)
        for value in (*loop.fixed, *loop.stepped, *loop.carried):
            self.views[value] = _plain(value)
        outputs = [value for value in (*loop.next_carried, *loop.stacked) if value.constant is None]
        for op in _ordered(loop.ops):
            self._add(op)
        for value in outputs:
            self._store(value)
        self._group()

    def _add(self, op: Op) -> None:
        if op.name in VIEWS:
            views = self._view(op)
            if views is not None:
                self.views |= {v: view for v, view in zip(op.outputs, views, strict=True) if v.constant is None}
                return
        shape = _loop_shape(op)
        earliest = 0
        for value in op.inputs:
            if value.constant is None:
                earliest = max(earliest, self._ready(value, shape))
        index = None
        if shape is not None:
            same = (at for at in range(len(self.kernels) - 1, earliest - 1, -1) if self.kernels[at].shape == shape)
            index = next(same, None)
        if index is None:
            index = len(self.kernels)
            self.kernels.append(Kernel([], shape))
        self.kernels[index].ops.append(op)
        for value in op.inputs:
            if value.constant is None and not (value in self.inner and self.made_by[value] == index):
                self._store(value)
        for value in op.outputs:
            self.made_by[value] = index
            self.views[value] = _plain(value)
            if op.name == "dot_general":
                self._pack(op)
            if op.name in POINTWISE:
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
            return _views(source, [(out, tuple(spread), offset)])
        if op.name in ("reshape", "squeeze", "expand_dims"):
            reshaped = strides_in(shape, strides, out)
            return None if reshaped is None else _views(source, [(out, reshaped, offset)])
        if op.name == "transpose":
            order = params["permutation"]
            return _views(source, [(out, tuple(strides[d] for d in order), offset)])
        if op.name == "slice":
            steps = params["strides"] or (1,) * len(shape)
            start = offset + sum(s * first for s, first in zip(strides, params["start_indices"], strict=True))
            return _views(source, [(out, tuple(s * n for s, n in zip(strides, steps, strict=True)), start)])
        if op.name == "rev":
            turned = set(params["dimensions"])
            start = offset + sum(strides[d] * (shape[d] - 1) for d in turned)
            return _views(source, [(out, tuple(-s if d in turned else s for d, s in enumerate(strides)), start)])
        axis, parts = params["axis"], []
        for output in op.outputs:
            whole = op.name == "split"
            parts.append((output.shape, strides if whole else strides[:axis] + strides[axis + 1 :], offset))
            offset += (output.shape[axis] if whole else 1) * strides[axis]
        return _views(source, parts)

    def _pack(self, op: Op) -> None:
        """Note a product with a matrix that is the same in all steps: it is packed before the loop."""
        left, right, batch, rows, columns, sums = factors(op, self.views[op.inputs[0]], self.views[op.inputs[1]])
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
        self.packing[op] = Packed(left, right, lda, m, (row, column, k, n))
        if swapped:  # what is computed is the transpose of what is wanted
            out, free = op.outputs[0], len(columns)
            strides = contiguous((*out.shape[free:], *out.shape[:free]))
            ahead = len(out.shape) - free
            self.views[out] = View(out, out.shape, (*strides[ahead:], *strides[:ahead]), 0)

    # One example after another.

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
        users = self.users()
        outputs = {self.views[v].root for v in (*loop.next_carried, *loop.stacked) if v.constant is None}
        for first, end, by_example in self.groups:
            if by_example:
                made = [v for v in self.stored if first <= self.made_by[v] < end and v not in outputs]
                self.alone |= {v for v in made if all(first <= user < end for user in users.get(v, ()))}

    def users(self) -> dict[Value, set[int]]:
        """The kernels that read or write a stored value."""
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
            if not is_by_example(op, self.rows) or op in self.packing:
                return False
            for value in op.inputs:
                if value.constant is not None or (value in self.inner and self.made_by[value] == index):
                    continue
                view = self.views[value]
                made = self.made_by.get(view.root, -1)
                if first <= made < index and not view.shows_only(self.rows):
                    return False
                if kernel.shape is not None and view.shape and len(view.shape) != len(kernel.shape):
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


def _ordered(ops: Sequence[Op]) -> list[Op]:
    """Operations in an order in which many share loops: those over large arrays wait until nothing else can be done."""
    made = {value for op in ops for value in op.outputs}
    missing = {op: {value for value in op.inputs if value in made} for op in ops}
    users: dict[Value, list[Op]] = collections.defaultdict(list)
    for op, values in missing.items():
        for value in values:
            users[value].append(op)
    place = {op: n for n, op in enumerate(ops)}

    def cost(op: Op) -> tuple:
        shape = None if op.name in VIEWS else _loop_shape(op)
        return (0, (), place[op]) if shape is None else (math.prod(shape), shape, place[op])

    ready = [op for op in ops if not missing[op]]
    ordered: list[Op] = []
    while ready:
        # Of the same shape all that can be done, before any other.
        last = None if not ordered or ordered[-1].name in VIEWS else _loop_shape(ordered[-1])
        same = [op for op in ready if last is not None and op.name not in VIEWS and _loop_shape(op) == last]
        op = min(same or ready, key=cost)
        ready.remove(op)
        ordered.append(op)
        for value in op.outputs:
            for user in users[value]:
                missing[user].discard(value)
                if not missing[user]:
                    ready.append(user)
    return ordered


def _loop_shape(op: Op) -> tuple[int, ...] | None:
    """Over which shape an operation is a loop that others can share."""
    if op.name in POINTWISE:
        return op.outputs[0].shape
    if op.name in REDUCTIONS and op.inputs[0].constant is None and _sums_beside(op):
        return op.inputs[0].shape
    return None


def _sums_beside(op: Op) -> bool:
    """Whether what a reduction gives can be kept while loops run through its operand in the order of its axes."""
    shape, axes = op.inputs[0].shape, sorted(op.params["axes"])
    if not axes:
        return True
    kept = [n for d, n in enumerate(shape) if d > axes[0] and d not in axes]
    return math.prod(kept) <= _LARGEST_SUM and (not kept or len(shape) - 1 not in axes)


def _plain(value: Value) -> View:
    return View(value, value.shape, contiguous(value.shape), 0)


def _views(source: View, parts: list[tuple]) -> list[View]:
    """Views of what another view shows; numbers in the parameters of an operation may be those of NumPy."""
    return [View(source.root, shape, tuple(map(int, strides)), int(offset)) for shape, strides, offset in parts]
