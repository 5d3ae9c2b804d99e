"""Thesis table 4.1: on how many of seven tasks each network is among the best one and two."""

import statistics
from typing import Any

from . import th_fig_4_1, th_fig_4_3, th_fig_4_5, th_table_4_2, th_table_4_3
from ._contract import Arm, Experiment, Preset, borrow

# Published number of tasks on which a network is best, and among the best two.
PUBLISHED = {
    "rnn-orth": (1, 1),
    "rnn-id": (1, 1),
    "lstm": (1, 1),
    "lstm-chrono": (1, 1),
    "gru": (1, 2),
    "janet": (1, 3),
    "sru": (1, 1),
    "eurnn": (2, 3),
    "goru": (0, 1),
    "nru": (4, 7),
}
_PARTS = (th_fig_4_1, th_fig_4_3, th_fig_4_5, th_table_4_2, th_table_4_3)


def _preset(name: str, note: str) -> Preset:
    arms: list[Arm] = []
    # Only the networks of the table, all trained alike; of the two lengths of MNIST the one that all are run on.
    other = "196-" if name == "paper" else "784-"
    variants = ("-amsgrad", th_table_4_3.WITHOUT_PEEPHOLES)
    for part in (th_fig_4_1, th_table_4_3) if name == "smoke" else _PARTS:
        arms += borrow(part.EXPERIMENT, name, lambda arm: not (arm.endswith(variants) or arm.startswith(other)))
    return Preset(tuple(arms), max(part.EXPERIMENT.presets[name].seeds for part in _PARTS), None, note)


def _quality(result: dict[str, Any]) -> tuple[float, ...]:
    """Less is better: the error on test data; else the updates to a solution; else the loss without one."""
    scores = result.get("scores") or {}
    if th_table_4_2.BITS in scores:
        return (scores[th_table_4_2.BITS],)
    if th_table_4_3.TEST in scores:
        return (-scores[th_table_4_3.TEST],)
    return (0.0, result["steps_to_solve"]) if result["solved"] else (1.0, result["last"]["loss"])


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """How often a network is first and among the first two, by the median over seeds."""
    tasks: dict[str, dict[str, tuple[float, ...]]] = {}
    for name, arm in content["arms"].items():
        if arm["seeds"]:
            task = arm["group"] or "char-lm"
            cell = name.removeprefix(f"{arm['group']}-")
            tasks.setdefault(task, {})[cell] = statistics.median_low(_quality(r) for r in arm["seeds"].values())
    ranks = {task: sorted(found, key=found.__getitem__) for task, found in tasks.items()}
    return [
        {
            "network": cell,
            "tasks": sum(cell in found for found in tasks.values()),
            "best": sum(rank[0] == cell for rank in ranks.values()),
            "best, published": best,
            "among the best two": sum(cell in rank[:2] for rank in ranks.values()),
            "among the best two, published": two,
        }
        for cell, (best, two) in PUBLISHED.items()
        if any(cell in found for found in tasks.values())
    ]


def draw(content: dict[str, Any]) -> Any:
    """Measured and published counts side by side."""
    import altair as alt
    import polars as pl

    rows = [
        {"network": row["network"], "place": place, "by": by, "tasks": row[place + end]}
        for row in table(content)
        for place in ("best", "among the best two")
        for by, end in (("measured", ""), ("published", ", published"))
    ]
    return (
        alt.Chart(pl.DataFrame(rows))
        .mark_bar()
        .encode(
            x=alt.X("network:N", sort=None, title=None),
            xOffset="by:N",
            y=alt.Y("tasks:Q", axis=alt.Axis(tickMinStep=1)),
            color=alt.Color("by:N", title=None, scale=alt.Scale(range=["#4c78a8", "#e45756"])),
            column=alt.Column("place:N", title=None, sort=None),
        )
        .properties(width=320, height=200)
    )


EXPERIMENT = Experiment(
    id="th-table-4.1",
    source="thesis table 4.1",
    shows="on how many of seven tasks a network is best, and among the best two; the runs are those of th-fig-4.1, "
    "th-fig-4.3, th-fig-4.5, th-table-4.2 and th-table-4.3",
    published="best, best two: " + ", ".join(f"{cell} {best}, {two}" for cell, (best, two) in PUBLISHED.items()),
    presets={
        "smoke": _preset("smoke", "the runs of two smoke presets: shows only that it works"),
        "laptop": _preset(
            "laptop",
            "the runs of the laptop presets; fewest updates to a solution is best, then the lowest loss; on real data "
            "the test score; no ties (the thesis has some, by a rule it does not state)",
        ),
        "paper": _preset("paper", "the thesis does not state its rule: here as for laptop"),
    },
    table=table,
    draw=draw,
)
