"""The comparisons that the targets name, as one table with its provenance."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._errors import unknown
from .._files import write_atomically
from .._provenance import in_words, provenance
from ..cells import CELLS, count_parameters
from ._cells import Spec, compile_cell, large, small
from ._measure import Timing, measure_alternately
from .command import bench_cell

Row = dict[str, Any]


def run_suite(seconds: float, results: Path, only: Sequence[str] = ()) -> list[Row]:
    """Measure the comparisons, all or some by name; each is written to the table as soon as it is measured."""
    for name in only:
        if name not in SUITE:
            raise unknown("comparison", name, SUITE)
    path = results / "bench" / "suite.json"
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    measured: list[Row] = []
    for name in only or SUITE:
        rows = [{"comparison": name, **row} for row in SUITE[name](seconds)]
        measured += rows
        stored[name] = {"provenance": provenance(), "rows": rows}
        stored = {name: stored[name] for name in SUITE if name in stored}
        write_atomically(path, json.dumps(stored, indent=1))
        write_atomically(path.with_suffix(".md"), _markdown(stored))
    return measured


def _row(
    what: str,
    unit: str,
    ours: float,
    other: float | None,
    ratio: float | str,
    target: str,
    reached: bool | None,
    **more: str,
) -> Row:
    """A line of the table. The target is one of `ratio`; without one nothing is reached or missed."""
    numbers = {
        name: None if value is None else float(f"{value:.4g}") for name, value in (("ours", ours), ("other", other))
    }
    return {
        "against": what,
        "unit": unit,
        **numbers,
        "ratio": ratio if isinstance(ratio, str) else float(f"{ratio:.3g}"),
        "target": target,
        "reached": reached,
        "spread": more.get("spread", ""),
        "other spread": more.get("other_spread", ""),
    }


def _compare(
    spec: Spec, against: tuple[str, ...], targets: Mapping[str, float], seconds: float, *, share: float | None = None
) -> list[Row]:
    """How many times as long as ours the rivals' updates take; `share` is a target for the rate of our products."""
    ours, *rivals = bench_cell(spec, "", against, seconds)
    rows = []
    for rival in rivals:
        target, ratio = targets.get(rival["by"]), rival["speedup"]
        reached = None if target is None else isinstance(ratio, float) and ratio >= target
        rows.append(
            _row(
                rival["by"],
                "us a step",
                ours["update_us"],
                rival["update_us"],
                ratio,
                "" if target is None else f"at least {target:g}",
                reached,
                spread=ours["update_us_range"],
                other_spread=rival["update_us_range"],
            )
        )
    if share is not None:
        rate = ours["share_of_product_rate"]
        what = "the machine's matrix-product rate"
        rows.append(_row(what, "share of it", rate, 1.0, rate, f"at least {share:g}", rate >= share))
    return rows


def _per_operation(cell: str, seconds: float) -> list[Row]:
    """What an operation with a parameter costs, in those of an LSTM: 6 operations a parameter, example and step."""
    specs = {name: Spec(name, 32, 120, 10, {"hidden_size": 128}) for name in (cell, "lstm")}
    timings = measure_alternately({name: compile_cell(spec).update for name, spec in specs.items()}, seconds=seconds)

    def picoseconds(name: str) -> Timing:
        spec, timing = specs[name], timings[name]
        operations = 6 * count_parameters(spec.make()) * spec.batch * spec.time
        return Timing(*(1e12 * value / operations for value in (timing.median, timing.low, timing.high)))

    ours, lstm = picoseconds(cell), picoseconds("lstm")
    ratio = ours.median / lstm.median
    return [
        _row(
            "lstm",
            "ps an operation",
            ours.median,
            lstm.median,
            ratio,
            "at most 3, or the docs say why",
            ratio <= 3,
            spread=_range(ours),
            other_spread=_range(lstm),
        )
    ]


def _styles(size: int, seconds: float) -> list[Row]:
    """EURNN's FFT style against the tunable style at full capacity."""
    specs = {
        "FFT style": Spec("eurnn", 32, 120, 10, {"hidden_size": size}),
        "tunable style, full capacity": Spec("eurnn", 32, 120, 10, {"hidden_size": size, "capacity": size}),
    }
    timings = measure_alternately({name: compile_cell(spec).update for name, spec in specs.items()}, seconds=seconds)
    fft, tunable = (Timing(*(1e6 * v / 120 for v in (t.median, t.low, t.high))) for t in timings.values())
    ratio = tunable.median / fft.median
    return [
        _row(
            "tunable style, full capacity",
            "us a step",
            fft.median,
            tunable.median,
            ratio,
            "more than 1",
            ratio > 1,
            spread=_range(fft),
            other_spread=_range(tunable),
        )
    ]


