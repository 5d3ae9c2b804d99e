"""`mnemon lens`."""

import dataclasses
import inspect
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.progress import Progress

from .._errors import unknown
from ..cells import CELLS, AbstractCell, is_cell, make_cell
from .jacobian import Flow, jacobian_flow
from .paths import KINDS, shortest_path, simulated_paths, trace_sources
from .programs import critical_product, many_programs_chance, one_program_chance, sampled_chances
from .trace import load_trace, save_trace, trace, trace_run

Show = Callable[[list[dict[str, Any]], bool, str], None]
# Inputs of a cell that has no run: as many as those of copying.
_INPUTS = 10


def lens(arguments: list[str], show: Show, console: Console) -> None:
    """Run one of the instruments."""
    if not arguments or arguments[0] in ("-h", "--help"):
        lines = [f"mnemon lens {name:9} {inspect.getdoc(run)}" for name, run in INSTRUMENTS.items()]
        print("\n".join(["Look inside a memory. Each takes --help, and --json for scripts.\n", *lines]))
        sys.exit(0 if arguments else 2)
    name, rest = arguments[0], arguments[1:]
    if name not in INSTRUMENTS:
        raise unknown("instrument", name, INSTRUMENTS)
    INSTRUMENTS[name](rest, show, console)


@dataclasses.dataclass(kw_only=True)
class _Jacobian:
    of: Annotated[str, tyro.conf.Positional]
    """Folder of a run, or the name of a cell (then untrained, on random inputs)."""
    parts: tuple[str, ...] = ()
    """Parts of the state to look at; all without it."""
    start: int = 0
    """The earliest step; 0 is the state before the first."""
    end: int | None = None
    """The step to differentiate; the last without it."""
    steps: int = 100
    """Length of the sequence, for a cell without a run."""
    seed: int = 0
    """Seed of the episode, or of cell and inputs."""
    out: Path | None = None
    """Also draw it, as .svg, .png, .pdf or .html."""
    json: bool = False
    """Print JSON."""


