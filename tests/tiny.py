"""Tiny cells, all sizes different, for the tests that run over every registered cell."""

import functools
from typing import Any

import equinox as eqx
import jax

from mnemon.cells import CELLS, AbstractCell, make_cell

INPUT = 3
_DEFAULT: dict[str, Any] = {"hidden_size": 5}
# Cells with more sizes than a hidden size; a cell that is not here is made with the default.
_OPTIONS: dict[str, dict[str, Any]] = {
    "dntm": {"hidden_size": 5, "memory_slots": 7, "address_size": 2, "word_size": 4, "hops": 2},
    "dntm-discrete": {"hidden_size": 5, "memory_slots": 7, "address_size": 2, "word_size": 4},
    "tardis": {"hidden_size": 6, "memory_slots": 4, "address_size": 2, "word_size": 5, "addressing_size": 7},
    "tardis-reinforce": {
        "hidden_size": 6,
        "memory_slots": 4,
        "address_size": 2,
        "word_size": 5,
        "addressing_size": 7,
    },
    "bn-lstm": {"hidden_size": 5, "max_steps": 6},
    "dnc": {"hidden_size": 5, "layers": 2, "memory_slots": 6, "word_size": 4, "read_heads": 2},
    "ntm": {
        "hidden_size": 5,
        "layers": 2,
        "memory_slots": 8,
        "word_size": 4,
        "read_heads": 2,
        "write_heads": 1,
    },
    "nutm": {
        "hidden_size": 5,
        "programs": 3,
        "key_size": 6,
        "memory_slots": 8,
        "word_size": 4,
        "read_heads": 2,
    },
    "nru": {"hidden_size": 5, "memory_size": 16, "heads": 4},
    "eurnn": {"hidden_size": 8},
    "goru": {"hidden_size": 8},
    "sru": {"hidden_size": 5, "statistics_size": 4, "recurrent_size": 2, "alphas": (0.0, 0.9)},
    "associative": {"hidden_size": 5, "key_size": 4},
    "associative-delta": {"hidden_size": 5, "key_size": 4},
    "gated-fast-weights": {"hidden_size": 5, "slow_size": 4, "slow_layer_size": 7},
    "hyper-lstm": {"hidden_size": 5, "hyper_size": 7, "hyper_embedding_size": 2},
    "sam": {"hidden_size": 5, "memory_slots": 11, "word_size": 4, "heads": 2, "top_k": 3},
    "sdnc": {"hidden_size": 5, "memory_slots": 11, "word_size": 4, "read_heads": 2, "top_k": 3, "links": 6},
}


def tiny_options(name: str) -> dict[str, Any]:
    """Options of a tiny version of a registered cell."""
    return _OPTIONS.get(name, _DEFAULT)


@functools.cache
def tiny_cell(name: str, seed: int = 0) -> AbstractCell:
    """A tiny version of a registered cell; made by one compiled program, which is faster than its parts one by one."""
    make = eqx.filter_jit(lambda key: make_cell(name, INPUT, horizon=20, key=key, **tiny_options(name)))
    return make(jax.random.key(seed))


NAMES = sorted(CELLS)
