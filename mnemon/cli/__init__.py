"""The command line: `mnemon COMMAND`, a module here for each group of commands."""

import inspect
import sys
from collections.abc import Callable

from rich.table import Table

from .._cores import use_cores
from .._errors import MnemonError, unknown
from ._output import OUT, say
from .check import check
from .experiments import demo, experiments, report, reproduce
from .listings import cells, tasks
from .tools import bench, data, lens, lifelong
from .training import evaluate, sample, train

COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "cells": cells,
    "tasks": tasks,
    "check": check,
    "train": train,
    "evaluate": evaluate,
    "sample": sample,
    "data": data,
    "bench": bench,
    "lens": lens,
    "lifelong": lifelong,
    "experiments": experiments,
    "reproduce": reproduce,
    "report": report,
    "demo": demo,
}


def main(arguments: list[str] | None = None) -> None:
    """Entry point of `mnemon`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        _usage()
        return
    try:
        if name not in COMMANDS:
            raise unknown("command", name, COMMANDS)
        use_cores()
        COMMANDS[name](rest)
    except MnemonError as error:
        from ..training import Interrupted

        stopped = isinstance(error, Interrupted)
        say(str(error) if stopped else f"error: {error}")
        sys.exit(130 if stopped else 2)
    except BrokenPipeError:
        sys.exit(141)


def _usage() -> None:
    OUT.print("[bold]mnemon[/]: recurrent networks that remember\n")
    table = Table(box=None, show_header=False)
    for name, command in COMMANDS.items():
        table.add_row(f"mnemon {name}", (inspect.getdoc(command) or "").splitlines()[0])
    OUT.print(table)
    OUT.print("\nEach takes [bold]--help[/], and [bold]--json[/] for scripts.")