def _memory_over_time(seconds: float) -> list[Row]:
    """Memory of an LSTM's update at 16 times the steps, from the compiled program. Nothing is timed."""
    del seconds
    few, many = (
        compile_cell(Spec("lstm", 32, time, 10, {"hidden_size": 128})).memory_bytes / 2**20 for time in (1_024, 16_384)
    )
    return [_row("1,024 steps", "MiB", many, few, many / few, "less than 5", many < 5 * few)]


def _range(timing: Timing) -> str:
    return f"{timing.low:.3g}-{timing.high:.3g}"


_LOOP, _COMPILED = "PyTorch loop", "torch.compile of the step"
_LIBRARIES = ("torch", "equinox", "flax")
_DNC_SMALL = {"hidden_size": 64, "memory_slots": 32, "word_size": 16, "read_heads": 4}
_DNC_LARGE = {"hidden_size": 256, "memory_slots": 128, "word_size": 50, "read_heads": 5}
_COMPILABLE = ("torch", "torch-compile")

# The cells that are measured beside rivals, at their sizes.
SPECS: dict[str, Spec] = {
    "lstm-small": small("lstm"),
    "lstm-large": large("lstm"),
    "gru-small": small("gru"),
    "gru-large": large("gru"),
    "nru-small": small("nru"),
    "nru-large": large("nru"),
    "dnc-small": Spec("dnc", 10, 40, 10, _DNC_SMALL),
    "dnc-large": Spec("dnc", 16, 40, 10, _DNC_LARGE),
    **{cell: Spec(cell, 10, 40, 10, {"hidden_size": 64}) for cell in ("ntm", "tardis", "dntm", "nutm", "sam", "sdnc")},
    "sam-65536-slots": Spec("sam", 1, 40, 10, {"hidden_size": 64, "memory_slots": 65_536}),
    **{
        cell: Spec(cell, 10, 120, 10, {"hidden_size": 64})
        for cell in ("fast-weights", "gated-fast-weights", "hyper-lstm")
    },
}


def _beside(
    name: str, against: tuple[str, ...], targets: Mapping[str, float], share: float | None = None
) -> Callable[[float], list[Row]]:
    return functools.partial(_compare, SPECS[name], against, targets, share=share)


# What is measured, by name: functions of about how many seconds each thing is measured.
SUITE: dict[str, Callable[[float], list[Row]]] = {
    "lstm-small": _beside("lstm-small", _LIBRARIES, {"torch.nn.LSTM": 1.1}),
    "lstm-large": _beside("lstm-large", _LIBRARIES, {"torch.nn.LSTM": 1.1}, share=0.55),
    "gru-small": _beside("gru-small", _LIBRARIES, {"torch.nn.GRU": 1.1}),
    "gru-large": _beside("gru-large", _LIBRARIES, {"torch.nn.GRU": 1.1}),
    "nru-small": _beside("nru-small", _COMPILABLE, {_LOOP: 25.0, _COMPILED: 6.0}),
    "nru-large": _beside("nru-large", _COMPILABLE, {_LOOP: 6.0, _COMPILED: 1.2}),
    "dnc-small": _beside("dnc-small", ("dnc", "torch"), {"PyPI dnc": 10.0}),
    "dnc-large": _beside("dnc-large", ("dnc", "torch"), {"PyPI dnc": 4.0}),
    **{
        cell: _beside(cell, ("torch",), {_LOOP: 8.0})
        for cell in ("ntm", "tardis", "fast-weights", "gated-fast-weights", "hyper-lstm")
    },
    **{name: _beside(name, ("torch",), {}) for name in ("dntm", "nutm", "sam", "sdnc", "sam-65536-slots")},
    **{
        f"{name}-per-operation": functools.partial(_per_operation, name)
        for name, entry in CELLS.items()
        if entry.family in ("plain", "gated", "additive", "orthogonal", "unitary") and name != "lstm"
    },
    "eurnn-128-styles": functools.partial(_styles, 128),
    "eurnn-256-styles": functools.partial(_styles, 256),
    "lstm-memory-over-time": _memory_over_time,
}


def _markdown(stored: Mapping[str, Any]) -> str:
    """The table for people: a line for each row, then where each comes from."""
    from ..report.files import markdown_table

    words = {True: "yes", False: "**no**", None: ""}
    rows = [
        {name: words[value] if name == "reached" else value for name, value in row.items()}
        for about in stored.values()
        for row in about["rows"]
    ]
    sources: dict[str, list[str]] = {}
    for name, about in stored.items():
        sources.setdefault(in_words(about["provenance"]), []).append(name)
    lines = [
        "# Speed and memory of training updates",
        "",
        "Medians of calls made in turn in one process, with their quartiles. `ratio` is what the target is about: how "
        "many times as long as ours the other takes (at least), or how many times as much ours takes (at most).",
        "",
        markdown_table(rows),
        *(f"- {', '.join(names)}: {text}" for text, names in sources.items()),
    ]
    return "\n".join(lines) + "\n"
