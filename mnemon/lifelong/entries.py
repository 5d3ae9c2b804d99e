"""What can be entered in the lifelong benchmark: the five networks of the thesis (5.5.1), any cell, any method."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from .._errors import unknown
from ..cells import CELLS, is_cell
from ..training.objectives import AbstractObjective
from .ewc import EWC
from .gem import GEM, AverageGEM
from .memory import EpisodicMemory


@dataclasses.dataclass(frozen=True)
class Entry:
    """A network and what it does about forgetting and about its capacity."""

    cell: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the cell
    method: str = "none"
    sizes: tuple[int, ...] = ()  # the hidden sizes to grow to, one at each failure


def _lstm(units: int, method: str, sizes: tuple[int, ...] = ()) -> Entry:
    # The thesis's networks are those of PyTorch, which have no peepholes.
    return Entry("lstm", {"hidden_size": units, "peepholes": False}, method, sizes)


ENTRIES: dict[str, Entry] = {
    "small-lstm": _lstm(128, "none"),
    "small-lstm-gem": _lstm(128, "gem"),
    "small-lstm-gem-net2net": _lstm(128, "gem", (256,)),
    "large-lstm": _lstm(256, "none"),
    "large-lstm-gem": _lstm(256, "gem"),
}


def entry(name: str) -> Entry:
    """A named entry, or any cell as it is.

    >>> entry("small-lstm-gem-net2net").sizes
    (256,)
    >>> entry("nru")
    Entry(cell='nru', options={}, method='none', sizes=())
    """
    if name in ENTRIES:
        return ENTRIES[name]
    if not is_cell(name):
        raise unknown("entry", name, [*ENTRIES, *CELLS])
    return Entry(name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """What the methods can be told; each takes what concerns it."""

    slots: int = 10
    capacity: int | None = None
    margin: float = 0.5
    strength: float = 1000.0

    def memory(self) -> EpisodicMemory:
        """An empty memory."""
        return EpisodicMemory(slots=self.slots, capacity=self.capacity)


METHODS: dict[str, Callable[[AbstractObjective, MethodOptions], AbstractObjective]] = {
    "none": lambda inner, options: inner,
    "gem": lambda inner, options: GEM(inner=inner, memory=options.memory(), margin=options.margin),
    "a-gem": lambda inner, options: AverageGEM(inner=inner, memory=options.memory()),
    "ewc": lambda inner, options: EWC(inner=inner, strength=options.strength),
}


def make_method(name: str, inner: AbstractObjective, options: MethodOptions) -> AbstractObjective:
    """The objective of a method around what is minimised."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name](inner, options)
