"""How time and memory of an update grow: with the steps, the batch, the hidden size, the slots and the programs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._errors import unknown
from .._files import write_atomically
from .._provenance import in_words, provenance
from ..cells import cell_entry, cell_options
from ._cells import Spec, compile_cell
from ._measure import measure_alternately

Row = dict[str, Any]


class Exponents(NamedTuple):
    """Powers of a size that time and memory grow with."""

    time: float
    memory: float


class Axis(NamedTuple):
    """A size, the values it takes, and how cost should grow with it where no cell says otherwise."""

    values: tuple[int, ...]
    expected: Exponents


AXES: dict[str, Axis] = {
    "time": Axis((64, 128, 256, 512, 1024), Exponents(1, 1)),
    "batch": Axis((8, 16, 32, 64, 128), Exponents(1, 1)),
    "hidden_size": Axis((32, 64, 128, 256, 512), Exponents(2, 1)),  # matrices; states
    "memory_slots": Axis((16, 32, 64, 128, 256), Exponents(1, 1)),
    "programs": Axis((1, 2, 4, 8, 16), Exponents(1, 0)),  # weights are composed of all, and only the result is kept
}
# Where the equations say something else: link matrices, fast matrices in the state, rotations in place of matrices.
_EXPECTED: dict[tuple[str, str], Exponents] = {
    ("dnc", "memory_slots"): Exponents(2, 2),
    **{
        (cell, "hidden_size"): Exponents(2, 2)
        for cell in ("associative", "associative-delta", "fast-weights", "gated-fast-weights")
    },
    **{(cell, "hidden_size"): Exponents(1, 1) for cell in ("urnn", "eurnn", "ff-fast-weights")},
}
# Sizes that are not varied.
_BASE: Mapping[str, int] = {"time": 64, "batch": 16, "hidden_size": 64, "memory_slots": 32}
_INPUT = 10
_LEAST_CALLS = 3


def cost_curves(
    cells: Sequence[str], axes: Sequence[str], seconds: float, results: Path, points: Mapping[str, Sequence[int]] = {}
) -> list[Row]:
    """Measure every cell over every axis it has; each curve is written as soon as it is measured.

    Other curves that were written before stay. `points` replace the values that an axis takes.
    """
    for axis in axes:
        if axis not in AXES:
            raise unknown("axis", axis, AXES)
    measured: list[Row] = []
    folder = results / "bench"
    path = folder / "curves.json"
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for cell in cells:
        for axis in axes:
            if axis in ("time", "batch") or axis in cell_options(cell_entry(cell)):
                row = _curve(cell, axis, points.get(axis, AXES[axis].values), seconds)
                measured.append(row)
                stored[f"{cell} over {axis}"] = {"provenance": provenance(), "curve": row}
                write_atomically(path, json.dumps(stored, indent=1))
                write_atomically(path.with_suffix(".md"), _markdown(stored))
    _draw([about["curve"] for about in stored.values()], folder)
    return measured


def _curve(cell: str, axis: str, values: Sequence[int], seconds: float) -> Row:
    known = cell_options(cell_entry(cell))
    calls, memory = {}, []
    for value in values:
        sizes = {**_BASE, axis: value}
        options = {name: size for name, size in sizes.items() if name in known}
        compiled = compile_cell(Spec(cell, sizes["batch"], sizes["time"], _INPUT, options))
        calls[str(value)] = compiled.update
        memory.append(compiled.memory_bytes / 2**20)
    times = [1e3 * timing.median for timing in measure_alternately(calls, seconds=seconds, least=_LEAST_CALLS).values()]
    expected = _EXPECTED.get((cell, axis), AXES[axis].expected)
    return {
        "cell": cell,
        "over": axis,
        "values": list(values),
        "update_ms": [float(f"{time:.4g}") for time in times],
        "memory_mb": [float(f"{amount:.4g}") for amount in memory],
        "time exponent": round(exponent(values, times), 2),
        "expected time": expected.time,
        "memory exponent": round(exponent(values, memory), 2),
        "expected memory": expected.memory,
    }


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power of the size that the cost grows with, by least squares of logarithms over the upper half of the sizes.

    >>> round(exponent([1, 10, 100, 1000], [1.0, 1.0, 10.0, 1000.0]), 3)
    2.0
    """
    upper = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[upper:]), np.log(costs[upper:]), 1)[0])


def _markdown(stored: Mapping[str, Any]) -> str:
    from ..report.files import markdown_table

    text = [
        {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in row.items()}
        for row in (about["curve"] for about in stored.values())
    ]
    sources = dict.fromkeys(in_words(about["provenance"]) for about in stored.values())
    sizes = ", ".join(f"{name} {value}" for name, value in _BASE.items())
    return (
        f"# Time and memory of an update as sizes grow\n\nSizes that are not varied: {sizes}. The exponents are fitted "
        "over the upper half of the values; those expected are what the equations have in the limit of large sizes. "
        "Memory is what the compiled update allocates beside its inputs and outputs.\n\n![curves](curves.svg)\n\n"
        f"{markdown_table(text)}\n" + "\n".join(sources) + "\n"
    )


def _draw(rows: Sequence[Row], folder: Path) -> None:
    """Time (above) and memory (below) over each size, all axes logarithmic."""
    import altair as alt
    import polars as pl

    from ..report.charts import themed
    from ..report.files import save_chart

    panels = []
    for cost, title in (("update_ms", "ms an update"), ("memory_mb", "MiB")):
        for axis in dict.fromkeys(row["over"] for row in rows):
            points = [
                {"cell": row["cell"], "size": size, "cost": value}
                for row in rows
                if row["over"] == axis
                for size, value in zip(row["values"], row[cost], strict=True)
            ]
            logarithmic = alt.Scale(type="log", base=2, nice=False)
            panels.append(
                alt.Chart(pl.DataFrame(points))
                .mark_line(point=True)
                .encode(
                    x=alt.X("size:Q", scale=logarithmic, title=axis.replace("_", " "), axis=alt.Axis(tickCount=5)),
                    y=alt.Y("cost:Q", scale=alt.Scale(type="log"), title=title, axis=alt.Axis(format="~s")),
                    color=alt.Color("cell:N", title=None, scale=alt.Scale(scheme="tableau10")),
                )
                .properties(width=190, height=160)
            )
    chart = alt.concat(*panels, columns=len(panels) // 2).resolve_scale(color="shared")
    save_chart(themed(chart), folder, "curves")
