"""Where the entries of an array are, and how C runs through them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ._graph import Value

C_TYPES = {"float32": "float", "int32": "int32_t", "uint32": "uint32_t", "bool": "uint8_t"}


class View(NamedTuple):
    """Entries of a stored value, which may be another than the one looked at."""

    root: Value
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    lead: int = 0  # from one example to the next, where it is a view of one example

    @property
    def key(self) -> tuple[Value, int]:
        """Views with the same key can share a pointer."""
        return self.root, self.lead

    def of_one(self) -> "View":
        """What it shows of one example."""
        if not self.shape:
            return self
        lead = 0 if self.shape[0] == 1 else self.strides[0]
        return View(self.root, self.shape[1:], self.strides[1:], self.offset, lead)

    def shows_only(self, rows: int) -> bool:
        """Whether what it shows of an example is that example's part of the stored value."""
        if not self.shape or self.shape[0] != rows or not self.root.shape or self.root.shape[0] != rows:
            return False
        part = self.root.size // rows
        reach = self.offset + sum((n - 1) * s for n, s in zip(self.shape[1:], self.strides[1:], strict=True))
        return self.strides[0] == part and min((0, *self.strides)) == 0 and 0 <= reach < part


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def c_type(value: Value) -> str:
    return C_TYPES[str(value.dtype)]


def rounded(size: int) -> int:
    return -(-size // 64) * 64


def literal(value: Value) -> str:
    constant = value.constant
    if str(value.dtype) != "float32":
        return str(int(constant or 0)) + ("u" if str(value.dtype) == "uint32" else "")
    number = float(np.float32(constant))
    if math.isnan(number):
        return '__builtin_nanf("")'
    if math.isinf(number):
        return "__builtin_inff()" if number > 0 else "(-__builtin_inff())"
    return f"{number!r}f" if number >= 0 else f"({number!r}f)"


def spread(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a view over a shape that it has, or that it is spread over where it has size one, or no axes."""
    if not view.shape:
        return (0,) * len(shape)
    return tuple(0 if n == 1 else stride for n, stride in zip(view.shape, view.strides, strict=True))


def strides_in(shape: Sequence[int], strides: Sequence[int], out: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of the same entries in another shape; None where there are none."""
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    position = 0
    left: list[tuple[int, int]] = []
    for n in out:
        if n == 1:
            result.append(0)
            continue
        if not left:
            if position >= len(old):
                return None
            size, stride = old[position]
            position += 1
            while size < n or size % n:
                if position >= len(old) or old[position][1] * old[position][0] != stride:
                    return None
                size, stride = size * old[position][0], old[position][1]
                position += 1
            left = [(size, stride)]
        size, stride = left.pop()
        if size % n:
            return None
        result.append(stride * (size // n))
        if size // n > 1:
            left = [(size // n, stride)]
    return tuple(result)


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The same loops with fewer of them: those that all arrays run through as if they were one."""
    dims: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        steps = [s[d] for s in strides]
        if dims and all(m[-1] == n * step for m, step in zip(merged, steps, strict=True)):
            dims[-1] *= n
            for m, step in zip(merged, steps, strict=True):
                m[-1] = step
        else:
            dims.append(n)
            for m, step in zip(merged, steps, strict=True):
                m.append(step)
    return tuple(dims), [tuple(m) for m in merged]


def as_one_axis(axes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Axes as a single one: its size and stride; None where there is none."""
    dims, (strides,) = merged([n for n, _ in axes], [[s for _, s in axes]])
    if len(dims) > 1:
        return None
    return (dims[0], strides[0]) if dims else (1, 1)


def index_along(strides: Sequence[int], offset: int) -> str:
    terms = [f"i{d} * {stride}L" for d, stride in enumerate(strides) if stride]
    return " + ".join([*terms, f"{offset}L"] if offset or not terms else terms)


def index_of(view: View, dims: Sequence[int]) -> str:
    terms = [f"i{d} * {view.strides[d]}L" for d in dims if view.strides[d] and view.shape[d] > 1]
    return " + ".join([*terms, f"{view.offset}L"] if view.offset or not terms else terms)


def loop_nest(order: Sequence[tuple[str, int]], body: list[str], simd: str | None) -> str:
    """Nested loops; the innermost one is a vector loop if `simd` is a text, with that clause."""
    lines = []
    for n, (name, size) in enumerate(order):
        if simd is not None and n == len(order) - 1:
            lines.append(f"#pragma omp simd {simd}\n")
        lines.append(f"for (long {name} = 0; {name} < {size}; {name}++) {{")
    return "\n".join(lines) + "\n" + "\n".join(body) + "\n" + "}" * len(order)


def loops_over(order: Sequence[tuple[int, int]], body: list[str], simd: str | None = None) -> str:
    return loop_nest([(f"i{d}", size) for d, size in order], body, simd)


def loops_along(dims: Sequence[int], body: list[str], *, simd: bool) -> str:
    return loop_nest([(f"i{d}", size) for d, size in enumerate(dims)], body, "" if simd else None)
