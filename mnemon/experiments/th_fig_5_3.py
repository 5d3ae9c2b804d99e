"""Thesis figure 5.3: previous task accuracy, three distributions."""

from typing import Any

from ._contract import Experiment
from ._lifelong import FIGURE_DISTRIBUTIONS, FIVE, bars, presets, table


def draw(content: dict[str, Any]) -> Any:
    """A bar for each entry: what is left of the levels before the last."""
    return bars(content, "previous", "previous task accuracy")


EXPERIMENT = Experiment(
    id="th-fig-5.3",
    source="thesis figure 5.3",
    shows="accuracy on earlier levels after the last that was trained, five networks on three distributions",
    published="with GEM far above the same network without; small-lstm-gem-net2net close to large-lstm-gem and far "
    "above large-lstm",
    presets=presets(FIVE, FIGURE_DISTRIBUTIONS, "with GEM far above without"),
    table=table,
    draw=draw,
)
