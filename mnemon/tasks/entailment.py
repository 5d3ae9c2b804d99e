"""Entailment read as one sequence (thesis 3.7.4): SICK and SNLI."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..data import find
from ..data._read import BadFile, read_member, read_text
from ._contract import Episode
from ._examples import AbstractExamples, Split
from ._symbols import AbstractClasses, AbstractNamed, best_guess

LABELS = ("entailment", "neutral", "contradiction")
UNKNOWN, SEPARATOR = 0, 1
_SPECIAL = ("<unk>", "<sep>")
_WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
# The names that the columns of label, premise and hypothesis have in the files of the two corpora.
_COLUMNS = (("gold_label", "sentence1", "sentence2"), ("entailment_judgment", "sentence_A", "sentence_B"))
_SNLI_NAMES = {"train": "train", "valid": "dev", "test": "test"}


class Entailment(AbstractExamples, AbstractNamed, AbstractClasses):
    """Read a premise, then a hypothesis, and say whether the first entails the second.

    ```
    two dogs are fighting <sep> two dogs are wrestling and hugging
    neutral
    ```

    The label is wanted at the last word. Words of the training part that occur there are symbols; all others are
    `<unk>`. With `--embedding-size` their vectors are trained.

    **Options:**

    - `corpus`: sick, snli, or snli-subset (a 25th of the training pairs; its results are NOT comparable with published
      ones).
    - `split`: the part of the data: train, valid or test.
    - `vectors`: a text file of pretrained vectors, a word and its numbers a line, to start the embeddings from.
    - `data`: folder that holds the files; `MNEMON_DATA`, else the download cache, without it.

    **Notes.** The thesis names neither the sizes nor a separator; here `<sep>` stands between the sentences. Pairs
    without a gold label are left out. The chance level is that of the commonest label. An error below a tenth of it
    counts as solved.
    """

    measures: ClassVar[str] = "comparing two sentences read one after the other"
    needs: ClassVar[str | None] = "sick"
    words: Int[Array, "examples time"]
    lengths: Int[Array, " examples"]
    labels: Int[Array, " examples"]
    start_vectors: Float[Array, "symbols embedded"] | None
    symbols: tuple[str, ...] = eqx.field(static=True)
    split: Split = eqx.field(static=True)

    def __init__(
        self,
        corpus: Literal["sick", "snli", "snli-subset"] = "sick",
        split: Split = "train",
        vectors: str | None = None,
        data: str | None = None,
    ):
        training = _pairs(corpus, "train", data)
        self.symbols = _SPECIAL + tuple(sorted({word for _, *sentences in training for s in sentences for word in s}))
        index = {word: number for number, word in enumerate(self.symbols)}
        pairs = training if split == "train" else _pairs(corpus, split, data)
        rows = [
            [*(index.get(word, UNKNOWN) for word in premise), SEPARATOR, *(index.get(w, UNKNOWN) for w in hypothesis)]
            for _, premise, hypothesis in pairs
        ]
        lengths = np.asarray([len(row) for row in rows])
        table = np.zeros((len(rows), lengths.max()), np.int32)
        for row, words in zip(table, rows, strict=True):
            row[: len(words)] = words
        self.words, self.lengths = jnp.asarray(table), jnp.asarray(lengths)
        self.labels = jnp.asarray([LABELS.index(label) for label, _, _ in pairs])
        self.start_vectors = None if vectors is None else jnp.asarray(read_vectors(Path(vectors), self.symbols))
        self.split = split

    @property
    def output_size(self) -> int:
        return len(LABELS)

    @property
    def vectors(self) -> Float[Array, "symbols embedded"] | None:
        return self.start_vectors

    @property
    def horizon(self) -> int:
        return self.words.shape[1]

    @property
    def examples(self) -> int:
        return self.words.shape[0]

    @property
    def chance(self) -> dict[str, float]:
        return best_guess(np.bincount(np.asarray(self.labels), minlength=len(LABELS)))

    def example(self, index: Int[Array, ""]) -> Episode:
        last = jnp.arange(self.horizon) == self.lengths[index] - 1
        return Episode(self.words[index], jnp.where(last, self.labels[index], 0), last, self.lengths[index])

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return 1.0 - metrics["accuracy"] < 0.1 * (1.0 - self.chance["accuracy"])

    def show(self, episode: Episode) -> str:
        length = int(episode.length)
        words = " ".join(self.symbols[int(word)] for word in episode.inputs[:length])
        return f"{words}\n{LABELS[int(episode.targets[length - 1])]}"


Pair = tuple[str, tuple[str, ...], tuple[str, ...]]


def _pairs(corpus: str, split: Split, data: str | None) -> tuple[Pair, ...]:
    if corpus == "snli":
        return _read(find("snli", "archive", data), f"snli_1.0/snli_1.0_{_SNLI_NAMES[split]}.txt")
    return _read(find(corpus, split, data), None)


@lru_cache(maxsize=4)
def _read(path: Path, member: str | None) -> tuple[Pair, ...]:
    text = read_text(path) if member is None else read_member(path, member)
    pairs = tuple(_parse(path, text))
    if not pairs:
        raise BadFile(path, None, "holds no pair of sentences with a gold label")
    return pairs


def _parse(path: Path, text: str) -> Iterator[Pair]:
    """Label, premise and hypothesis of each row of a table with tabs and a header."""
    lines = text.splitlines()
    header = lines[0].split("\t")
    names = next((names for names in _COLUMNS if set(names) <= set(header)), None)
    if names is None:
        raise BadFile(path, 1, f"has columns {', '.join(header)}; wanted {' or '.join(', '.join(n) for n in _COLUMNS)}")
    columns = [header.index(name) for name in names]
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if len(cells) <= max(columns):
            raise BadFile(path, number, f"has {len(cells)} columns, its header {len(header)}")
        label, *sentences = (cells[column] for column in columns)
        if label == "-":
            continue
        if label.lower() not in LABELS:
            raise BadFile(path, number, f"label {label!r} is none of {', '.join(LABELS)}")
        premise, hypothesis = (tuple(_WORD.findall(sentence.lower())) for sentence in sentences)
        if not hypothesis:
            raise BadFile(path, number, "the hypothesis is empty")
        yield label.lower(), premise, hypothesis


def read_vectors(path: Path, symbols: tuple[str, ...]) -> np.ndarray:
    """Vectors for symbols from a text file; symbols that it lacks get random ones of the same spread."""
    wanted, found, size = set(symbols), {}, 0
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        word, *numbers = line.rstrip().split(" ")
        size = size or len(numbers)
        if len(numbers) != size or not size:
            raise BadFile(path, number, f"has {len(numbers)} numbers, the lines before {size}")
        if word in wanted:
            try:
                found[word] = np.asarray(numbers, np.float32)
            except ValueError as error:
                raise BadFile(path, number, str(error)) from error
    if not found:
        raise BadFile(path, None, "has none of the words of the corpus")
    spread = float(np.std(list(found.values())))
    random = np.random.RandomState(0).normal(0.0, spread, (len(symbols), size)).astype(np.float32)
    for number, word in enumerate(symbols):
        random[number] = found.get(word, random[number])
    return random
