"""Vega-Lite charts of curves and traces."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from ..lens import Decomposition, Flow, top_singular_values
from ..lens.paths import shortest_path
from ..lens.trace import Trace

Chart = Any  # an Altair chart; its classes are made at run time and are no types
# A heat map of more rows than this cannot be read; the rows that vary most are kept.
_MOST_ROWS = 80
_ARC_POINTS = 16
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


def jacobian_decay(flow: Flow, title: str = "how the state depends on earlier states") -> Chart:
    """The largest singular value of d part_t1 / d part_t0 over the distance, with the bound of the largest step."""
    return decay({**flow.top, "bound": flow.bound}, flow.distances, title, dashed=("bound",))


def chain_and_memory(parts: Decomposition, title: str = "through the chain (Q) and through the memory (R)") -> Chart:
    """The largest singular values of Q, of R and of the part of R that the last step's read makes."""
    series = {"Q + R": parts.total, "Q": parts.chain, "R": parts.memory, "R by the last read": parts.direct}
    tops = {name: top_singular_values(matrices) for name, matrices in series.items()}
    return decay(tops, parts.end - parts.starts, title)


def decay(series: Mapping[str, np.ndarray], distances: np.ndarray, title: str, *, dashed: Sequence[str] = ()) -> Chart:
    """Lines over a distance in time, on a logarithmic scale; zeros are left out, as are lines of nothing else."""
    frames = [
        pl.DataFrame({"distance": distances, "value": np.asarray(values, float), "of": [name] * len(distances)})
        for name, values in series.items()
    ]
    frame = pl.concat(frames).filter((pl.col("value") > 0) & pl.col("value").is_finite())
    shown = frame.filter(~pl.col("of").is_in(list(dashed)))["value"]
    # Without limits a bound that grows would press everything else into the ground.
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.1, 10.0)  # pyright: ignore[reportArgumentType]
    scale = alt.Scale(type="log", domain=[low / 1.5, high * 1.5], clamp=True)
    return (
        alt.Chart(frame, title=title)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("distance:Q", title="steps between"),
            y=alt.Y("value:Q", title="largest singular value", scale=scale, axis=alt.Axis(format="~e")),
            color=alt.Color("of:N", title=None, sort=list(series), scale=alt.Scale(scheme="tableau10")),
            strokeDash=alt.condition(_one_of("of", dashed), alt.value([5, 4]), alt.value([1, 0])),
            tooltip=["of", "distance", alt.Tooltip("value:Q", format=".3e")],
        )
        .properties(width=620, height=240)
    )


def _one_of(field: str, names: Sequence[str]) -> alt.FieldOneOfPredicate:
    return alt.FieldOneOfPredicate(field=field, oneOf=list(names) or [""])


def read_arcs(sources: np.ndarray, labels: list[str], title: str = "what each step reads was written at") -> Chart:
    """Wormholes as arcs over the sequence; the shortest path from the last step to the first is drawn strong."""
    last = len(sources) - 1
    path = shortest_path(sources, 0, last) if last else [0]
    on_path = {(path[n], path[n + 1]) for n in range(len(path) - 1)}
    angles = np.linspace(0, np.pi, _ARC_POINTS)
    frames = []
    for step, source in enumerate(sources):
        hops = [(step, int(source))] if source >= 0 else []
        if (step, step - 1) in on_path and (step, step - 1) not in hops:
            hops.append((step, step - 1))
        for end, start in hops:
            middle, half = (end + start) / 2, (end - start) / 2
            arc = {"time": middle - half * np.cos(angles), "height": 2 * half * np.sin(angles), "order": angles}
            about = {"arc": f"{start}-{end}", "shortest path": (end, start) in on_path}
            frames.append(pl.DataFrame(arc).with_columns(**{name: pl.lit(value) for name, value in about.items()}))
    if not frames:
        frames = [pl.DataFrame({"time": [0.0], "height": [0.0], "order": [0.0], "arc": [""], "shortest path": [False]})]
    on = alt.datum["shortest path"]
    return (
        alt.Chart(pl.concat(frames), title=f"{title} ({len(path) - 1} connections from the last step to the first)")
        .mark_line()
        .encode(
            x=alt.X("time:Q", title=None, scale=alt.Scale(domain=[-0.5, last + 0.5]), axis=_numeric_step_axis(labels)),
            y=alt.Y("height:Q", title=None, axis=None),
            order="order:Q",
            detail="arc:N",
            color=alt.condition(on, alt.value("#d1495b"), alt.value("#7fa6c9")),
            opacity=alt.condition(on, alt.value(1.0), alt.value(0.45)),
            strokeWidth=alt.condition(on, alt.value(2.0), alt.value(1.0)),
            tooltip=["arc"],
        )
        .properties(width=620, height=160)
    )


def _numeric_step_axis(labels: list[str]) -> alt.Axis:
    texts = "[" + ",".join(repr(label) for label in labels) + "]"
    return alt.Axis(
        values=list(range(len(labels))),
        labelExpr=f"{texts}[datum.value]",
        labelFontSize=10,
        ticks=False,
        labelOverlap=False,
    )


def _step_axis(labels: list[str]) -> alt.Axis:
    """An axis that shows the symbols read at each step."""
    texts = "[" + ",".join(repr(label) for label in labels) + "]"
    return alt.Axis(labelExpr=f"{texts}[datum.value]", labelAngle=0, labelFontSize=10, ticks=False, labelOverlap=False)
