"""Thesis figure 5.5: accuracy on every level after training on every level."""

from typing import Any

from ._contract import Experiment
from ._lifelong import presets, results, table

SHOWN = ("small-lstm-gem-net2net", "large-lstm-gem", "large-lstm")


def draw(content: dict[str, Any]) -> Any:
    """A heat map for each entry and distribution, of the first seed; square, as in the thesis."""
    import altair as alt
    import polars as pl

    rows_of_panels = []
    for place in dict.fromkeys(where for where, *_ in results(content)):
        panels = [
            _heat_map(alt, pl, entry, r) for where, entry, seed, r in results(content) if (where, seed) == (place, "0")
        ]
        rows_of_panels.append(alt.hconcat(*panels, title=place))
    return alt.vconcat(*rows_of_panels)


def _heat_map(alt: Any, pl: Any, entry: str, result: dict[str, Any]) -> Any:
    trained = len(result["matrix"])
    cells = [
        {"trained": i, "evaluated": j, "accuracy": value}
        for i, row in enumerate(result["matrix"], start=1)
        for j, value in enumerate(row[:trained], start=1)
    ]
    return (
        alt.Chart(pl.DataFrame(cells), title=entry)
        .mark_rect()
        .encode(
            x=alt.X("trained:O", title="trained up to level"),
            y=alt.Y("evaluated:O", title="evaluated on level"),
            color=alt.Color("accuracy:Q", scale=alt.Scale(domain=[0.5, 1], clamp=True, scheme="viridis")),
        )
        .properties(width=200, height=200)
    )


EXPERIMENT = Experiment(
    id="th-fig-5.5",
    source="thesis figure 5.5",
    shows="accuracy on every level after training on every level, of the network that grows and of the large ones with "
    "and without GEM, on copy and stroke MNIST",
    published="large-lstm is good on the diagonal only; the two with GEM on all levels before it as well",
    presets=presets(SHOWN, ("copy", "stroke-mnist"), "with GEM: high below the diagonal too"),
    table=table,
    draw=draw,
)
