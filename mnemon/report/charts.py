"""Vega-Lite charts of curves and traces."""

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from ..lens.trace import Trace

Chart = Any  # an Altair chart; its classes are made at run time and are no types
# A heat map of more rows than this cannot be read; the rows that vary most are kept.
_MOST_ROWS = 80
_FONT = "system-ui, sans-serif"


def themed(chart: Chart) -> Chart:
    """The look that all charts share."""
    return (
        chart.configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(
            grid=False,
            labelColor="#444",
            titleColor="#444",
            titleFontWeight="normal",
            domainColor="#bbb",
            tickColor="#bbb",
        )
        .configure_title(anchor="start", fontWeight=600, fontSize=13)
    )


def learning_curves(curves: pl.DataFrame, baseline: float, metric: str = "loss") -> Chart:
    """One line a run (columns `run`, `step`, `metric`), and the score without a memory as a rule."""
    lines = (
        alt.Chart(curves)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title="updates", axis=alt.Axis(format="~s")),
            y=alt.Y(f"{metric}:Q", title=metric),
            color=alt.Color("run:N", title=None, scale=alt.Scale(scheme="tableau10")),
            tooltip=["run", "step", alt.Tooltip(f"{metric}:Q", format=".4f")],
        )
    )
    level = pl.DataFrame({"level": [baseline], "name": ["without a memory"]})
    rule = alt.Chart(level).mark_rule(strokeDash=[5, 4], color="#888").encode(y="level:Q")
    label = (
        alt.Chart(level)
        .mark_text(align="right", dy=-7, color="#888", fontSize=11)
        .encode(y="level:Q", x=alt.value(620), text="name:N")
    )
    return (rule + label + lines).properties(width=620, height=280)


def heat_map(values: np.ndarray, labels: list[str], title: str) -> Chart:
    """One state array over time: [time, ...] with the rest flattened to rows; `labels` name the steps."""
    rows = values.reshape(len(values), -1).astype(float)
    if rows.shape[1] > _MOST_ROWS:
        kept = np.sort(np.argsort(-rows.std(axis=0), kind="stable")[:_MOST_ROWS])
        title += f" (the {_MOST_ROWS} of {rows.shape[1]} entries that vary most)"
        rows = rows[:, kept]
    time, unit = np.meshgrid(np.arange(rows.shape[0]), np.arange(rows.shape[1]), indexing="ij")
    frame = pl.DataFrame({"time": time.ravel(), "entry": unit.ravel(), "value": rows.ravel()})
    most = float(np.abs(rows).max()) or 1.0
    return (
        alt.Chart(frame, title=title)
        .mark_rect()
        .encode(
            x=alt.X("time:O", title=None, axis=_step_axis(labels)),
            y=alt.Y("entry:O", title=None, axis=None),
            color=alt.Color(
                "value:Q",
                scale=alt.Scale(scheme="blueorange", domain=[-most, most]),
                legend=alt.Legend(title=None),
            ),
            tooltip=["time", "entry", alt.Tooltip("value:Q", format=".3f")],
        )
        .properties(width=620, height=max(60, min(260, 4 * rows.shape[1])))
    )


def change_of_state(traced: Trace, labels: list[str]) -> Chart:
    """How far each part of the state moves at each step (thesis figure 4.2, for any cell)."""
    frames = []
    for name, values in traced.state.items():
        flat = values.reshape(len(values), -1).astype(float)
        moved = np.linalg.norm(np.diff(flat, axis=0, prepend=np.zeros_like(flat[:1])), axis=1)
        frames.append(pl.DataFrame({"time": np.arange(len(moved)), "change": moved, "part": [name] * len(moved)}))
    return (
        alt.Chart(pl.concat(frames), title="how far the state moves at each step")
        .mark_line(point=alt.OverlayMarkDef(size=14), strokeWidth=1.5)
        .encode(
            x=alt.X("time:O", title=None, axis=_step_axis(labels)),
            y=alt.Y("change:Q", title="change"),
            color=alt.Color("part:N", title=None, scale=alt.Scale(scheme="tableau10")),
            tooltip=["part", "time", alt.Tooltip("change:Q", format=".3f")],
        )
        .properties(width=620, height=150)
    )


def _step_axis(labels: list[str]) -> alt.Axis:
    """An axis that shows the symbols read at each step."""
    texts = "[" + ",".join(repr(label) for label in labels) + "]"
    return alt.Axis(labelExpr=f"{texts}[datum.value]", labelAngle=0, labelFontSize=10, ticks=False, labelOverlap=False)
