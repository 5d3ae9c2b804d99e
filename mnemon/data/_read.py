"""Readers that name file and line when something is wrong."""

import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from .._errors import MnemonError

_MAGIC = {0x0801: 1, 0x0803: 3}  # idx files of bytes: how many axes


class BadFile(MnemonError, ValueError):
    """A file whose content cannot be used."""

    def __init__(self, path: Path | str, line: int | None, problem: str):
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {problem}")


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if its name ends in .gz or .xz."""
    try:
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    except FileNotFoundError:
        raise BadFile(path, None, "there is no such file") from None
    except (EOFError, OSError, lzma.LZMAError) as error:
        raise BadFile(path, None, f"cannot be unpacked ({error})") from error


def read_text(path: Path) -> str:
    """The text of a file."""
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")  # without the mark that some editors begin a file with
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadFile(path, line, f"byte {content[error.start]:#x} is not UTF-8") from error
    if not text:
        raise BadFile(path, None, "is empty")
    return text


def read_member(path: Path, member: str) -> str:
    """The text of one file in a zip or tar archive."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                return archive.read(member).decode("utf-8")
        with tarfile.open(path) as archive:
            file = archive.extractfile(member)
            return "" if file is None else file.read().decode("utf-8")
    except KeyError:
        raise BadFile(path, None, f"has no file {member}") from None


def read_archive(path: Path, folder: str) -> dict[str, str]:
    """The text files of a folder in a tar archive, by their names."""
    # One pass: archives compressed as a whole are slow to jump about in.
    with tarfile.open(path) as archive:
        # Archives made on a Mac have a file ._NAME, which is no text, beside each file.
        wanted = [m for m in archive if m.isfile() and Path(m.name).parent.name == folder and m.name.endswith(".txt")]
        members = [member for member in wanted if not Path(member.name).name.startswith("._")]
        files = [(Path(member.name).name, archive.extractfile(member)) for member in members]
        return {name: io.TextIOWrapper(file, "utf-8").read() for name, file in files if file is not None}


def read_idx(path: Path) -> np.ndarray:
    """An array in MNIST's idx format."""
    content = read_bytes(path)
    axes = _MAGIC.get(int.from_bytes(content[:4], "big"))
    if axes is None:
        raise BadFile(path, None, f"is not an idx file of bytes (it starts with {content[:4].hex()})")
    shape = tuple(int.from_bytes(content[4 * n + 4 : 4 * n + 8], "big") for n in range(axes))
    values = np.frombuffer(content, np.uint8, offset=4 * axes + 4)
    if values.size != np.prod(shape):
        raise BadFile(path, None, f"holds {values.size} values, its header says {shape}")
    return values.reshape(shape)
