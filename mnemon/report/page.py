"""One self-contained HTML page about runs: no network, no other file."""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import jax
import polars as pl
import vl_convert

from .._files import write_atomically
from ..cells import count_parameters
from ..lens.trace import Trace, trace
from ..tasks import AbstractTask, Episode
from ..training.runs import Run
from .charts import Chart, change_of_state, heat_map, learning_curves, themed

_TEMPLATE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
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
for (const [id, spec] of Object.entries(charts))
  vegaEmbed(document.getElementById(id), spec,
            {actions: {export: true, source: false, compiled: false, editor: false}, renderer: "svg"});
</script>
</body>
</html>
""")


class Page:
    """Headings, text, tables and charts in order, then `write`."""

    def __init__(self, title: str):
        self._title = title
        self._parts = [f"<h1>{html.escape(title)}</h1>"]
        self._charts: dict[str, Any] = {}

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, text: str, *, note: bool = False) -> None:
        self._parts.append(f"<p{' class=note' if note else ''}>{html.escape(text)}</p>")

    def preformatted(self, text: str) -> None:
        self._parts.append(f"<pre>{html.escape(text)}</pre>")

    def table(self, rows: Sequence[dict[str, Any]]) -> None:
        def cell(tag: str, value: Any) -> str:
            number = isinstance(value, int | float)
            text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if number else str(value)
            return f"<{tag}{' class=number' if number else ''}>{html.escape(text)}</{tag}>"

        head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
        body = "".join("<tr>" + "".join(cell("td", value) for value in row.values()) + "</tr>" for row in rows)
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def chart(self, chart: Chart) -> None:
        name = f"chart{len(self._charts)}"
        self._charts[name] = json.loads(themed(chart).to_json())
        self._parts.append(f'<div class="chart" id="{name}"></div>')

    def write(self, path: Path) -> Path:
        """Write the page, whole or not at all."""
        page = _TEMPLATE.substitute(
            title=html.escape(self._title),
            body="\n".join(self._parts),
            script=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"),
            # "</" would end the script element
            charts=json.dumps(self._charts).replace("</", "<\\/"),
        )
        write_atomically(path, page)
        return path.absolute()


def write_report(runs: Sequence[Run], path: Path, title: str = "mnemon report") -> Path:
    """Compare runs: a table, learning curves for each task, and what the state of each network does."""
    page = Page(title)
    page.table([_summary(run) for run in runs])
    for task_name, options in _distinct((run.config.task, run.config.task_options) for run in runs):
        same = [run for run in runs if (run.config.task, run.config.task_options) == (task_name, options)]
        task = same[0].config.make_task()
        page.heading(f"Learning curves: {_title(task_name, options)}")
        curves = [_curve(run, _label(run, runs)) for run in same if run.records]
        if curves:
            page.chart(learning_curves(pl.concat(curves), task.chance["loss"]))
        else:
            page.text("No record has been written yet.")
    for run in runs:
        _add_trace(page, run, _label(run, runs))
    return page.write(path)


def _add_trace(page: Page, run: Run, label: str) -> None:
    task = run.config.make_task()
    step, model = run.load()
    traced = trace(model, task, jax.random.key(1))
    page.heading(f"Inside {label} after {step:,} updates")
    episode = Episode(traced.inputs, traced.targets, traced.mask, len(traced.inputs))  # pyright: ignore[reportArgumentType]
    page.preformatted(task.show(episode) + _answer(task, traced))
    labels = _step_labels(task, traced)
    page.chart(change_of_state(traced, labels))
    for name, values in traced.state.items():
        page.chart(heat_map(values, labels, name))


def _answer(task: AbstractTask, traced: Trace) -> str:
    """The network's own answer below the episode, where outputs are symbols."""
    if not task.symbolic:
        return ""
    answer = traced.outputs.argmax(axis=1)
    shown = task.show(Episode(traced.inputs, answer, traced.mask, len(answer)))  # pyright: ignore[reportArgumentType]
    return "\nnet  " + shown.splitlines()[-1].removeprefix("out  ")


def _step_labels(task: AbstractTask, traced: Trace) -> list[str]:
    if not task.symbolic:
        return [str(n) if n % 10 == 0 else "" for n in range(len(traced.inputs))]
    shown = task.show(Episode(traced.inputs, traced.targets, traced.mask, len(traced.inputs)))  # pyright: ignore[reportArgumentType]
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
    return run.config.cell if len(twins) == 1 else f"{run.config.cell} ({run.folder.name})"


def _title(task: str, options: dict[str, Any]) -> str:
    return " ".join([task, *(f"{name} {value}" for name, value in options.items())])


def _distinct(items) -> list:
    found: list = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
