"""What an oracle is."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mnemon.cells import AbstractCell


@dataclasses.dataclass(frozen=True)
class Case:
    """A cell to make, and the slow, obvious float64 NumPy function of its equations.

    `oracle(cell, xs)` gets the cell with float64 NumPy parameters and one sequence [time, input], and returns the
    outputs [time, output] of the deterministic cell.
    """

    name: str
    make: Callable[[Any], AbstractCell]  # from a key
    oracle: Callable[[Any, np.ndarray], np.ndarray]


class Stop:
    """`stop(value)` in an oracle is a stop-gradient.

    Finite differences run the oracle at moved parameters; there it plays back the values of the unmoved run.
    """

    def __init__(self):
        self._recorded: list[np.ndarray] = []
        self._played: Iterator[np.ndarray] | None = None

    def record(self) -> None:
        """Begin the unmoved run."""
        self._recorded, self._played = [], None

    def play_back(self) -> None:
        """Begin a moved run."""
        self._played = iter(self._recorded)

    def __call__(self, value: np.ndarray) -> np.ndarray:
        if self._played is not None:
            return next(self._played)
        self._recorded.append(value)
        return value


stop = Stop()


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-x))


def layer_norm(x: np.ndarray, gain: np.ndarray | float = 1.0, shift: np.ndarray | float = 0.0, eps: float = 1e-5):
    """Layer normalisation of one vector."""
    return gain * (x - x.mean()) / np.sqrt(x.var() + eps) + shift