def jacobian(arguments: list[str], show: Show, console: Console) -> None:
    """How the state depends on earlier states: `mnemon lens jacobian RUN|CELL`."""
    options = tyro.cli(_Jacobian, prog="mnemon lens jacobian", description=jacobian.__doc__, args=arguments)
    cell, inputs = _cell_and_inputs(options.of, options.steps, options.seed, lambda text: _say(console, text))
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("Jacobians", total=None)
        flow = jacobian_flow(
            cell,
            inputs,
            parts=options.parts or None,
            start=options.start,
            end=options.end,
            on_progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if options.out is not None:
        from ..report.charts import jacobian_decay

        _draw(jacobian_decay(flow, f"{options.of}: how the state depends on earlier states"), options.out)
    if options.json:
        print(json.dumps(_flow_as_json(options.of, flow)))
    else:
        show(_flow_rows(flow), False, f"{options.of}: largest singular values from step {flow.end}; eta {flow.eta:.4g}")


def _cell_and_inputs(name: str, steps: int, seed: int, report: Callable[[str], None]) -> tuple[AbstractCell, jax.Array]:
    if is_cell(name):
        cell_key, input_key = jax.random.split(jax.random.key(seed))
        cell = make_cell(name, _INPUTS, horizon=steps, key=cell_key)
        return cell, jax.random.normal(input_key, (steps, _INPUTS))
    if not Path(name).exists() and "/" not in name:
        raise unknown("cell or run", name, CELLS)
    from ..training.runs import open_run

    run = open_run(Path(name))
    _, model = run.load(report=report)
    traced = trace(model, run.config.make_task(), jax.random.key(seed))
    return model.cell, model.embed(jnp.asarray(traced.inputs)[None])[0]


def _flow_as_json(name: str, flow: Flow) -> dict[str, Any]:
    def finite(values: np.ndarray) -> list[float | None]:
        return [float(value) if math.isfinite(value) else None for value in values]

    return {
        "of": name,
        "end": flow.end,
        "distance": flow.distances.tolist(),
        "top": {part: finite(values) for part, values in flow.top.items()},
        "norm": {part: finite(values) for part, values in flow.norm.items()},
        "eta": flow.eta,
        "bound": finite(flow.bound),
    }


def _flow_rows(flow: Flow) -> list[dict[str, Any]]:
    """Distances 0, 1, 2, 5, 10, 20, 50, ..., and the longest."""
    longest = int(flow.distances.max())
    wanted = [n * 10**k for k in range(8) for n in (1, 2, 5)]
    shown = [0, *(n for n in wanted if n < longest), *([longest] if longest else [])]
    return [
        {
            "steps between": distance,
            **{part: f"{values[longest - distance]:.3e}" for part, values in flow.top.items()},
            "bound": f"{flow.bound[longest - distance]:.3e}",
        }
        for distance in shown
    ]


@dataclasses.dataclass(kw_only=True)
class _Trace:
    run: Annotated[Path, tyro.conf.Positional]
    """Folder of a run."""
    out: Path | None = None
    """The file to write; trace.safetensors in the run's folder without it."""
    seed: int = 1
    """Seed of the episode."""
    json: bool = False
    """Print JSON."""


def trace_command(arguments: list[str], show: Show, console: Console) -> None:
    """What the state holds over an episode, saved in one file: `mnemon lens trace RUN`."""
    options = tyro.cli(_Trace, prog="mnemon lens trace", description=trace_command.__doc__, args=arguments)
    traced = trace_run(options.run, seed=options.seed, report=lambda text: _say(console, text))
    path = save_trace(traced, options.out or options.run / "trace.safetensors")
    parts = {name: list(values.shape) for name, values in traced.state.items()}
    if options.json:
        print(json.dumps({"file": str(path), "state": parts, "about": traced.about}))
        return
    rows = [{"part": name, "shape": "x".join(map(str, shape))} for name, shape in parts.items()]
    show(rows, False, f"{path}: state after each step")


@dataclasses.dataclass(kw_only=True)
class _Paths:
    trace: Path | None = None
    """A trace file with read and write weights, instead of simulations."""
    networks: tuple[Literal["tardis", "umann", "urmann"], ...] = KINDS  # pyright: ignore[reportAssignmentType]
    """Untrained networks to simulate."""
    slots: tuple[int, ...] = (2, 5, 10, 20, 50)
    """Sizes of the memory."""
    start: int = 5
    """The step that is depended on (from 0)."""
    end: int = 50
    """The step that depends on it."""
    simulations: int = 200
    """How many simulations."""
    seed: int = 0
    """Seed of the simulations."""
    out: Path | None = None
    """Also draw the reads of the trace as arcs, as .svg, .png, .pdf or .html."""
    json: bool = False
    """Print JSON."""


def paths(arguments: list[str], show: Show, console: Console) -> None:
    """Wormhole paths, simulated or of a trace: `mnemon lens paths [--trace FILE]`."""
    del console
    options = tyro.cli(_Paths, prog="mnemon lens paths", description=paths.__doc__, args=arguments)
    if options.trace is not None:
        _traced_path(options, show)
        return
    rows = []
    for network in options.networks:
        for slots in options.slots:
            found = simulated_paths(
                network,
                slots,
                start=options.start,
                end=options.end,
                simulations=options.simulations,
                seed=options.seed,
            )
            rows.append(
                {
                    "network": network,
                    "slots": slots,
                    "shortest path": float(found.length.mean()),
                    "outside wormholes": float(found.outside.mean()),
                }
            )
    show(rows, options.json, f"Paths from step {options.end} to {options.start}, {options.simulations} simulations")


def _traced_path(options: _Paths, show: Show) -> None:
    traced = load_trace(options.trace or Path())
    sources = trace_sources(traced)
    path = shortest_path(sources, options.start, options.end)
    if options.out is not None:
        from ..report.charts import read_arcs

        shown = traced.about.get("shown", "").splitlines()
        labels = list(shown[0].removeprefix("in   ")) if shown and traced.inputs.ndim == 1 else []
        _draw(read_arcs(sources, labels or [str(n) for n in range(len(sources))]), options.out)
    if options.json:
        print(json.dumps({"sources": sources.tolist(), "path": path, "length": len(path) - 1}))
        return
    title = f"Shortest path from step {options.end} to {options.start}: {len(path) - 1} connections"
    hops = [(path[n], path[n + 1]) for n in range(len(path) - 1)]
    show([{"from": a, "to": b, "by": "wormhole" if sources[a] == b else "chain"} for a, b in hops], False, title)


@dataclasses.dataclass(kw_only=True)
class _Programs:
    steps: tuple[int, ...] = (2, 5, 10, 50, 200)
    """Numbers T of steps, each with a program of its own."""
    products: tuple[float, ...] = (2.0, 3.0, 5.0, 10.0)
    """Values of gamma b."""
    samples: int = 20_000
    """Monte Carlo samples."""
    seed: int = 0
    """Seed of the samples."""
    json: bool = False
    """Print JSON."""


def programs(arguments: list[str], show: Show, console: Console) -> None:
    """The chance of critical vanishing with one stored program and with many: `mnemon lens programs`."""
    del console
    options = tyro.cli(_Programs, prog="mnemon lens programs", description=programs.__doc__, args=arguments)
    random, products = np.random.default_rng(options.seed), np.asarray(options.products)
    rows = []
    for steps in options.steps:
        many = many_programs_chance(steps, products)
        _, sampled = sampled_chances(steps, products, options.samples, random)
        rows += [
            {
                "T": steps,
                "gamma b": float(product),
                "one program": float(one_program_chance(product)),
                "many programs": float(many[n]),
                "many, sampled": float(sampled[n]),
                "many beat one": "yes" if many[n] < one_program_chance(product) else "no",
                "they do above": critical_product(steps) if steps > 1 else None,
            }
            for n, product in enumerate(products)
        ]
    show(rows, options.json, "Chance of critical vanishing (Theorem 2 says: many < one)")


def _draw(chart: Any, path: Path) -> None:
    from ..report.charts import themed

    path.parent.mkdir(parents=True, exist_ok=True)
    themed(chart).save(path, inline=path.suffix == ".html")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


INSTRUMENTS: dict[str, Callable[[list[str], Show, Console], None]] = {
    "jacobian": jacobian,
    "trace": trace_command,
    "paths": paths,
    "programs": programs,
}
