"""What the commands print, and how."""

import dataclasses
import json
from typing import Any

from rich.console import Console
from rich.table import Table

OUT, ERR = Console(), Console(stderr=True)


def say(message: str) -> None:
    """A message for people, beside the results on standard output."""
    ERR.print(message, markup=False, highlight=False, soft_wrap=True)


def print_table(rows: list[dict[str, Any]], as_json: bool, title: str) -> None:
    """Rows as a table for people, or as one JSON list for scripts."""
    if as_json:
        print(json.dumps(rows))
        return
    table = Table(title=title, title_justify="left", header_style="bold")
    for number, column in enumerate(rows[0]):
        numeric = all(isinstance(row[column], int | float) for row in rows)
        # The first column is what one types in a command: never cut.
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(_cell_text(value) for value in row.values()))
    OUT.print(table)


def _cell_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclasses.dataclass(kw_only=True)
class Listing:
    """Options of a command that lists."""

    json: bool = False
    """Print JSON."""
