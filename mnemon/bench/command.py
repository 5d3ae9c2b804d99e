"""`mnemon bench`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import numpy as np
import tyro

from .._plan import choose_plan
from ..cells import cell_entry, count_parameters
from ..unroll import unroll
from ._cells import SIZES, Spec, compile_cell
from ._measure import Timing, matrix_product_rate, measure_alternately
from ._rivals import agree, find_rivals

PRODUCT_SIZE = 1024
Against = Literal["torch", "torch-compile", "dnc", "equinox", "flax"]


@dataclasses.dataclass(kw_only=True)
class Options:
    """Options of `mnemon bench`."""

    cells: Annotated[tuple[str, ...], tyro.conf.Positional] = ("rnn", "lstm", "gru", "janet", "nru")
    """Cells to measure."""
    sizes: tuple[Literal["small", "large"], ...] = ("small", "large")
    """small: batch 10, 120 steps, about 23.5k parameters. large: batch 100, 784 steps, about 200 units."""
    against: tuple[Against, ...] = ()
    """Also measure other libraries' networks of the same equations, alternately in the same run."""
    suite: bool = False
    """Measure the comparisons of the suite instead, and write them to results/bench/suite.json and .md."""
    only: tuple[str, ...] = ()
    """Some comparisons of the suite, by name; what is stored of the others stays."""
    results: Path = Path("results")
    """Where the suite is written."""
    seconds: float = 2.0
    """About how long each thing is measured."""
    json: bool = False
    """Print JSON."""


@dataclasses.dataclass(kw_only=True)
class GemOptions:
    """Options of `mnemon bench gem`."""

    tasks: tuple[int, ...] = (1, 5, 10, 19)
    """Numbers of earlier tasks, 1 to 19."""
    units: tuple[int, ...] = (128, 256)
    """Hidden sizes of the LSTM."""
    seconds: float = 4.0
    """About how long each thing is measured."""
    json: bool = False
    """Print JSON."""


@dataclasses.dataclass(kw_only=True)
class CurveOptions:
    """Options of `mnemon bench curves`."""

    cells: Annotated[tuple[str, ...], tyro.conf.Positional] = (
        "lstm",
        "nru",
        "eurnn",
        "fast-weights",
        "gated-fast-weights",
        "ntm",
        "nutm",
        "dnc",
        "sam",
        "sdnc",
    )
    """Cells to measure."""
    over: tuple[Literal["time", "batch", "hidden_size", "memory_slots", "programs"], ...] = (
        "time",
        "batch",
        "hidden_size",
        "memory_slots",
        "programs",
    )
    """Sizes to vary, one at a time, in the cells that have them."""
    results: Path = Path("results")
    """The curves are written to bench/curves.json, .md and .svg in it."""
    seconds: float = 0.2
    """About how long each point is measured."""
    json: bool = False
    """Print JSON."""


Row = dict[str, Any]


def bench(arguments: list[str], show: Callable[[list[Row], bool, str], None]) -> None:
    """Measure cells and print a row for each of them and of their rivals; or updates with GEM, or cost curves."""
    kinds = {"gem": bench_gem, "curves": bench_curves}
    if arguments and arguments[0] in kinds:
        kinds[arguments[0]](arguments[1:], show)
        return
    options = tyro.cli(Options, prog="mnemon bench", description="Time and memory of cells.", args=arguments)
    if options.suite:
        from ._suite import run_suite

        rows = run_suite(options.seconds, options.results, options.only)
    else:
        for cell in options.cells:
            cell_entry(cell)
        specs = [(size, SIZES[size](cell)) for size in options.sizes for cell in options.cells]
        rows = [row for size, spec in specs for row in bench_cell(spec, size, options.against, options.seconds)]
    title = "Medians of calls made in turn; us = microseconds per time step of the batch"
    show(rows, options.json, title)


def bench_gem(arguments: list[str], show: Callable[[list[Row], bool, str], None]) -> None:
    """Measure updates with GEM against plain ones."""
    from ._gem import gem_rows

    text = "Time of an update with GEM, in plain updates, on the lifelong copy task."
    options = tyro.cli(GemOptions, prog="mnemon bench gem", description=text, args=arguments)
    rows = gem_rows(options.units, options.tasks, options.seconds)
    show(rows, options.json, "Medians of calls made in turn; plain updates = what one update with GEM costs")


def bench_curves(arguments: list[str], show: Callable[[list[Row], bool, str], None]) -> None:
    """Measure how cost grows with sizes."""
    from ._curves import cost_curves

    text = "How time and memory of an update grow with sizes, with fitted exponents beside those expected."
    options = tyro.cli(CurveOptions, prog="mnemon bench curves", description=text, args=arguments)
    rows = cost_curves(options.cells, options.over, options.seconds, options.results)
    show(rows, options.json, "Medians of calls made in turn; exponents over the upper half of the values")


def bench_cell(spec: Spec, size: str, against: tuple[str, ...], seconds: float) -> list[Row]:
    """Rows for one cell at one size: ours first, then the rivals with the ratio of their times to ours."""
    compiled = compile_cell(spec)
    rivals = find_rivals(against, spec)
    few = np.asarray(spec.inputs()[:2, :20])
    ours = np.asarray(jax.jit(lambda x: unroll(spec.make(), x).outputs)(few))
    checks = {name: agree(ours, rival, few) for name, rival in rivals.items()}
    calls = {"mnemon": compiled, **rivals}
    timings = measure_alternately(
        {
            **{f"{name}/forward": call.forward for name, call in calls.items()},
            **{f"{name}/update": call.update for name, call in calls.items()},
            "machine/product": matrix_product_rate(PRODUCT_SIZE),
        },
        seconds=seconds,
    )
    rate = 2 * PRODUCT_SIZE**3 / timings["machine/product"].median
    plan = choose_plan(cell := spec.make(), spec.batch, spec.time)
    about = {"cell": spec.cell, "size": size, "batch": spec.batch, "time": spec.time}
    parameters = count_parameters(cell)

    def row(name: str, compile_seconds: float) -> Row:
        update = timings[f"{name}/update"]
        return {
            **about,
            "by": name,
            **_step_times(timings[f"{name}/forward"], update, spec),
            "compile_s": round(compile_seconds, 2),
            "memory_mb": None,
            "parameters": parameters,
            "share_of_product_rate": float(f"{compiled.operations / update.median / rate:.3g}"),
            "speedup": 1.0,
            "checked": None,  # whether a rival's results were compared with ours
            "plan": None,
        }

    rows = [row("mnemon", compiled.compile_seconds)]
    rows[0] |= {"memory_mb": round(compiled.memory_bytes / 2**20, 1), "plan": _plan_in_words(plan)}
    for name, rival in rivals.items():
        ratio = round(timings[f"{name}/update"].median / timings["mnemon/update"].median, 2)
        equal = checks[name]
        rows.append(
            row(name, rival.compile_seconds)
            | {"speedup": "results differ" if equal is False else ratio, "checked": equal is True}
        )
    return rows


def _plan_in_words(plan: Any) -> str:
    chosen = {name: value for name, value in dataclasses.asdict(plan).items() if value}
    return ", ".join(name if value is True else f"{name} {value}" for name, value in chosen.items())


def _step_times(forward: Timing, update: Timing, spec: Spec) -> Row:
    def us(seconds: float) -> float:
        return round(1e6 * seconds / spec.time, 1)

    return {
        "forward_us": us(forward.median),
        "update_us": us(update.median),
        "update_us_range": f"{us(update.low)}-{us(update.high)}",
    }
