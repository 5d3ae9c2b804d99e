"""`mnemon bench`."""

import dataclasses
import os
from collections.abc import Callable
from typing import Annotated, Any, Literal

import jax
import numpy as np
import tyro

from .._errors import MnemonError
from ..cells import cell_entry, count_parameters
from ..unroll import unroll
from ._cells import SIZES, Spec, compile_cell
from ._measure import Timing, matrix_product_rate, measure_alternately

PRODUCT_SIZE = 1024
# Equal networks agree to rounding; beyond this the rival computes something else and no ratio is shown.
_TOLERANCE = 1e-4


@dataclasses.dataclass(kw_only=True)
class Options:
    """Options of `mnemon bench`."""

    cells: Annotated[tuple[str, ...], tyro.conf.Positional] = ("rnn", "lstm", "gru", "janet", "nru")
    """Cells to measure."""
    sizes: tuple[Literal["small", "large"], ...] = ("small", "large")
    """small: batch 10, 120 steps, about 23.5k parameters. large: batch 100, 784 steps, about 200 units."""
    against: Literal["torch"] | None = None
    """Also measure PyTorch networks of the same equations, alternately in the same run."""
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


Row = dict[str, Any]


def bench(arguments: list[str], show: Callable[[list[Row], bool, str], None]) -> None:
    """Measure cells and print a row for each of them and of their rivals; or, with `gem`, updates with GEM."""
    if arguments[:1] == ["gem"]:
        bench_gem(arguments[1:], show)
        return
    options = tyro.cli(Options, prog="mnemon bench", description="Time and memory of cells.", args=arguments)
    for cell in options.cells:
        cell_entry(cell)
    rows = [row for size in options.sizes for cell in options.cells for row in bench_cell(cell, size, options)]
    title = "Medians of calls made in turn; us = microseconds per time step of the batch"
    show(rows, options.json, title)


def bench_gem(arguments: list[str], show: Callable[[list[Row], bool, str], None]) -> None:
    """Measure updates with GEM against plain ones."""
    from ._gem import gem_rows

    text = "Time of an update with GEM, in plain updates, on the lifelong copy task."
    options = tyro.cli(GemOptions, prog="mnemon bench gem", description=text, args=arguments)
    rows = gem_rows(options.units, options.tasks, options.seconds)
    show(rows, options.json, "Medians of calls made in turn; plain updates = what one update with GEM costs")


def bench_cell(cell: str, size: str, options: Options) -> list[Row]:
    """Rows for one cell at one size: ours first, then the rivals with the ratio of their times to ours."""
    spec = SIZES[size](cell)
    compiled = compile_cell(spec)
    calls = {
        ("mnemon", "forward"): compiled.forward,
        ("mnemon", "update"): compiled.update,
        ("machine", "product"): matrix_product_rate(PRODUCT_SIZE),
    }
    modules = _torch_rivals(spec) if options.against == "torch" else {}
    checks: dict[str, bool] = {}
    for name, (module, inputs) in modules.items():
        from ._torch import forward_pass, training_update

        checks[name] = _agrees(spec, module, inputs)
        calls[name, "forward"] = forward_pass(module, inputs)
        calls[name, "update"] = training_update(module, inputs)
    timings = measure_alternately({"/".join(key): call for key, call in calls.items()}, seconds=options.seconds)
    rate = 2 * PRODUCT_SIZE**3 / timings["machine/product"].median
    ours = timings["mnemon/update"]
    share = compiled.operations / ours.median / rate
    about = {"cell": cell, "size": size, "batch": spec.batch, "time": spec.time}
    rows: list[Row] = [
        {
            **about,
            "by": "mnemon",
            **_step_times(timings["mnemon/forward"], ours, spec),
            "compile_s": round(compiled.compile_seconds, 2),
            "memory_mb": round(compiled.memory_bytes / 2**20, 1),
            "parameters": count_parameters(spec.make()),
            "share_of_product_rate": float(f"{share:.3g}"),
            "speedup": 1.0,
        }
    ]
    for name in modules:
        theirs = timings[f"{name}/update"]
        rows.append(
            {
                **about,
                "by": name,
                **_step_times(timings[f"{name}/forward"], theirs, spec),
                "compile_s": 0.0,
                "memory_mb": None,
                "parameters": rows[0]["parameters"],
                "share_of_product_rate": float(f"{compiled.operations / theirs.median / rate:.3g}"),
                "speedup": round(theirs.median / ours.median, 2) if checks[name] else "results differ",
            }
        )
    return rows


def _step_times(forward: Timing, update: Timing, spec: Spec) -> Row:
    def us(seconds: float) -> float:
        return round(1e6 * seconds / spec.time, 1)

    return {
        "forward_us": us(forward.median),
        "update_us": us(update.median),
        "update_us_range": f"{us(update.low)}-{us(update.high)}",
    }


def _torch_rivals(spec: Spec) -> dict[str, tuple[Any, Any]]:
    try:
        import torch
    except ImportError as error:
        raise MnemonError("--against torch needs PyTorch: pip install 'mnemon[torch]'") from error
    from ._torch import rivals, tensor

    torch.set_num_threads(os.cpu_count() or 1)
    inputs = tensor(spec.inputs())
    return {name: (module, inputs) for name, module in rivals(spec).items()}


def _agrees(spec: Spec, module: Any, inputs: Any) -> bool:
    """Whether a rival gives our outputs, so that its time can be compared with ours."""
    ours = np.asarray(jax.jit(lambda x: unroll(spec.make(), x).outputs)(spec.inputs()[:2, :20]))
    theirs = module(inputs[:2, :20]).detach().numpy()
    return bool(np.max(np.abs(ours - theirs)) <= _TOLERANCE * (1 + np.max(np.abs(ours))))
