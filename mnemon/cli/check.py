"""`mnemon check`."""

import dataclasses
import json
import sys

from .._errors import require
from ._output import OUT, say


@dataclasses.dataclass(kw_only=True)
class _Check:
    """Options of the checks; those of the cell are added to them."""

    inputs: int = 3
    """Size of the input."""
    seed: int = 0
    """Seed of the cell's parameters."""
    json: bool = False
    """Print JSON."""


def check(arguments: list[str]) -> None:
    """Whether a cell keeps the contract of all cells: `mnemon check my_cell.py:MyCell [options]`."""
    if not arguments or arguments[0].startswith("-"):
        OUT.print("usage: mnemon check CELL [options]     (options: mnemon check CELL --help)", markup=False)
        sys.exit(0 if arguments else 2)
    import jax

    from .._options import changed_options, option_fields, parse_options
    from ..cells import cell_entry, cell_options, make_cell
    from ..conformance import CHECKS, check_cell

    name, entry = arguments[0], cell_entry(arguments[0])
    parameters = cell_options(entry)
    fields = option_fields(entry.cell, parameters)
    options = parse_options(f"mnemon check {name}", check.__doc__ or "", _Check, fields, arguments[1:])
    require(options.inputs >= 1, "inputs", options.inputs, "at least one", "--inputs 3")
    changed = changed_options(options, parameters)
    cell = make_cell(name, options.inputs, key=jax.random.key(options.seed), horizon=20, **changed)

    def report(which: str) -> None:
        say(f"{which}: {(CHECKS[which].__doc__ or '').splitlines()[0]}")

    passed = check_cell(cell, report=report)
    print(json.dumps({"cell": name, "passed": passed}) if options.json else f"{name} keeps the contract")
