"""Products of matrices that change from step to step, as C."""

from collections.abc import Sequence
from typing import NamedTuple

from ._layout import contiguous, index_along, loops_along, merged
from ._sums import Sum, nest_with_sums

# From how many entries on the products of `kernels.h` are used: those of the longest vectors.
_VECTOR = 16


def loose_product(pointers: tuple[str, str, str], starts: tuple[int, int], batch, rows, columns, sums) -> str:
    """Loops and calls for a product, from sizes and strides of its axes as `factors` has them."""
    places = iter(contiguous([n for n, *_ in (*batch, *rows, *columns)]))
    groups = (
        [_Axis(n, s, r, next(places)) for n, s, r in batch],
        [_Axis(n, s, 0, next(places)) for n, s in rows],
        [_Axis(n, 0, r, next(places)) for n, r in columns],
        [_Axis(n, s, r, 0) for n, s, r in sums],
    )
    offsets = (*starts, 0)
    return _vector_product(pointers, offsets, *groups) or _small_product(pointers, offsets, *groups)


class _Axis(NamedTuple):
    """An axis of a product: its size, and strides in the factors and in the product."""

    size: int
    left: int
    right: int
    out: int


class _Side(NamedTuple):
    """One of the two factors of a product of matrices: vectors of which each is multiplied with each of the other's."""

    start: str
    count: int
    stride: int  # from one vector to the next
    out: int  # the same in the product
    along: int  # from one entry of a vector to the next


_Axes = Sequence[_Axis]


def _vector_product(pointers, offsets, batch: _Axes, rows: _Axes, columns: _Axes, summed: _Axes) -> str | None:
    """Calls of what is written for long vectors in `kernels.h`, if that fits."""
    examples, starts = _as_loops(batch, "left", "right", "out")
    left, right, out = (f"{p} + {index_along(s, o)}" for p, s, o in zip(pointers, starts, offsets, strict=True))
    of_rows, of_columns = _as_loops(rows, "left", "out"), _as_loops(columns, "right", "out")
    of_sums = _as_loops(summed, "left", "right")
    if max(len(sizes) for sizes, _ in (of_rows, of_columns, of_sums)) > 1:
        return None
    (m, left_row, out_row), (n, right_column, out_column) = _single(of_rows), _single(of_columns)
    k, left_sum, right_sum = _single(of_sums)
    first, second = _Side(left, m, left_row, out_row, left_sum), _Side(right, n, right_column, out_column, right_sum)
    best = max((side for side in (first, second) if side.out == 1), key=lambda side: side.count, default=None)
    if best is None:
        return None
    other = second if best is first else first
    sizes = f"{other.count}L, {k}L, {best.count}L"
    if best.stride == 1 and best.count >= _VECTOR and (best.along != 1 or k <= best.count):
        factors = f"{other.start}, {other.stride}L, {other.along}L, {best.start}, {best.along}L"
        call = f"loose_product({factors}, {out}, {other.out}L, {sizes});"
    elif best.along == other.along == 1 and k >= _VECTOR:
        factors = f"{other.start}, {other.stride}L, {best.start}, {best.stride}L"
        call = f"inner_products({factors}, {out}, {other.out}L, {sizes});"
    else:
        return None
    return loops_along(examples, [call], simd=False)


def _as_loops(axes: _Axes, *which: str) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    return merged([axis.size for axis in axes], [[getattr(axis, name) for axis in axes] for name in which])


def _single(loops: tuple[tuple[int, ...], list[tuple[int, ...]]]) -> tuple[int, int, int]:
    """Size and strides of the only loop there is, or of one with a single pass."""
    sizes, (one, other) = loops
    return (sizes[0], one[0], other[0]) if sizes else (1, 1, 1)


def _small_product(pointers, offsets, batch: _Axes, rows: _Axes, columns: _Axes, summed: _Axes) -> str:
    """Loops for a product of any form, the innermost along entries that are next to each other."""
    kept = [axis for axis in (*batch, *rows, *columns) if axis.size > 1]
    summed = [axis for axis in summed if axis.size > 1]
    contiguous_in = [axis for axis in (*rows, *columns) if axis.size > 1 and axis.out == 1 and 1 in axis[1:3]]
    vector = contiguous_in[-1] if contiguous_in else None
    along = next((axis for axis in summed if axis.left == axis.right == 1), None)
    if vector is not None and (along is None or along.size <= vector.size):
        order = [*(axis for axis in kept if axis is not vector), *summed, vector]
    else:
        order = [*kept, *(axis for axis in summed if axis is not along), *([along] if along else [])]
    sizes, left, right, out = (tuple(axis[i] for axis in order) for i in range(4))
    a, b = (f"{p}[{index_along(s, o)}]" for p, s, o in zip(pointers, (left, right), offsets, strict=False))
    total = Sum("reduce_sum", "float", "total", sizes, out, pointers[2])
    return nest_with_sums(sizes, [total.add(f"{a} * {b}")], [total])
