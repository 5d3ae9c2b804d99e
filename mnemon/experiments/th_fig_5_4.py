"""Thesis figure 5.4: future task accuracy, three distributions."""

from typing import Any

from ._contract import Experiment
from ._lifelong import FIGURE_DISTRIBUTIONS, FIVE, bars, presets, table


def draw(content: dict[str, Any]) -> Any:
    """A bar for each entry: what is known of the levels after the last."""
    return bars(content, "future", "future task accuracy")


EXPERIMENT = Experiment(
    id="th-fig-5.4",
    source="thesis figure 5.4",
    shows="accuracy on later levels after the last that was trained, five networks on three distributions",
    published="small-lstm-gem-net2net at least as good as large-lstm-gem, and better than large-lstm on copy",
    presets=presets(FIVE, FIGURE_DISTRIBUTIONS, "net2net >= large-lstm-gem"),
    table=table,
    draw=draw,
)
