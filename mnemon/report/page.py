"""One self-contained HTML page about runs: no network, no other file."""

import html
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import jax
import jax.numpy as jnp
import polars as pl
import vl_convert

from .._elsewhere import plain_name
from .._files import write_atomically
from ..cells import count_parameters
from ..lens import Trace, differentiable_parts, has_wormholes, jacobian_flow, trace, trace_sources
from ..tasks import AbstractTask
from ..training.runs import Run
from .charts import Chart, change_of_state, heat_map, jacobian_decay, learning_curves, read_arcs, themed
from .files import save_chart, save_table

# Parts of a state with more entries than this, and longer distances, would take long to differentiate.
_JACOBIAN_ENTRIES, _JACOBIAN_STEPS = 256, 200

_TEMPLATE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';
 script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:">
<title>$title</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 800px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #ddd; }
td.number, th.number { text-align: right; }
pre { background: #f6f6f4; padding: .7rem 1rem; overflow-x: auto; font-size: 13px; }
.chart { overflow-x: auto; margin: .6rem 0; } .note { color: #666; font-size: 13px; }
</style>
</head>
<body>
$body
<script type="module">
$script
const charts = $charts;
const actions = {export: true, source: false, compiled: false, editor: false};
for (const [id, spec] of Object.entries(charts))
  vegaEmbed(document.getElementById(id), spec, {mode: "vega-lite", renderer: "svg", actions});
</script>
</body>
</html>
""")


class Page:
    """Headings, text, tables and charts in order, then `write`."""

    def __init__(self, title: str):
        self._title = title
        self._parts = [f"<h1>{html.escape(title)}</h1>"]
        self._charts: dict[str, Chart] = {}
        self._tables: dict[str, Sequence[dict[str, Any]]] = {}

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, text: str, *, note: bool = False) -> None:
        self._parts.append(f"<p{' class=note' if note else ''}>{html.escape(text)}</p>")

    def preformatted(self, text: str) -> None:
        self._parts.append(f"<pre>{html.escape(text)}</pre>")

    def table(self, rows: Sequence[dict[str, Any]], name: str) -> None:
        """A table; `name` is that of its files."""
        self._tables[f"table-{len(self._tables)}-{_slug(name)}"] = rows

        def cell(tag: str, value: Any) -> str:
            number = isinstance(value, int | float)
            text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if number else str(value)
            return f"<{tag}{' class=number' if number else ''}>{html.escape(text)}</{tag}>"

        head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
        body = "".join("<tr>" + "".join(cell("td", value) for value in row.values()) + "</tr>" for row in rows)
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def chart(self, chart: Chart, name: str) -> None:
        """A chart; `name` is that of its files."""
        name = f"chart-{len(self._charts)}-{_slug(name)}"
        self._charts[name] = themed(chart)
        self._parts.append(f'<div class="chart" id="{name}"></div>')

    def write(self, path: Path) -> Path:
        """Write the page, whole or not at all."""
        page = _TEMPLATE.substitute(
            title=html.escape(self._title),
            body="\n".join(self._parts),
            script=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"),
            # "</" would end the script element
            charts=json.dumps({name: _spec(chart) for name, chart in self._charts.items()}).replace("</", "<\\/"),
        )
        write_atomically(path, page)
        return path.absolute()

    def write_files(self, folder: Path) -> list[Path]:
        """Write each chart as SVG, PNG and PDF, and each table as CSV and Markdown."""
        charts = [path for name, chart in self._charts.items() for path in save_chart(chart, folder, name)]
        return charts + [path for name, rows in self._tables.items() for path in save_table(rows, folder, name)]


def _spec(chart: Chart) -> dict[str, Any]:
    """The chart as Vega-Lite, without the address of its schema: the page names no network."""
    spec = json.loads(chart.to_json())
    del spec["$schema"]
    return spec


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def write_report(
    runs: Sequence[Run],
    path: Path,
    title: str = "mnemon report",
    *,
    files: Path | None = None,
    report: Callable[[str], None] = print,
) -> list[Path]:
    """Compare runs: a table, learning curves for each task, and what the state of each network does.

    With `files`, each picture and table is also written to that folder. `report` is told what takes long.
    """
    page = Page(title)
    page.table([_summary(run) for run in runs], "runs")
    for task_name, options in _distinct((run.config.task, run.config.task_options) for run in runs):
        same = [run for run in runs if (run.config.task, run.config.task_options) == (task_name, options)]
        task = same[0].config.make_task()
        page.heading(f"Learning curves: {_title(task_name, options)}")
        curves = [_curve(run, _label(run, runs)) for run in same if run.records]
        if curves:
            page.chart(learning_curves(pl.concat(curves), task.chance["loss"]), f"curves {_title(task_name, options)}")
        else:
            page.text("No record has been written yet.")
    for number, run in enumerate(runs):
        report(f"looking inside {run.folder} ({number + 1} of {len(runs)})")
        _add_lens(page, run, _label(run, runs), report)
    written = [page.write(path)]
    if files is not None:
        report(f"writing pictures and tables to {files}")
        written += page.write_files(files)
    return written


def _add_lens(page: Page, run: Run, label: str, report: Callable[[str], None]) -> None:
    """What the lens shows of a run: an episode, the state over time, wormholes, Jacobians."""
    task = run.config.make_task()
    step, model = run.load(report=report)
    traced = trace(model, task, jax.random.key(1))
    page.heading(f"Inside {label} after {step:,} updates")
    page.preformatted(task.show(traced.episode) + _answer(task, traced))
    labels = _step_labels(task, traced)
    page.chart(change_of_state(traced, labels), f"{label} change")
    if has_wormholes(traced):
        page.chart(read_arcs(trace_sources(traced), labels), f"{label} reads")
    for name, values in traced.state.items():
        page.chart(heat_map(values, labels, name), f"{label} {name}")
    small = [part for part, size in differentiable_parts(model.cell).items() if size <= _JACOBIAN_ENTRIES]
    if small:
        inputs = model.embed(jnp.asarray(traced.inputs)[None])[0]
        flow = jacobian_flow(model.cell, inputs, parts=small, start=max(0, len(inputs) - _JACOBIAN_STEPS))
        page.chart(jacobian_decay(flow), f"{label} jacobian")


def _answer(task: AbstractTask, traced: Trace) -> str:
    """The network's own answer below the episode, where outputs are symbols."""
    if not task.symbolic:
        return ""
    answer = traced.outputs.argmax(axis=1)
    shown = task.show(traced.episode._replace(targets=answer))  # pyright: ignore[reportArgumentType]
    return "\nnet  " + shown.splitlines()[-1].removeprefix("out  ")


def _step_labels(task: AbstractTask, traced: Trace) -> list[str]:
    if not task.symbolic:
        return [str(n) if n % 10 == 0 else "" for n in range(len(traced.inputs))]
    shown = task.show(traced.episode)
    return list(shown.splitlines()[0].removeprefix("in   "))


def _summary(run: Run) -> dict[str, Any]:
    records, task = run.records, run.config.make_task()
    last = records[-1] if records else {}
    return {
        "cell": run.config.cell,
        "task": _title(run.config.task, run.config.task_options),
        "parameters": count_parameters(run.config.make_model()),
        "updates": last.get("step", 0),
        "loss": last.get("loss", "–"),
        "without a memory": task.chance["loss"],
        "solved": "yes" if last and task.solved(last) else "no",
        "seed": run.config.seed,
    }


def _curve(run: Run, label: str) -> pl.DataFrame:
    frame = pl.DataFrame(run.records).select("step", "loss")
    return frame.with_columns(run=pl.lit(label))


def _label(run: Run, runs: Sequence[Run]) -> str:
    twins = [other for other in runs if other.config.cell == run.config.cell]
    name = plain_name(run.config.cell)
    return name if len(twins) == 1 else f"{name} ({run.folder.name})"


def _title(task: str, options: dict[str, Any]) -> str:
    return " ".join([plain_name(task), *(f"{name} {value}" for name, value in options.items())])


def _distinct(items) -> list:
    found: list = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
