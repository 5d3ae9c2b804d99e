"""Loops that sum up beside whatever else they do."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ._layout import contiguous, index_along, loops_over
from ._ops import REDUCTIONS


class Sum(NamedTuple):
    """A reduction beside the other operations of its kernel."""

    kind: str
    ctype: str
    name: str
    sizes: tuple[int, ...]  # of the loops
    strides: tuple[int, ...]  # in the result; 0 along what is summed up
    target: str

    @property
    def depth(self) -> int:
        """The first loop that sums up."""
        return next((d for d, stride in enumerate(self.strides) if stride == 0), len(self.strides))

    @property
    def kept(self) -> list[int]:
        """The loops inside that one along which results differ."""
        return [d for d in range(self.depth, len(self.strides)) if self.strides[d]]

    @property
    def entry(self) -> str:
        """What is added to: a number, or one of as many as there are results at a time."""
        sizes = [self.sizes[d] for d in self.kept]
        places = [f"i{d} * {stride}L" for d, stride in zip(self.kept, contiguous(sizes), strict=True)]
        return f"{self.name}[{' + '.join(places)}]" if places else self.name

    def begin(self) -> str:
        """Before the loop that sums up."""
        start, *_ = REDUCTIONS[self.kind]
        size = f"[{math.prod(self.sizes[d] for d in self.kept)}]" if self.kept else ""
        return f"{self.ctype} {self.name}{size};\n{self._for_each(f'{self.entry} = {start};')}"

    def add(self, entry: str) -> str:
        """Inside it."""
        _, combine, _ = REDUCTIONS[self.kind]
        return f"{self.entry} = {combine.format(self.entry, entry)};"

    def end(self) -> str:
        """After it."""
        where = index_along(self.strides, 0)
        return self._for_each(f"{self.target}[{where}] = {self.entry};")

    def _for_each(self, statement: str) -> str:
        return loops_over([(d, self.sizes[d]) for d in self.kept], [statement], "") if self.kept else statement


def nest_with_sums(dims: Sequence[int], body: list[str], sums: Sequence[Sum]) -> str:
    """Nested loops, of which the innermost is a vector loop, with sums that are begun and ended around some of them."""
    lines, ends = [], []
    for depth in range(len(dims) + 1):
        here = [one for one in sums if one.depth == depth]
        lines += [one.begin() for one in here]
        ends.append([one.end() for one in here])
        if depth == len(dims) - 1:
            inside = [one for one in sums if one.depth <= depth and not one.kept]
            clauses = [f"reduction({REDUCTIONS[one.kind][2]}:{one.name})" for one in inside]
            lines.append(f"#pragma omp simd {' '.join(clauses)}\n")
        if depth < len(dims):
            lines.append(f"for (long i{depth} = 0; i{depth} < {dims[depth]}; i{depth}++) {{")
    lines += [*body, *ends.pop()]
    while ends:
        lines += ["}", *ends.pop()]
    return "\n".join(lines)
