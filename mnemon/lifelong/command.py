"""`mnemon lifelong`."""

import dataclasses
import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from .._elsewhere import plain_name
from .._options import changed_options, option_fields, parse_options
from ..cells import CELLS, cell_entry, cell_options, count_parameters
from ..model import Model
from ..report.progress import Progress
from ..training import Interrupted
from .benchmark import LifelongConfig, run_lifelong
from .distributions import DISTRIBUTIONS, distribution
from .entries import ENTRIES, entry
from .levels import Level, Watch

Show = Callable[[list[dict[str, Any]], bool, str], None]
# Fields of the configuration that are no options: they are given by name, or by options of their own.
_GIVEN = ("distribution", "cell", "cell_options")


@dataclasses.dataclass(kw_only=True)
class _Options:
    """Options of a run; those of the benchmark, of the method and of the cell are added to them."""

    out: Path | None = None
    """Folder of the run; a new one under runs/ without it."""
    resume: bool = False
    """Go on with the run in the folder."""
    overwrite: bool = False
    """Replace the run in the folder."""
    save_seconds: float = 30.0
    """Time between checkpoints."""
    json: bool = False
    """Print each level and, last, the result as JSON lines."""


def lifelong(arguments: list[str], show: Show, console: Console) -> None:
    """Run an entry on a distribution, and print what came of each level."""
    if len(arguments) < 2 or arguments[0].startswith("-") or arguments[1].startswith("-"):
        print(
            "usage: mnemon lifelong DISTRIBUTION ENTRY [options]     (options: mnemon lifelong copy gru --help)\n\n"
            f"distributions: {', '.join(DISTRIBUTIONS)}\n"
            f"entries: {', '.join(ENTRIES)}\n"
            f"or any cell, with --method and --sizes: {', '.join(CELLS)}"
        )
        sys.exit(0 if "--help" in arguments or "-h" in arguments else 2)
    where, name, rest = arguments[0], arguments[1], arguments[2:]
    found, entered = distribution(where), entry(name)
    of_cell = cell_options(cell_entry(entered.cell))
    of_cell = {n: p.replace(default=entered.options.get(n, p.default)) for n, p in of_cell.items()}
    of_run = _run_parameters(LifelongConfig.enter(where, name))
    fields = [
        *option_fields(LifelongConfig, of_run),
        *option_fields(cell_entry(entered.cell).cell, of_cell),
    ]
    text = f"{name} on the levels of {where}, one after the other."
    options = parse_options(f"mnemon lifelong {where} {name}", text, _Options, fields, rest)
    config = LifelongConfig.enter(
        where,
        name,
        cell_options=changed_options(options, of_cell),
        **{field: getattr(options, field) for field in of_run},
    )
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = options.out or Path("runs") / f"lifelong-{where}-{plain_name(name)}-seed{config.seed}-{stamp}"
    progress = Progress(f"{where} {name}", config.updates, options.json, console)
    progress.say(
        f"{name} with {count_parameters(config.make_model()):,} parameters on {config.levels} levels of {where} "
        f"in {folder}; a level is passed at {config.pass_mark:.0%}"
    )

    def begin(level: int, model: Model, updates: int) -> None:
        progress.begin(f"level {level}/{config.levels}, {model.cell.output_size} units", updates)

    def tell(number: int, level: Level) -> None:
        if options.json:
            print(json.dumps({"level": number, **dataclasses.asdict(level)}), flush=True)
        else:
            verdict = "passed" if level.passed else "failed"
            progress.say(f"level {number} ({found.length(number)} {found.unit}): {level.current:.1%}, {verdict}")

    watch = Watch(progress.say, begin, tell, None if options.json else progress.record, progress.update)
    try:
        with progress:
            result = run_lifelong(
                config,
                folder,
                resume=options.resume,
                overwrite=options.overwrite,
                save_seconds=options.save_seconds,
                watch=watch,
            )
    except Interrupted as interruption:
        words = [word for word in arguments if word not in ("--resume", "--overwrite")]
        words += [] if options.out else ["--out", str(folder)]
        raise Interrupted(f"{interruption}\ngo on with: mnemon lifelong {' '.join(words)} --resume") from None
    if options.json:
        print(json.dumps({**result, "out": str(folder)}))
    else:
        show(_rows(result), False, _title(result, name, folder))


def _run_parameters(config: LifelongConfig) -> dict[str, inspect.Parameter]:
    """The options of the benchmark and of the methods, with the defaults that the entry stands for."""
    parameters = inspect.signature(LifelongConfig).parameters
    return {
        name: parameter.replace(default=getattr(config, name))
        for name, parameter in parameters.items()
        if name not in _GIVEN
    }


def _rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each level that was trained."""
    grown = {int(level): sizes for level, sizes in result["expanded"].items()}
    return [
        {
            "level": n,
            result["unit"]: result["lengths"][n - 1],
            "current": current,
            "previous levels": "–" if previous is None else f"{previous:.4f}",
            "later levels": "–" if future is None else f"{future:.4f}",
            "grew to": ", ".join(map(str, grown.get(n, []))) or "–",
            "": "passed" if n <= result["cleared"] else "failed",
        }
        for n, (current, previous, future) in enumerate(
            zip(result["current"], result["previous_by_level"], result["future_by_level"], strict=True), start=1
        )
    ]


def _title(result: dict[str, Any], name: str, folder: Path) -> str:
    scores = ", ".join(f"{score} {result[score]:.3f}" for score in ("ACC", "BWT", "FWT"))
    return f"{name}: {result['cleared']} of {result['config']['levels']} levels cleared; {scores}; {folder}"
