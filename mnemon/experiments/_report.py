"""The table and the picture of stored results."""

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from .._files import write_atomically
from ..report.charts import Chart, themed
from ..report.files import markdown_table, save_chart, save_table
from ._registry import get_experiment
from ._results import read_results, result_rows


def write_report(name: str, results: Path) -> list[Path]:
    """Draw every stored preset of an experiment beside its data: the picture, the table, and both on one page."""
    experiment = get_experiment(name)
    folder = results / name
    written: list[Path] = []
    for preset, content in read_results(results, name).items():
        rows = (experiment.table or result_rows)(content)
        written += save_table(rows, folder, preset)
        written += save_chart(themed((experiment.draw or curves_chart)(content)), folder, preset)
        write_atomically(folder / f"{preset}.md", _markdown(content, rows))
    return written


def _markdown(content: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    source = content["provenance"]
    lines = [
        f"# {content['id']}, preset {content['preset']}",
        "",
        f"{content['source']}: {content['shows']}.",
        "",
        f"Published: {content['published']}.",
        f"This preset: {content['note']}.",
        "",
        f"![curves]({content['preset']}.svg)",
        "",
        markdown_table(rows),
        f"Made by `{source['command']}` at commit `{source['commit']}` on {source['machine']}, "
        + ", ".join(f"{name} {version}" for name, version in source["versions"].items())
        + f", {source['date']}.",
    ]
    return "\n".join(lines) + "\n"


def curves_chart(content: dict[str, Any], metric: str = "loss") -> Chart:
    """The learning curve of each arm: the median over seeds, and a band from the least to the largest."""
    frames = []
    for name, arm in content["arms"].items():
        for seed, result in arm["seeds"].items():
            curve = result.get("curve") or {}
            if curve:
                frame = pl.DataFrame(
                    {"step": [float(s) for s in curve["step"]], metric: [float(v) for v in curve[metric]]}
                )
                frames.append(frame.with_columns(arm=pl.lit(name), seed=pl.lit(seed)))
    data = pl.concat(frames)
    # Seeds may have been cut into other windows: bring them to one grid first.
    width = max(float(data["step"].max()) / 120, 1.0)  # pyright: ignore[reportArgumentType]
    data = (
        data.with_columns(((pl.col("step") / width).ceil() * width).alias("updates"))
        .group_by("arm", "updates")
        .agg(
            pl.col(metric).median().alias("median"),
            pl.col(metric).min().alias("low"),
            pl.col(metric).max().alias("high"),
        )
        .sort("arm", "updates")
    )
    baseline = max((arm.get("baseline", 0.0) for arm in content["arms"].values()), default=0.0)
    top = 1.5 * baseline if baseline else None
    scale = alt.Scale(domain=[0, top], clamp=True) if top else alt.Scale(zero=True)
    x = alt.X("updates:Q", axis=alt.Axis(format="~s"))
    color = alt.Color("arm:N", title=None, scale=alt.Scale(scheme="tableau10"))
    band = (
        alt.Chart(data)
        .mark_area(opacity=0.18)
        .encode(x, y=alt.Y("low:Q", scale=scale, title=metric), y2="high:Q", color=color)
    )
    line = alt.Chart(data).mark_line(strokeWidth=2).encode(x, y=alt.Y("median:Q", scale=scale), color=color)
    rule = alt.Chart(pl.DataFrame({"y": [baseline]})).mark_rule(strokeDash=[5, 4], color="#888").encode(y="y:Q")
    return (rule + band + line).properties(width=560, height=300, title=content["source"])
