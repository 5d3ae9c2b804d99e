"""The three task distributions of the lifelong benchmark (thesis 5.3.1-5.3.3), 20 levels each."""

import dataclasses
from collections.abc import Callable, Mapping

from .._errors import require, unknown
from ..tasks import AbstractTask, AssociativeRecall, NTMCopy, StrokeMNIST

LEVELS = 20


@dataclasses.dataclass(frozen=True)
class Distribution:
    """Tasks of one kind, from easy to hard, and what it takes to pass one.

    >>> copy = distribution("copy")
    >>> copy.length(1), copy.length(20), copy.threshold
    (5, 62, 0.8)
    >>> copy.task(2).horizon  # 8 rows, the delimiter, 8 rows
    17
    """

    name: str
    unit: str  # what the length of a level counts
    first: int  # length of level 1
    step: int  # how much longer each level is than the one before
    threshold: float  # the accuracy that passes a level
    make: Callable[[int], AbstractTask]  # the task of a length
    accuracy: Callable[[AbstractTask, Mapping[str, float]], float]  # of a task, from its metrics

    def length(self, level: int) -> int:
        """The length of a level; levels count from 1."""
        require(1 <= level <= LEVELS, "level", level, f"one of the {LEVELS} levels of {self.name}", "level=1")
        return self.first + self.step * (level - 1)

    def task(self, level: int) -> AbstractTask:
        """The task of a level."""
        return self.make(self.length(level))


def right_bits(task: AbstractTask, metrics: Mapping[str, float]) -> float:
    """The share of bits that are right, from how many of a sequence are wrong."""
    return 1.0 - metrics["bit_error"] / task.chance["bit_error"] / 2.0


def right_digits(task: AbstractTask, metrics: Mapping[str, float]) -> float:
    """The share of digits that are right."""
    del task
    return 1.0 - metrics["digit_error"]


DISTRIBUTIONS: dict[str, Distribution] = {
    entry.name: entry
    for entry in (
        Distribution(
            "copy",
            "rows",
            first=5,
            step=3,
            threshold=0.80,
            make=lambda rows: NTMCopy(bits=7, min_length=rows, max_length=rows),
            accuracy=right_bits,
        ),
        Distribution(
            "associative-recall",
            "items",
            first=5,
            step=3,
            threshold=0.75,
            make=lambda items: AssociativeRecall(bits=8, item_length=3, min_items=items, max_items=items),
            accuracy=right_bits,
        ),
        # Without feedback of the digits named, as in the authors' code: then the stream that is trained on and fresh
        # data are the same task, and one accuracy serves to pass a level and to compare levels.
        Distribution(
            "stroke-mnist",
            "digits",
            first=1,
            step=1,
            threshold=0.75,
            make=lambda digits: StrokeMNIST(digits=digits, feed_back=False),
            accuracy=right_digits,
        ),
    )
}


def distribution(name: str) -> Distribution:
    """A distribution by name."""
    if name not in DISTRIBUTIONS:
        raise unknown("distribution", name, DISTRIBUTIONS)
    return DISTRIBUTIONS[name]
