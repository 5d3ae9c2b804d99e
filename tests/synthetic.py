"""Small files in the formats of the real data sets, and a catalogue that knows their checksums."""

import gzip
import hashlib
import io
import lzma
import tarfile
from pathlib import Path

import numpy as np

from mnemon.data import DATASETS, DataFile, Dataset, Form

TRAIN, TEST = 60, 20
STORY = """1 Mary got the milk there.
2 John moved to the bedroom.
3 What is Mary carrying? \tmilk\t1
4 John took the apple.
5 What is John carrying? \tapple,milk\t4
1 Sandra went to the office.
2 Where is Sandra? \toffice\t1
"""
TEXT = "It was a bright cold day in April, and the clocks were striking thirteen.\n" * 40
PAIRS = [
    ("A man is sleeping", "A man is awake", "contradiction"),
    ("Two dogs are running", "Some animals are moving", "entailment"),
    ("A woman reads", "A woman reads a long book", "neutral"),
]


def write(folder: Path) -> dict[str, Dataset]:
    """Write the files of all data sets; returns their catalogue."""
    random = np.random.default_rng(0)
    for part, count in (("train", TRAIN), ("t10k", TEST)):
        images = random.integers(0, 256, (count, 28, 28), np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        _write(folder / f"mnist/{part}-images-idx3-ubyte.gz", gzip.compress(_idx(images), mtime=0))
        _write(folder / f"mnist/{part}-labels-idx1-ubyte.gz", gzip.compress(_idx(labels), mtime=0))
    _write(folder / "mnist_strokes/strokes_int8.npz", _strokes(random))
    spaced = "".join(" " + " ".join(line.replace(" ", "_")) + " \n" for line in TEXT.splitlines())
    for split in ("train", "valid", "test"):
        _write(folder / f"ptb/ptb.char.{split}.txt.xz", lzma.compress(spaced.encode()))
    _write(folder / "text/tinyshakespeare.txt.xz", lzma.compress(TEXT.encode()))
    _write(folder / "text/kjv_bible.txt.xz", lzma.compress(TEXT.encode()))
    rows = [f"{n}\t{a}\t{b}\t3.0\t{label.upper()}" for n, (a, b, label) in enumerate(PAIRS * 10)]
    table = "\n".join(["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment", *rows]) + "\n"
    for name in ("train", "trial", "test_annotated"):
        _write(folder / f"sick/SICK_{name}.txt", table.encode())
    _write(folder / "babi/tasks_1-20_v1-2_en_en-10k.tar.xz", _babi())
    return {name: _catalogue(dataset, folder) for name, dataset in DATASETS.items()}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _idx(values: np.ndarray) -> bytes:
    header = (0x0800 + values.ndim).to_bytes(4, "big") + b"".join(n.to_bytes(4, "big") for n in values.shape)
    return header + values.tobytes()


def _strokes(random: np.random.Generator) -> bytes:
    arrays = {}
    for part, count in (("train", TRAIN), ("test", TEST)):
        lengths = random.integers(3, 9, count).astype(np.int32)
        strokes = random.integers(-1, 2, (lengths.sum(), 4)).astype(np.int8)
        strokes[:, 2:] = 0
        strokes[np.cumsum(lengths) - 1] = (0, 0, 1, 1)
        strokes[np.cumsum(lengths) - lengths, :2] = (14, 5)
        labels = (np.arange(count) % 10).astype(np.uint8)
        arrays |= {f"{part}_seq": strokes, f"{part}_len": lengths, f"{part}_label": labels}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _babi() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:xz") as archive:
        for size in ("en", "en-10k"):
            for task in (1, 8):
                for part in ("train", "test"):
                    info = tarfile.TarInfo(f"tasks_1-20_v1-2/{size}/qa{task}_some-name_{part}.txt")
                    content = (STORY * 10).encode()
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def _catalogue(dataset: Dataset, folder: Path) -> Dataset:
    """The entry of a data set with the checksums of the files that are in the folder."""
    files = tuple(DataFile(file.role, tuple(_form(form, folder) for form in file.forms)) for file in dataset.files)
    return Dataset(dataset.name, dataset.what, dataset.licence, dataset.how, files)


def _form(form: Form, folder: Path) -> Form:
    path = folder / form.path
    if not path.is_file():
        return form
    content = path.read_bytes()
    return Form(form.path, len(content), hashlib.sha256(content).hexdigest(), form.urls)
