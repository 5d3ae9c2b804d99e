"""The table and the picture of stored results."""

import statistics
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from .._errors import MnemonError
from .._files import write_atomically
from .._provenance import in_words
from ..report.charts import Chart, themed
from ..report.files import markdown_table, save_chart, save_table
from ._contract import Experiment
from ._estimate import as_time
from ._registry import get_experiment
from ._results import read_results, result_rows
from ._runner import chosen_runs

# A curve of a seed that goes beyond so many times the largest median is cut.
_EXPLODES_ABOVE = 3.0
# More arms than this have colours of a larger set, which are harder to tell apart.
_FEW_COLOURS = 10


def write_report(name: str, results: Path) -> list[Path]:
    """Draw every stored preset of an experiment beside its data: the picture, the table, and both on one page."""
    experiment = get_experiment(name)
    folder = results / name
    written: list[Path] = []
    for preset, content in read_results(results, name).items():
        done = {arm: about for arm, about in content["arms"].items() if about["seeds"]}
        missing = [arm for arm in content["arms"] if arm not in done]
        content["arms"] = done
        if not done:
            raise MnemonError(f"{folder / preset}.json holds no results; make them with `mnemon reproduce {name}`")
        rows = (experiment.table or result_rows)(content)
        written += save_table(rows, folder, preset)
        written += save_chart(themed((experiment.draw or default_chart)(content)), folder, preset)
        write_atomically(folder / f"{preset}.md", _markdown(content, rows, missing, _cost(experiment, content)))
    return written


def _cost(experiment: Experiment, content: dict[str, Any]) -> str:
    """How many of the preset's runs there are, and what one of them costs."""
    wanted = len(chosen_runs(experiment, content["preset"], None, ()))
    runs = [result for arm in content["arms"].values() if "beside" not in arm for result in arm["seeds"].values()]
    seconds = [result["seconds"] for result in runs if "seconds" in result]
    took = f"; a run took {as_time(min(seconds))} to {as_time(max(seconds))}" if seconds else ""
    return f"Runs: {len(runs)} of {wanted}{took}."


def _markdown(content: dict[str, Any], rows: list[dict[str, Any]], missing: list[str], cost: str) -> str:
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
        f"{cost} Not run: {', '.join(missing)}." if missing else cost,
        "",
        *_sources(content),
    ]
    return "\n".join(lines) + "\n"


def _sources(content: dict[str, Any]) -> list[str]:
    """Where the runs come from; they need not have been made by one command."""
    made: dict[str, dict[str, list[str]]] = {}
    for name, arm in content["arms"].items():
        for seed, result in arm["seeds"].items():
            source = in_words(result.get("provenance", content["provenance"]))
            made.setdefault(source, {}).setdefault(name, []).append(seed)
    if len(made) == 1:
        return list(made)
    by_date = sorted(made.items(), key=lambda item: item[0].rpartition(", ")[2])
    runs = [", ".join(f"{arm} ({' '.join(seeds)})" for arm, seeds in arms.items()) for _, arms in by_date]
    return [f"- {names}: {source}" for names, (source, _) in zip(runs, by_date, strict=True)]


def default_chart(content: dict[str, Any]) -> Chart:
    """What was measured beside what is published, where there are scores; then the learning curves."""
    metrics = content.get("curves", ["loss"])
    drawn = {metric for arm in content["arms"].values() for r in arm["seeds"].values() for metric in r.get("curve", {})}
    charts = [scores_chart(content)] if _score_names(content) else []
    charts += [curves_chart(content, metric) for metric in metrics if metric in drawn]
    return alt.vconcat(*charts).resolve_scale(color="shared" if len(metrics) > 1 else "independent")


def _score_names(content: dict[str, Any]) -> list[str]:
    seeds = [result for arm in content["arms"].values() for result in arm["seeds"].values()]
    return list(dict.fromkeys(name for result in seeds for name in result.get("scores", {})))


def scores_chart(content: dict[str, Any]) -> Chart:
    """A panel for each score: a point for each arm at the median, a line over the seeds, a diamond at the published."""
    panels = []
    for score in _score_names(content):
        rows: list[dict[str, Any]] = []
        for name, arm in content["arms"].items():
            values = [result["scores"][score] for result in arm["seeds"].values() if score in result.get("scores", {})]
            measured = {"median": statistics.median(values), "low": min(values), "high": max(values)} if values else {}
            number = arm.get("numbers", {}).get(score)
            if values:
                rows.append({"arm": name, **measured, "published": None if number is None else float(number)})
        data = pl.DataFrame(rows, schema_overrides={"published": pl.Float64})
        y = alt.Y("arm:N", title=None, sort=None, axis=alt.Axis(labelLimit=240))
        scale = alt.Scale(zero=False, padding=12)
        base = alt.Chart(data, title=score).properties(width=260, height=alt.Step(18))
        spread = base.mark_rule(strokeWidth=2, color="#4c78a8").encode(
            x=alt.X("low:Q", title=None, scale=scale), x2="high:Q", y=y
        )
        point = base.mark_point(filled=True, size=55, color="#4c78a8").encode(x=alt.X("median:Q", scale=scale), y=y)
        mark = base.mark_point(shape="diamond", size=70, color="#e45756", strokeWidth=2)
        published = mark.encode(x=alt.X("published:Q", scale=scale), y=y)
        panels.append(spread + point + published)
    title = alt.TitleParams("measured (blue: median and range over seeds) and published (red)", fontSize=12)
    return alt.concat(*panels, columns=2, title=title)


