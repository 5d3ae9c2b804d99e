"""A ribbon over learning rates: in what window does a network learn to remember?"""

import statistics
from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training
from ._thesis import clip

CELLS = ("lstm", "gru", "janet", "nru", "rnn-orth", "fast-weights")
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)


def _arms(cells: tuple[str, ...], rates: tuple[float, ...], delay: int, updates: int) -> tuple[Arm, ...]:
    return tuple(
        Arm(
            f"{cell}-{rate:g}",
            Training(
                RunConfig(
                    "copying", cell, {"delay": delay}, steps=updates, lr=rate, clip=clip(cell), stop_when_solved=True
                )
            ),
            group=cell,
        )
        for cell in cells
        for rate in rates
    )


def _points(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "cell": arm["group"],
            "rate": float(name.removeprefix(f"{arm['group']}-")),
            "loss": result["last"]["loss"] / arm["baseline"],
            "solved": result["solved"],
        }
        for name, arm in content["arms"].items()
        for result in arm["seeds"].values()
    ]


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each cell: the learning rates at which it solved the task, and its best."""
    rows = []
    points = _points(content)
    for cell in dict.fromkeys(point["cell"] for point in points):
        own = [point for point in points if point["cell"] == cell]
        rates = sorted({point["rate"] for point in own})
        medians = {rate: statistics.median(p["loss"] for p in own if p["rate"] == rate) for rate in rates}
        solved = [f"{rate:g}" for rate in rates if any(p["solved"] for p in own if p["rate"] == rate)]
        best = min(medians, key=medians.__getitem__)
        rows.append(
            {
                "network": cell,
                "solved at": ", ".join(solved) or "none",
                "best learning rate": f"{best:g}",
                "its loss, as a share of that without a memory": f"{medians[best]:.3f}",
                **{f"at {rate:g}": f"{medians[rate]:.3f}" if medians[rate] < 100 else "explodes" for rate in rates},
            }
        )
    return rows


def draw(content: dict[str, Any]) -> Any:
    """The last loss over the learning rate: the median over seeds and a ribbon from the least to the largest."""
    import altair as alt
    import polars as pl

    data = pl.DataFrame(_points(content))
    base = alt.Chart(data).encode(
        x=alt.X("rate:Q", scale=alt.Scale(type="log"), title="learning rate", axis=alt.Axis(format="~e")),
        color=alt.Color("cell:N", scale=alt.Scale(scheme="tableau10"), legend=alt.Legend(title=None, symbolOpacity=1)),
    )
    scale = alt.Scale(domain=[0, 1.5], clamp=True)
    ribbon = base.mark_area(opacity=0.15).encode(y=alt.Y("min(loss):Q", scale=scale), y2="max(loss):Q")
    y = alt.Y("median(loss):Q", scale=scale, title="loss, of that without a memory")
    line = base.mark_line(point=True).encode(y=y)
    return (ribbon + line).properties(width=520, height=280, title=content["shows"])


EXPERIMENT = Experiment(
    id="lr-window",
    source="new; the warning is that of arXiv 2508.19029",
    shows="loss on copying memory over the learning rate",
    published="recurrent networks succeed on recall only in a narrow window of learning rates, so that comparisons at "
    "one rate mislead",
    presets={
        "smoke": Preset(_arms(("lstm",), (1e-3, 1e-2), 3, 20), 1, None, "T = 3, 20 updates: shows only that it runs"),
        "laptop": Preset(
            _arms(CELLS, RATES, 30, 6_000), 3, None, "T = 30, at most 6,000 updates, about 23,500 parameters"
        ),
        "paper": Preset(_arms(CELLS, RATES, 100, 50_000), 3, None, "T = 100, at most 50,000 updates"),
    },
    table=table,
    draw=draw,
)
