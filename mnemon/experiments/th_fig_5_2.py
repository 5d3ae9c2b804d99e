"""Thesis figure 5.2: current task accuracy level by level, three distributions."""

from typing import Any

from ._contract import Experiment
from ._lifelong import FIGURE_DISTRIBUTIONS, FIVE, presets, results, table


def draw(content: dict[str, Any]) -> Any:
    """A line for each run, a panel for each distribution; dashed where a network grew."""
    import altair as alt
    import polars as pl

    rows = [
        {"distribution": where, "entry": entry, "seed": seed, "level": level, "accuracy": value}
        for where, entry, seed, result in results(content)
        for level, value in enumerate(result["current"], start=1)
    ]
    grown = [
        {"distribution": where, "level": int(level)}
        for where, _, _, result in results(content)
        for level in result["expanded"]
    ]
    data = pl.DataFrame(rows)
    growth = pl.DataFrame(grown, schema={"distribution": str, "level": int})
    panels = []
    for place in data["distribution"].unique(maintain_order=True):
        here = data.filter(pl.col("distribution") == place)
        x = alt.X("level:Q", axis=alt.Axis(values=sorted(set(here["level"])), format="d"))
        line = (
            alt.Chart(here)
            .mark_line(point=True)
            .encode(
                x=x,
                y=alt.Y("accuracy:Q", title="current task accuracy", scale=alt.Scale(domain=[0.4, 1], clamp=True)),
                color=alt.Color("entry:N", title=None, sort=list(FIVE)),
                detail="seed:N",
            )
        )
        rule = (
            alt.Chart(growth.filter(pl.col("distribution") == place).unique())
            .mark_rule(strokeDash=[4, 4], color="blue")
            .encode(x=x)
        )
        panels.append((line + rule).properties(width=240, height=220, title=place))
    return alt.hconcat(*panels)


EXPERIMENT = Experiment(
    id="th-fig-5.2",
    source="thesis figure 5.2",
    shows="accuracy on the current level of copy, associative recall and stroke MNIST, and how many levels are "
    "cleared, of small and large LSTMs without and with GEM, and of one that grows",
    published="small-lstm-gem-net2net clears as many levels as large-lstm-gem or more; large-lstm clears the most",
    presets=presets(FIVE, FIGURE_DISTRIBUTIONS, "levels: net2net >= large-lstm-gem, large-lstm > large-lstm-gem"),
    table=table,
    draw=draw,
)
