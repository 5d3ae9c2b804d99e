"""A cell made of cells."""

import itertools
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._errors import require
from ._contract import AbstractCell, Key


class Stack(AbstractCell[tuple, Any]):
    """Cells on top of each other: each one's output at a step is the next one's input at the same step.

    >>> import jax
    >>> from mnemon.cells import GRU, LSTM
    >>> lower, upper = jax.random.split(jax.random.key(0))
    >>> cell = Stack(LSTM(3, 7, key=lower), GRU(7, 5, key=upper))
    >>> state, y = cell(cell.init_state(), jax.numpy.ones(3))
    >>> y.shape
    (5,)
    """

    cells: tuple[AbstractCell, ...]
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def __init__(self, *cells: AbstractCell):
        require(len(cells) >= 1, "cells", cells, "at least one cell", "Stack(LSTM(3, 7, key=k), GRU(7, 5, key=k))")
        for below, above in itertools.pairwise(cells):
            require(
                above.input_size == below.output_size,
                "input_size",
                above.input_size,
                f"the output size of the cell below, {below.output_size}",
                f"{type(above).__name__}({below.output_size}, ...)",
            )
        self.cells = cells
        self.input_size, self.output_size = cells[0].input_size, cells[-1].output_size

    def prepare(self) -> "Stack":
        return Stack(*(cell.prepare() for cell in self.cells))

    def recurrent_matrices(self) -> tuple[Array, ...]:
        return tuple(matrix for cell in self.cells for matrix in cell.recurrent_matrices())

    def axes(self) -> dict[str, Any]:
        """Sizes inside the stack are `a`, `b`, ... from below."""
        letters, below, parts = iter("abcdefgijklmnopqrstuvwyz"), "x", []
        for n, cell in enumerate(self.cells):
            axes = cell.axes()
            if not axes:
                return {}
            above = "h" if n == len(self.cells) - 1 else next(letters)
            names = {name: next(letters) for name in sorted(_letters(axes) - set("xh."))} | {"x": below, "h": above}
            parts.append(_renamed(axes, names | {old.upper(): new.upper() for old, new in names.items()}))
            below = above
        return {"cells": tuple(parts), "input_size": "x", "output_size": "h"}

    def statistics(self, state: tuple) -> tuple:
        return tuple(cell.statistics(part) for cell, part in zip(self.cells, state, strict=True))

    def with_statistics(self, collected: tuple) -> "Stack":
        return Stack(*(cell.with_statistics(part) for cell, part in zip(self.cells, collected, strict=True)))

    def init_state(self) -> tuple:
        return tuple(cell.init_state() for cell in self.cells)

    def drive(self, x: Float[Array, " input"]) -> Any:
        return self.cells[0].drive(x)

    def step(self, state: tuple, drive: Any, *, key: Key = None) -> tuple[tuple, Float[Array, " output"]]:
        keys = [None] * len(self.cells) if key is None else [jax.random.fold_in(key, n) for n in range(len(self.cells))]
        after, output = self.cells[0].step(state[0], drive, key=keys[0])
        states = [after]
        for cell, before, cell_key in zip(self.cells[1:], state[1:], keys[1:], strict=True):
            after, output = cell.step(before, cell.drive(output), key=cell_key)
            states.append(after)
        return tuple(states), output


def _letters(axes: dict[str, Any]) -> set[str]:
    return {letter.lower() for word in jax.tree.leaves(axes) for letter in word if letter != " "}


def _renamed(axes: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return jax.tree.map(lambda word: word.translate(str.maketrans(names)), axes)