def curves_chart(content: dict[str, Any], metric: str = "loss") -> Chart:
    """The learning curve of each arm: the median over seeds, a band from the least to the largest, a panel a group."""
    labels: dict[str, list[str]] = {}
    for name, arm in content["arms"].items():
        group = arm.get("group", "")
        labels.setdefault(group, []).append(_label(name, group))
    # Panels of other arms have legends of their own where one for all would run out of colours.
    names = {label for own in labels.values() for label in own}
    alike = len(names) <= _FEW_COLOURS or all(set(own) == names for own in labels.values())
    panels = [_curves_panel(content, metric, group) for group in labels]
    return alt.hconcat(*panels).resolve_scale(color="shared" if alike else "independent")


def _label(name: str, group: str) -> str:
    """The name of an arm within its panel."""
    return name.removeprefix(f"{group}-") if group else name


def _curves_panel(content: dict[str, Any], metric: str, group: str) -> Chart:
    arms = {name: arm for name, arm in content["arms"].items() if arm.get("group", "") == group}
    frames = []
    for name, arm in arms.items():
        curves = [c for result in arm["seeds"].values() if metric in (c := result.get("curve") or {})]
        longest = max((curve["step"] for curve in curves), key=lambda steps: steps[-1], default=[])
        label = _label(name, group)
        for curve in curves:
            # A run that ended early, solved, stays where it was: else the median would be that of the others alone.
            after = [step for step in longest if step > curve["step"][-1]]
            steps, values = [*curve["step"], *after], [*curve[metric], *[curve[metric][-1]] * len(after)]
            frame = pl.DataFrame({"step": [float(s) for s in steps], metric: [float(v) for v in values]})
            frames.append(frame.with_columns(arm=pl.lit(label)))
    if not frames:
        nothing = pl.DataFrame({"says": [f"{group}: no run came as far as a first record".removeprefix(": ")]})
        return alt.Chart(nothing).mark_text().encode(text="says:N")
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
    # The loss without a memory is the level of reference; other curves have none.
    baseline = max((arm.get("baseline", 0.0) for arm in arms.values()), default=0.0) if metric == "loss" else 0.0
    scale = alt.Scale(domain=[0, 1.5 * baseline], clamp=True) if baseline else alt.Scale(zero=False)
    if metric == "gradient_norm":  # over many powers of ten
        scale = alt.Scale(type="log")
    elif not baseline:
        scale = _without_explosions(data, scale)
    x = alt.X("updates:Q", axis=alt.Axis(format="~s"))
    drawn = set(data["arm"])
    names = [label for name in arms if (label := _label(name, group)) in drawn]
    scheme = "tableau10" if len(names) <= _FEW_COLOURS else "tableau20"
    legend = alt.Legend(title=None, symbolOpacity=1)
    color = alt.Color("arm:N", sort=names, scale=alt.Scale(scheme=scheme), legend=legend)
    band = (
        alt.Chart(data)
        .mark_area(opacity=0.18)
        .encode(x, y=alt.Y("low:Q", scale=scale, title=metric.replace("_", " ")), y2="high:Q", color=color)
    )
    # One record is no line.
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=12))
        .encode(x, y=alt.Y("median:Q", scale=scale), color=color)
    )
    layers = [band, line]
    if baseline:
        level = alt.Chart(pl.DataFrame({"y": [baseline]}))
        layers.insert(0, level.mark_rule(strokeDash=[5, 4], color="#888").encode(y="y:Q"))
    return alt.layer(*layers).properties(width=400 if group else 560, height=280, title=group or content["source"])


def _without_explosions(data: pl.DataFrame, scale: alt.Scale) -> alt.Scale:
    """The scale, cut where a single seed of many left all others behind: they would be one line at the bottom."""
    top, high = (float(data[name].to_numpy().max()) for name in ("median", "high"))
    least = float(data["low"].to_numpy().min())
    return alt.Scale(domain=[least, 1.2 * top], clamp=True) if high > _EXPLODES_ABOVE * top > 0 else scale
