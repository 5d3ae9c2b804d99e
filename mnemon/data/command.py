"""`mnemon data list|get|check`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro

from .._errors import MnemonError, unknown
from ._catalogue import DATASETS
from ._store import available, check, data_folder, dataset, get

Rows = list[dict[str, Any]]


@dataclasses.dataclass(kw_only=True)
class _Options:
    action: Annotated[str, tyro.conf.Positional] = "list"
    """list, get or check."""
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Data sets; for `list` and `check` all without it."""
    data: Path | None = None
    """Folder that holds the files; `MNEMON_DATA`, else the download cache, without it."""
    json: bool = False
    """Print JSON."""


def data(arguments: list[str], print_table: Callable[[Rows, bool, str], None]) -> None:
    """List, get or check data sets."""
    options = tyro.cli(_Options, prog="mnemon data", description=data.__doc__, args=arguments)
    if options.action not in _ACTIONS:
        raise unknown("action of `mnemon data`", options.action, _ACTIONS)
    names = options.names or tuple(DATASETS)
    if options.action == "get" and not options.names:
        raise MnemonError(f"name the data sets to get, e.g. `mnemon data get mnist`; known: {', '.join(DATASETS)}")
    rows = [row for name in names for row in _ACTIONS[options.action](name, options.data)]
    shown = rows if options.json else [_in_short(row) for row in rows]
    print_table(shown, options.json, f"Data in {data_folder(options.data)}")
    damaged = [row["file"] for row in rows if row.get("state") == "damaged"]
    if damaged:
        raise MnemonError(f"damaged, cut off, or other files: {', '.join(damaged)}")


def _list(name: str, folder: Path | None) -> Rows:
    about = dataset(name)
    return [
        {
            "name": name,
            "what": about.what,
            "files": len(about.files),
            "bytes": sum(file.forms[0].size for file in about.files),
            "licence": about.licence,
            "here": "yes" if available(name, folder) else "no",
            "how": about.how,
        }
    ]


def _in_short(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the checksums of a file that is right, or not there."""
    return row if row.get("state") not in ("right", "missing") else {**row, "expected": "", "found": ""}


def _get(name: str, folder: Path | None) -> Rows:
    return [{"data": name, "file": str(path), "state": "right"} for path in get(name, folder)]


_ACTIONS: dict[str, Callable[[str, Path | None], Rows]] = {"list": _list, "get": _get, "check": check}
