"""Thesis figure 5.1: an LSTM that learns stroke MNIST level by level fits the length of its sequences."""

from typing import Any

from ._contract import Experiment
from ._lifelong import presets, results, table


def draw(content: dict[str, Any]) -> Any:
    """After each level: accuracy on the levels before, on the level itself, and on those after."""
    import altair as alt
    import polars as pl

    kinds = {"previous_by_level": "levels before", "current": "this level", "future_by_level": "levels after"}
    rows = [
        {"level": level, "accuracy": value, "on": name, "seed": seed}
        for _, _, seed, result in results(content)
        for metric, name in kinds.items()
        for level, value in enumerate(result[metric], start=1)
        if value is not None
    ]
    return (
        alt.Chart(pl.DataFrame(rows, schema={"level": int, "accuracy": float, "on": str, "seed": str}))
        .mark_line(point=True)
        .encode(
            x=alt.X("level:O", title="level that was learned last"),
            y=alt.Y("accuracy:Q", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("on:N", title="accuracy on", sort=list(kinds.values())),
            detail="seed:N",
        )
        .properties(width=420, height=240)
    )


EXPERIMENT = Experiment(
    id="th-fig-5.1",
    source="thesis figure 5.1",
    shows="accuracy of an LSTM of 128 units on earlier, current and later levels of stroke MNIST as it learns them",
    published="high on the current level, low on all others: the network fits the length of the sequences",
    presets=presets(("small-lstm",), ("stroke-mnist",), "high on the current level only"),
    table=table,
    draw=draw,
)
