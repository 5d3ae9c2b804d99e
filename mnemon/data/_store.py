"""Where the files are: a folder that the user names, or a cache that downloads fill. Every file is checked."""

import functools
import hashlib
import logging
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._errors import MnemonError, unknown
from ._catalogue import DATASETS, DataFile, Dataset, Form

VARIABLE = "MNEMON_DATA"


class MissingData(MnemonError):
    """A file of a data set is not there."""


class DamagedData(MnemonError):
    """A file has another checksum than the catalogue says: damaged, cut off, or another file under its name."""


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder that holds the data: the one given, else `MNEMON_DATA`, else the cache."""
    if folder is not None:
        return Path(folder)
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    import pooch

    return Path(pooch.os_cache("mnemon"))


def dataset(name: str) -> Dataset:
    """A data set of the catalogue."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return DATASETS[name]


def available(name: str, folder: str | Path | None = None) -> bool:
    """Whether all files of a data set are there (their content is checked when they are read)."""
    where = data_folder(folder)
    return all(any((where / form.path).is_file() for form in file.forms) for file in dataset(name).files)


def find(name: str, role: str, folder: str | Path | None = None) -> Path:
    """A file of a data set whose checksum has been found right."""
    file = next(file for file in dataset(name).files if file.role == role)
    return _sound(file, name, data_folder(folder))


def _sound(file: DataFile, name: str, where: Path) -> Path:
    for path in _present(file, where):
        expected = [form.sha256 for form in file.forms if where / form.path == path]
        found = sha256(path)
        if found not in expected:
            raise DamagedData(
                f"{path} is damaged or another file: expected sha256 {' or '.join(expected)}, found {found}; "
                f"remove it and run `mnemon data get {name}`, or put the right one there"
            )
        return path
    raise MissingData(
        f"{where / file.forms[0].path} is not there; get it by: {dataset(name).how}; or name the folder that holds it "
        f"by --data or {VARIABLE}"
    )


def _present(file: DataFile, where: Path) -> Iterator[Path]:
    return (where / form.path for form in file.forms if (where / form.path).is_file())


def sha256(path: Path) -> str:
    """The checksum of a file, computed once for each of its states."""
    state = path.stat()
    return _sha256(path.absolute(), state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256(path: Path, size: int, modified: int) -> str:
    del size, modified
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(name: str, folder: str | Path | None = None) -> list[dict[str, Any]]:
    """A row for each file of a data set: whether it is right, expected and found checksum."""
    where = data_folder(folder)
    rows = []
    for file in dataset(name).files:
        path = next(_present(file, where), None)
        found = "" if path is None else sha256(path)
        expected = [form.sha256 for form in file.forms if path is None or where / form.path == path]
        state = "missing" if path is None else "right" if found in expected else "damaged"
        rows.append(
            {
                "data": name,
                "file": str(path or where / file.forms[0].path),
                "state": state,
                "expected": found if state == "right" else " or ".join(expected),
                "found": found,
            }
        )
    return rows


def get(name: str, folder: str | Path | None = None) -> list[Path]:
    """All files of a data set, downloaded where they are not there or damaged.

    A download has another name until it is complete and its checksum is right.
    """
    where = data_folder(folder)
    return [_get_file(file, name, where) for file in dataset(name).files]


def _get_file(file: DataFile, name: str, where: Path) -> Path:
    forms = [form for form in file.forms if form.urls]
    try:
        return _sound(file, name, where)
    except (MissingData, DamagedData):
        if not forms:
            raise
    errors = []
    for form in forms:
        for url in form.urls:
            try:
                return _download(form, url, where)
            except (OSError, ValueError, EOFError, tarfile.TarError) as error:  # the line, or what came over it
                errors.append(f"{url}: {error}")
    raise MissingData(f"could not get {where / forms[0].path} (sha256 {forms[0].sha256}):\n" + "\n".join(errors))


def _download(form: Form, url: str, where: Path) -> Path:
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    target = where / form.path
    if target.exists():  # found wrong before; kept until the right one is there
        target.replace(target.with_name(target.name + ".damaged"))
    if form.make is None:
        pooch.retrieve(url, known_hash=f"sha256:{form.sha256}", fname=target.name, path=target.parent)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".getting-") as folder:
        made = Path(folder) / target.name
        form.make(Path(pooch.retrieve(url, known_hash=None, fname="download", path=folder)), made)
        found = sha256(made)
        if found != form.sha256:
            raise ValueError(f"what was made of it has sha256 {found}, expected {form.sha256}")
        made.replace(target)
    return target
