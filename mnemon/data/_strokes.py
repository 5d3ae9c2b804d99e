"""The pen strokes of MNIST from the public archive, in which every digit is two small text files."""

import io
import re
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from ._read import BadFile

_NAME = re.compile(r"(train|test)img-(\d+)-(inputdata|targetdata)\.txt")
_DIGITS = 10


def from_archive(archive: Path, target: Path) -> None:
    """Write `sequences.tar.gz` as arrays in one npz file: strokes of all digits, how many each has, and labels.

    `inputdata` is a row dx dy eos eod for each step; `targetdata` begins with the digit, one-hot. The npz file is not
    compressed, and always the same to the byte.
    """
    strokes: dict[str, dict[int, np.ndarray]] = {"train": {}, "test": {}}
    labels: dict[str, dict[int, int]] = {"train": {}, "test": {}}
    with tarfile.open(archive) as members:
        for member in members:
            match = _NAME.fullmatch(Path(member.name).name)
            file = members.extractfile(member) if match else None
            if match is None or file is None:
                continue
            part, number, kind = match.groups()
            values = np.asarray(file.read().split(), np.int8)
            if kind == "inputdata":
                if values.size == 0 or values.size % 4:
                    raise BadFile(f"{archive}:{member.name}", None, f"has {values.size} numbers, wanted four a row")
                strokes[part][int(number)] = values.reshape(-1, 4)
            else:
                labels[part][int(number)] = int(np.argmax(values[:_DIGITS]))
    arrays: dict[str, np.ndarray] = {}
    for part, found in strokes.items():
        if not found or sorted(found) != list(range(len(found))) or found.keys() != labels[part].keys():
            wanted = "inputdata and targetdata of each digit from 0 on"
            raise BadFile(archive, None, f"{part}: {len(found)} and {len(labels[part])} files, wanted {wanted}")
        rows = [found[number] for number in range(len(found))]
        arrays[f"{part}_seq"] = np.concatenate(rows)
        arrays[f"{part}_len"] = np.asarray([len(row) for row in rows], np.int16)
        arrays[f"{part}_label"] = np.asarray([labels[part][number] for number in range(len(found))], np.uint8)
    with zipfile.ZipFile(target, "w") as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            about = zipfile.ZipInfo(f"{name}.npy")  # with the first of January 1980 as its date
            about.create_system = 3
            file.writestr(about, content.getvalue())
