"""Sequence-to-sequence associative retrieval (Schlag & Schmidhuber 2017)."""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import BadValue, require
from ._contract import Episode
from ._symbols import AbstractClasses, AbstractNamed, accuracy, cross_entropy

Split = Literal["train", "valid", "test"]

_NAMES = " abcdefghSQ(),."
_SPACE, _FIRST, _LETTERS = 0, 1, 8
_QUERIES = {"train": 100_000, "valid": 5_000, "test": 5_000}
_MOST_STORAGES, _SHORTEST_KEY, _LONGEST_KEY = 10, 2, 4
_BLOCK = re.compile(r"((?:S\([a-h]{2,4},[a-h]\),)*)Q\(([a-h]{2,4})\) \.")


class Seq2SeqRetrieval(AbstractNamed, AbstractClasses):
    """A long text stores values under keys and asks for them.

    ```
    in   S(hgb,c),S(ceaf,e),Q(ceaf) .S(ab,d),Q(ab) .
    out                            e              d
    ```

    Before each query come 1 to 10 storages. Keys have 2 to 4 letters and values one, all from a to h and uniform; the
    key asked for is that of any storage since the last query, and the latest of its values is wanted, in the step of
    the space after the query. Everywhere else a space is wanted, and scored too.

    The text is one sequence, cut into as many columns as there are episodes in a batch; the batches of a run go
    through them in segments, and the state of the network goes on from one to the next.

    `accuracy` and `bits` are of all steps, `partial_accuracy` and `partial_bits` of the answers alone, and a partial
    accuracy of 95 % (the paper's is 95.2 %) counts as solved.

    **Options:**

    - `split`: train has 100,000 queries, valid and test 5,000 each.
    - `segment`: steps of an episode, and so of truncated backpropagation through time.

    **Notes.** The paper's example is missing from its text: the syntax is that whose mean length, 57.5 characters a
    query, gives its totals (5.7 million and 288,000) with its 15 characters. Its table's partial bits (0.0063 at an
    accuracy of 0.53) are too few to be bits of an answer; ours are.
    """

    measures: ClassVar[str] = "a dictionary that is written, asked and overwritten"
    text: Int[Array, " characters"]
    answers: Int[Array, " characters"]
    split: Split = eqx.field(static=True)
    segment: int = eqx.field(static=True)

    def __init__(self, split: Split = "train", segment: int = 32):
        require(split in _QUERIES, "split", split, f"one of {', '.join(_QUERIES)}", "split=test")
        require(segment >= 1, "segment", segment, "at least one step", "segment=32")
        text, answers = _dialogue(_QUERIES[split], list(_QUERIES).index(split))
        self.text, self.answers = jnp.asarray(text), jnp.asarray(answers)
        self.split, self.segment = split, segment

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(_NAMES)

    @property
    def horizon(self) -> int:
        """From the first storage of a longest block to its answer."""
        return _MOST_STORAGES * (_LONGEST_KEY + 6) + _LONGEST_KEY + 4

    @property
    def carries_state(self) -> bool:
        return True

    @property
    def chance(self) -> dict[str, float]:
        """A space is an answer's place, and its letter is guessed."""
        asked = _QUERIES[self.split] / self.text.shape[0]
        return {
            "loss": asked * math.log(_LETTERS),
            "accuracy": 1.0 - asked * (1.0 - 1.0 / _LETTERS),
            "partial_accuracy": 1.0 / _LETTERS,
            "bits": asked * math.log2(_LETTERS),
            "partial_bits": math.log2(_LETTERS),
        }

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "accuracy": 1.0, "partial_accuracy": 1.0, "bits": 0.0, "partial_bits": 0.0}

    def epoch(self, size: int) -> int | None:
        """How many batches of this size show the whole text once."""
        return -(-self._rows(size) // self.segment)

    def _rows(self, size: int) -> int:
        """Characters of a column when the text is cut into so many."""
        rows = self.text.shape[0] // size
        require(rows >= 1, "batch", size, f"at most {self.text.shape[0]} columns of this text", "batch=256")
        return rows

    def sample(self, key: PRNGKeyArray) -> Episode:
        """Any segment; those of a run go by the number of the update, not by chance."""
        number = jax.random.randint(key, (), 0, self.text.shape[0] // self.segment)
        return self._piece(jnp.asarray(0), self.text.shape[0], number)

    def batch(self, key: PRNGKeyArray, update: Int[Array, ""] | int, size: int) -> Episode:
        del key
        rows = self._rows(size)
        number = jnp.asarray(update) % -(-rows // self.segment)
        return jax.vmap(lambda first: self._piece(first, rows, number))(jnp.arange(size) * rows)

    def _piece(self, first: Int[Array, ""], rows: int, number: Int[Array, ""]) -> Episode:
        """Segment `number` of the column of `rows` characters that begins at `first`."""
        time = jnp.arange(self.segment)
        row = number * self.segment + time
        place = first + jnp.minimum(row, rows - 1)
        length = jnp.minimum(self.segment, rows - number * self.segment)
        return Episode(self.text[place], self.answers[place], time < length, length, number == 0)

    def read(self, text: str) -> Episode:
        """The episode of a text of one's own.

        >>> task = Seq2SeqRetrieval(split="test")
        >>> print(task.show(task.read("S(ab,c),S(ab,d),Q(ab) .")))
        in   S(ab,c),S(ab,d),Q(ab) .
        out                       d
        """
        wanted, end = [" "] * len(text), 0
        for block in _BLOCK.finditer(text):
            stored = dict(re.findall(r"\((\w+),(\w)\)", block[1]))
            if block.start() != end:
                break
            if block[2] not in stored:
                known = ", ".join(stored) or "nothing"
                raise BadValue(f"the key {block[2]!r} was not stored since the last query, which stored {known}")
            end = block.end()
            wanted[end - 2] = stored[block[2]]
        if end != len(text) or not text:
            raise BadValue(f"cannot read {text[end:]!r}: wanted storages and a query, e.g. 'S(ab,c),Q(ab) .'")
        inputs, targets = (jnp.asarray([_NAMES.index(c) for c in line], jnp.int8) for line in (text, wanted))
        steps = jnp.arange(len(text))
        return Episode(inputs, targets, steps >= 0, jnp.asarray(len(text)), steps == 0)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        metrics, asked = super().metrics(outputs, episode), episode.mask & (episode.targets != _SPACE)
        return {
            **metrics,
            "partial_accuracy": accuracy(outputs, episode.targets, asked),
            "bits": metrics["loss"] / math.log(2.0),
            "partial_bits": cross_entropy(outputs, episode.targets, asked) / math.log(2.0),
        }

    def weights(self, episode: Episode) -> dict[str, Float[Array, ""]]:
        asked = jnp.sum(episode.mask & (episode.targets != _SPACE)).astype(float)
        return {"partial_accuracy": asked, "partial_bits": asked}

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["partial_accuracy"] >= 0.95

    def show(self, episode: Episode) -> str:
        length = int(episode.length)
        inputs, targets = (
            "".join(_NAMES[int(symbol)] for symbol in line[:length]) for line in (episode.inputs, episode.targets)
        )
        return f"in   {inputs}\nout  {targets}".rstrip(" ")


@lru_cache(maxsize=3)
def _dialogue(queries: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The symbols of a text with so many queries, and those wanted for it."""
    generator = np.random.default_rng(seed)
    storages = generator.integers(1, _MOST_STORAGES + 1, queries)
    ends = np.cumsum(storages)
    starts, total = ends - storages, int(ends[-1])
    lengths = generator.integers(_SHORTEST_KEY, _LONGEST_KEY + 1, total)
    keys = generator.integers(_FIRST, _FIRST + _LETTERS, (total, _LONGEST_KEY), np.int8)
    keys = np.where(np.arange(_LONGEST_KEY) < lengths[:, None], keys, np.int8(-1))
    values = generator.integers(_FIRST, _FIRST + _LETTERS, total, np.int8)
    asked = keys[starts + generator.integers(0, storages)]
    same = np.all(keys == np.repeat(asked, storages, axis=0), axis=1)
    latest = np.maximum.reduceat(np.where(same, np.arange(total), -1), starts)

    # One row for each token, -1 where a character is absent; queries go after their storages.
    stored = _tokens("S(", keys, ",?),", values)
    queried = _tokens("Q(", asked, ")?.", np.full(queries, _SPACE, np.int8))
    rows = np.insert(stored, ends, queried, axis=0)
    wanted = np.full_like(rows, _SPACE)
    answer_column = 2 + _LONGEST_KEY + 1
    wanted[ends + np.arange(queries), answer_column] = values[latest]
    present = rows >= 0
    return rows[present], wanted[present]


def _tokens(before: str, keys: np.ndarray, after: str, values: np.ndarray) -> np.ndarray:
    """Rows of the symbols `before`, key, `after` with the value in place of its question mark."""
    columns = [np.full(len(keys), _NAMES.index(c), np.int8) for c in before]
    columns += list(keys.T)
    columns += [values if c == "?" else np.full(len(keys), _NAMES.index(c), np.int8) for c in after]
    columns += [np.full(len(keys), -1, np.int8)] * (2 + _LONGEST_KEY + 4 - len(columns))
    return np.stack(columns, axis=1)
