"""What the commands print, and how."""

import dataclasses
import json
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

OUT, ERR = Console(), Console(stderr=True)


def say(message: str) -> None:
    """A message for people, beside the results on standard output."""
    ERR.print(message, markup=False, highlight=False, soft_wrap=True)


def print_table(rows: list[dict[str, Any]], as_json: bool, title: str) -> None:
    """Rows as a table for people, or as one JSON list for scripts."""
    if as_json:
        print(json.dumps(rows))
        return
    texts = [{name: _cell_text(value) for name, value in row.items()} for row in rows]
    OUT.print(title, style="italic", highlight=False, markup=False)  # a table would fold it to its own width
    OUT.print(_columns(rows, texts) if _fits(rows, texts) else _records(texts))


# Rows that would fill more lines of the window than this would be folded into columns of a few letters.
_MOST_LINES = 1.5
_FRAME = 3  # what separates two columns


def _fits(rows: list[dict[str, Any]], texts: list[dict[str, str]]) -> bool:
    """Whether rows can stand in columns without words of headings or numbers being folded."""
    lines = sum(len(text) for row in texts for text in row.values()) / (len(texts) * OUT.width)
    words = sum(max(map(len, column.split())) + _FRAME for column in texts[0])
    numbers = sum(
        max(len(text[column]) for text in texts) + _FRAME
        for column in texts[0]
        if all(isinstance(row[column], int | float) for row in rows)
    )
    return lines <= _MOST_LINES and max(words, numbers) <= OUT.width


def _columns(rows: list[dict[str, Any]], texts: list[dict[str, str]]) -> Table:
    table = Table(header_style="bold")
    filled = [column for column in texts[0] if any(row[column] for row in texts)]
    for number, column in enumerate(filled):
        numeric = all(isinstance(row[column], int | float) for row in rows)
        # The first column is what one types in a command: never cut.
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=number == 0)
    for row in texts:
        table.add_row(*(row[column] for column in filled))
    return table


def _records(texts: list[dict[str, str]]) -> Group:
    """Row after row, a line or more for each field that says something; the first names the row."""
    parts: list[RenderableType] = []
    width = max((len(field) for row in texts for field in list(row)[1:]), default=0)
    for row in texts:
        (_, name), *fields = row.items()
        table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
        table.add_column(no_wrap=True, style="dim", min_width=width)
        table.add_column(overflow="fold")
        for field, text in fields:
            if text:
                table.add_row(field, escape(text))
        parts += [Text(name, "bold"), table]
    return Group(*parts)


def _cell_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclasses.dataclass(kw_only=True)
class Listing:
    """Options of a command that lists."""

    json: bool = False
    """Print JSON."""
