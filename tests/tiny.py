"""Tiny cells, all sizes different, for the tests that run over every registered cell."""

from typing import Any

import jax

from mnemon.cells import CELLS, AbstractCell, make_cell

INPUT = 3
_DEFAULT: dict[str, Any] = {"hidden_size": 5}
# Cells with more sizes than a hidden size; a cell that is not here is made with the default.
_OPTIONS: dict[str, dict[str, Any]] = {
    "bn-lstm": {"hidden_size": 5, "max_steps": 6},
    "nru": {"hidden_size": 5, "memory_size": 16, "heads": 4},
    "eurnn": {"hidden_size": 8},
    "goru": {"hidden_size": 8},
    "sru": {"hidden_size": 5, "statistics_size": 4, "recurrent_size": 2, "alphas": (0.0, 0.9)},
}


def tiny_options(name: str) -> dict[str, Any]:
    """Options of a tiny version of a registered cell."""
    return _OPTIONS.get(name, _DEFAULT)


def tiny_cell(name: str, seed: int = 0) -> AbstractCell:
    """A tiny version of a registered cell."""
    return make_cell(name, INPUT, horizon=20, key=jax.random.key(seed), **tiny_options(name))


NAMES = sorted(CELLS)
