"""Where the values of a loop are in memory."""

import collections
from typing import NamedTuple

import numpy as np

from ._graph import Value
from ._layout import View, c_type, contiguous, rounded
from ._schedule import Schedule


class Copy(NamedTuple):
    """A value to be written to an address once all kernels of a step are done."""

    value: Value
    target: str


class Places:
    """Inputs and outputs where XLA has them, the rest in one block of memory, reused as soon as it is free."""

    def __init__(self, schedule: Schedule):
        self.schedule, self.loop = schedule, schedule.loop
        self.size = 0  # bytes of the block
        self.address: dict[Value, str] = {}
        self.spares: list[str] = []  # declarations of memory for what is carried
        self.copies: list[Copy] = []
        self.after: list[str] = []  # where what is carried is after a step
        for n, value in enumerate(self.loop.fixed):
            self.address[value] = f"fixed{n}"
        for n, value in enumerate(self.loop.stepped):
            self.address[value] = f"(stepped{n} + t * {value.size}L)"
        for n, value in enumerate(self.loop.carried):
            self.address[value] = f"carried{n}"
        # A carried value that is stacked as well lives in the stack: a step puts the next one where it belongs.
        stacked = self.loop.stacked
        self.homes = {value: stacked.index(value) for value in self.loop.carried if value in stacked}
        self._place_carried()
        self._place_stacked()
        self._place_rest()

    def _place_carried(self) -> None:
        stacked = self.loop.stacked
        for n, (before, after) in enumerate(zip(self.loop.carried, self.loop.next_carried, strict=True)):
            if before in self.homes:
                self.after.append(f"(last ? out_carried{n} : stacked{self.homes[before]} + next * {before.size}L)")
            elif after is before or self._stays(after):
                self.after.append(self.address[self.schedule.views[after].root])
                continue
            elif after in stacked and self._placeable(after):
                self.after.append(f"(stacked{stacked.index(after)} + t * {after.size}L)")
            else:
                self.after.append(f"(spare{n} + (n & 1) * {before.size}L)")
                start, self.size = self.size, self.size + rounded(before.size * 2 * np.dtype(before.dtype).itemsize)
                self.spares.append(f"{c_type(before)} *spare{n} = ({c_type(before)} *)(memory + {start}L);")
            self._put(after, self.after[-1])

    def _place_stacked(self) -> None:
        for n, value in enumerate(self.loop.stacked):
            target = f"(stacked{n} + t * {value.size}L)"
            if self.homes.get(value) != n and self.address.get(value) != target:
                self._put(value, target)

    def _put(self, value: Value, target: str) -> None:
        if self._placeable(value):
            self.address[value] = target
        else:
            self.copies.append(Copy(value, target))

    def _placeable(self, value: Value) -> bool:
        """Whether its kernel can write it anywhere."""
        plain = View(value, value.shape, contiguous(value.shape), 0)
        free = value in self.schedule.stored and value not in self.address
        return free and self.schedule.views[value] == plain

    def _stays(self, value: Value) -> bool:
        """Whether what is carried can be left where it is: it is an input that does not change."""
        view = self.schedule.views.get(value)
        if view is None or view != View(view.root, value.shape, contiguous(value.shape), 0):
            return False
        return view.root in self.schedule.fixed or view.root in self.loop.stepped

    def _place_rest(self) -> None:
        schedule, kernels = self.schedule, len(self.schedule.kernels)
        end_of = [end for first, end, _ in schedule.groups for _ in range(first, end)]
        start_of = [first for first, end, _ in schedule.groups for _ in range(first, end)]
        together = [by_example for first, end, by_example in schedule.groups for _ in range(first, end)]
        last = {value: max(users) for value, users in schedule.users().items()}
        for value in (*self.loop.next_carried, *self.loop.stacked):
            if value.constant is None:
                last[schedule.views[value].root] = kernels
        free: list[tuple[int, int]] = []  # size, start
        begins: dict[int, list[Value]] = collections.defaultdict(list)
        ends: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
        for value in schedule.stored:
            if value not in self.address:
                made = schedule.made_by[value]
                begins[made if value in schedule.alone or not together[made] else start_of[made]].append(value)
        for index in range(kernels):
            for value in begins[index]:
                size = value.size // schedule.rows if value in schedule.alone else value.size
                need = rounded(size * value.dtype.itemsize)
                fitting = [block for block in free if need <= block[0] <= 2 * need]
                block = min(fitting) if fitting else (need, self.size)
                if fitting:
                    free.remove(block)
                else:
                    self.size += need
                self.address[value] = f"(({c_type(value)} *)(memory + {block[1]}L))"
                used = last.get(value, index)
                # Of other examples' values nothing may be overwritten while the group goes on.
                whole = used < kernels and together[used] and value not in schedule.alone
                ends[end_of[used] - 1 if whole else max(used, index)].append(block)
            free += ends[index]
