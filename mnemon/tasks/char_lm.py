"""Character language modelling (thesis 3.7.1 and 4.3.3): Penn Treebank, Shakespeare, King James, any text."""

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import BadValue, require
from ..data import DATASETS, find
from ..data._read import BadFile, read_text
from ._contract import Episode
from ._examples import Split
from ._symbols import AbstractClasses, AbstractNamed, best_guess

_TEXTS = ("ptb", "shakespeare", "kjv")
# The parts of a text that is one file: 90 % for training, 5 % each for validation and test.
_PARTS = {"train": (0.0, 0.9), "valid": (0.9, 0.95), "test": (0.95, 1.0)}


class CharLM(AbstractNamed, AbstractClasses):
    r"""Predict the next character of a text, in pieces that continue each other.

    ```
    in   First Citizen:\nBefore we proceed any further, he
    out  irst Citizen:\nBefore we proceed any further, hea
    ```

    A batch of b reads the text as b contiguous columns. The state of the network is carried from piece to piece and
    starts afresh when the text does; gradients stop at the edges of a piece (truncated BPTT).

    **Options:**

    - `text`: ptb, shakespeare, kjv, or the path of a text file (also .gz or .xz).
    - `window`: characters of a piece.
    - `split`: the part of the text: train, valid or test.
    - `vocabulary`: the text whose characters are the symbols; by default those of `text`.
    - `data`: folder that holds the data sets; `MNEMON_DATA`, else the download cache, without it.

    **Notes.** Penn Treebank has its own three files, 49 characters and an end of line; a line's spaces are only
    separators there. Other texts are cut 90 : 5 : 5. The loss of an epoch is the mean over its pieces, of which the
    last may be short, as in the authors' code; `bits` is the loss in bits for each character. Without a memory the
    best is to know which character follows which (the bigrams of this very part). No text is solved; a tenth of that
    loss would count.
    """

    measures: ClassVar[str] = "predicting text"
    needs: ClassVar[str | None] = "shakespeare"
    stream: Int[Array, " characters"]
    symbols: tuple[str, ...] = eqx.field(static=True)
    window: int = eqx.field(static=True)
    split: Split = eqx.field(static=True)

    def __init__(
        self,
        text: str = "shakespeare",
        window: int = 150,
        split: Split = "train",
        vocabulary: str | None = None,
        data: str | None = None,
    ):
        require(window >= 1, "window", window, "at least one character a piece", "window=150")
        path, characters = _read(text, split, data)
        known = "".join(sorted(set(_vocabulary_text(vocabulary or text, data))))
        where = (0, len(characters)) if text == "ptb" else tuple(int(f * len(characters)) for f in _PARTS[split])
        stream = _encode(path, characters, known)[where[0] : where[1]]
        if len(stream) < window + 1:
            raise BadFile(
                path, None, f"its {split} part has {len(stream)} characters, wanted more than window={window}"
            )
        self.stream, self.symbols, self.window, self.split = jnp.asarray(stream), tuple(known), window, split

    @property
    def horizon(self) -> int:
        return self.window

    @property
    def carries_state(self) -> bool:
        return True

    @property
    def chance(self) -> dict[str, float]:
        stream, n = np.asarray(self.stream), len(self.symbols)
        bigrams = np.bincount(stream[:-1] * n + stream[1:], minlength=n * n).reshape(n, n)
        guess = best_guess(bigrams)
        return {**guess, "bits": guess["loss"] / math.log(2.0)}

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "accuracy": 1.0, "bits": 0.0}

    def epoch(self, size: int) -> int:
        return -(-(self._rows(size) - 1) // self.window)

    def _rows(self, size: int) -> int:
        """Characters of a column when the text is cut into so many."""
        rows = self.stream.shape[0] // size
        require(rows >= 2, "batch", size, f"at most {self.stream.shape[0] // 2} columns of this text", "batch=10")
        return rows

    def sample(self, key: PRNGKeyArray) -> Episode:
        """Any piece of the text; the pieces of a run go by the number of the update, not by chance."""
        characters = self.stream.shape[0]
        number = jax.random.randint(key, (), 0, -(-(characters - 1) // self.window))
        return self._piece(jnp.asarray(0), characters, number)

    def batch(self, key: PRNGKeyArray, update: Int[Array, ""] | int, size: int) -> Episode:
        del key
        rows = self._rows(size)
        number = jnp.asarray(update) % -(-(rows - 1) // self.window)
        return jax.vmap(lambda first: self._piece(first, rows, number))(jnp.arange(size) * rows)

    def _piece(self, first: Int[Array, ""], rows: int, number: Int[Array, ""]) -> Episode:
        """Piece `number` of the column of `rows` characters that begins at `first`."""
        row = number * self.window + jnp.arange(self.window)
        length = jnp.minimum(self.window, rows - 1 - number * self.window)
        mask = jnp.arange(self.window) < length
        place = first + jnp.minimum(row, rows - 2)
        return Episode(self.stream[place], self.stream[place + 1], mask, length, number == 0)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        metrics = super().metrics(outputs, episode)
        return {**metrics, "bits": metrics["loss"] / math.log(2.0)}

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["loss"] < 0.1 * self.chance["loss"]

    def show(self, episode: Episode) -> str:
        length = int(episode.length)
        lines = [self.decode(part[:length]).replace("\n", "\\n") for part in (episode.inputs, episode.targets)]
        return f"in   {lines[0]}\nout  {lines[1]}"

    def encode(self, text: str) -> Int[Array, " characters"]:
        """The symbols of a text."""
        missing = sorted(set(text) - set(self.symbols))
        if missing:
            raise BadValue(f"{missing[0]!r} is not among the {len(self.symbols)} characters of the training text")
        return jnp.asarray([self.symbols.index(character) for character in text])

    def decode(self, symbols: Int[Array, " characters"]) -> str:
        """The text of symbols."""
        return "".join(self.symbols[int(symbol)] for symbol in symbols)


def _read(text: str, split: Split, data: str | None) -> tuple[Path, str]:
    """A text and where it comes from; Penn Treebank has a file for each split."""
    if text in _TEXTS:
        path = find(text, split if text == "ptb" else "text", data)
    else:
        path = Path(text)
        if not path.is_file() and "/" not in text and "." not in text:
            raise BadValue(f"text={text!r} is no file; known texts: {', '.join(t for t in _TEXTS if t in DATASETS)}")
    return path, _content(path, text == "ptb")


def _vocabulary_text(text: str, data: str | None) -> str:
    return _read(text, "train", data)[1]


@lru_cache(maxsize=4)
def _content(path: Path, spaced: bool) -> str:
    content = read_text(path)
    return unspaced(content) if spaced else content


def unspaced(text: str) -> str:
    r"""The characters of a file in Mikolov's form: separated by spaces, `_` for a space, an end of line for each line.

    >>> unspaced(" o n e _ l i n e \n t w o \n ")
    'one line\ntwo\n'
    """
    return text.replace(" ", "").replace("_", " ")


def _encode(path: Path, characters: str, known: str) -> np.ndarray:
    """Symbols of a text; a character that the vocabulary lacks is an error that names its line."""
    codes = np.frombuffer(characters.encode("utf-32-le"), np.uint32)
    names = np.frombuffer(known.encode("utf-32-le"), np.uint32)
    symbols = np.searchsorted(names, codes)
    wrong = np.flatnonzero(names[np.minimum(symbols, len(names) - 1)] != codes)
    if len(wrong):
        line = characters.count("\n", 0, int(wrong[0])) + 1
        character = characters[int(wrong[0])]
        raise BadFile(path, line, f"{character!r} is not among the {len(known)} characters of the vocabulary")
    return symbols.astype(np.int32)
