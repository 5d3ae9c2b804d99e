"""What the experiments on graphs share: lessons, networks, scores."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Score, Training

FINAL = "final lesson %"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def graph_arms(
    task: str,
    nets: dict[str, dict[str, Any]],
    numbers: dict[str, dict[str, float]],
    *,
    lessons: int,
    updates: int,
    batch: int,
    check_every: int,
    lr: float,
    optimizer: str = "adam",
    final: int,
    held_out: dict[str, dict[str, Any]],
    metric: str = "sequences",
    episodes: int | None = None,
    clip: float = 10.0,
    lesson_options: Mapping[str, tuple[str, ...]] = _NOTHING,
    tested_with: Mapping[str, dict[str, Any]] = _NOTHING,
) -> tuple[Arm, ...]:
    """DNC and LSTM taught lesson by lesson; scored on the last lesson of all and on graphs that are never taught.

    `lesson_options` are those of cells in later lessons, `tested_with` those that they are scored with: a memory that
    holds the graphs.
    """
    count = 200 if episodes is None else episodes
    tests = {FINAL: {"lesson": final}, **held_out}

    def scores(cell: str) -> dict[str, Score]:
        other = tested_with.get(cell, {})
        return {name: Score(metric, test, count, 50, unit="%", cell_options=other) for name, test in tests.items()}

    return tuple(
        Arm(
            cell,
            Training(
                RunConfig(
                    task,
                    cell,
                    cell_options=options,
                    steps=updates,
                    batch=batch,
                    lr=lr,
                    optimizer=optimizer,
                    clip=clip,
                    log_every=check_every,
                    validation_episodes=episodes,
                    lessons=lessons,
                    lesson_options=lesson_options.get(cell, ()),
                ),
                scores(cell),
            ),
            numbers=numbers.get(cell, {}),
        )
        for cell, options in nets.items()
    )


def dnc(hidden_size: int, memory_slots: int, word_size: int, read_heads: int, layers: int = 1) -> dict[str, Any]:
    """The options of a DNC."""
    return {
        "hidden_size": hidden_size,
        "memory_slots": memory_slots,
        "word_size": word_size,
        "read_heads": read_heads,
        "layers": layers,
    }


TINY_DNC = {"dnc": dnc(4, 5, 3, 2)}
TINY_LSTM: dict[str, dict[str, Any]] = {"lstm": {"hidden_size": 4}}
