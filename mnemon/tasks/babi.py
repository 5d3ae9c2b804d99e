"""bAbI, all twenty tasks together (Weston et al. 2015; Graves et al. 2016)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from .._errors import require
from ..data import find
from ..data._read import BadFile, read_archive
from ._contract import AbstractTask, Episode
from ._examples import AbstractExamples, Split
from ._symbols import AbstractClasses, AbstractNamed, best_guess

TASK_COUNT = 20
_ANSWER = "-"
_NAME = re.compile(r"qa(\d+)_.*_(train|test)\.txt$")
# Of ten training stories of a task, the last validates.
_VALID_EVERY = 10


class BAbI(AbstractExamples, AbstractNamed, AbstractClasses):
    """Read a story and answer its questions, word by word.

    ```
    mary got the milk there . john moved to the bedroom . what is mary carrying ? -
    answers: milk
    ```

    A story with all its questions is one sequence. After each `?` comes a `-` for each word of the answer, at which
    that word is wanted. All twenty tasks are read together, without a sign which is which.

    **Options:**

    - `size`: en-10k or en: 10,000 or 1,000 training questions a task.
    - `number`: only this one of the 20 tasks; all without it.
    - `longest`: leave out training stories of more words than this; none without it.
    - `split`: the part of the data: train, valid or test.
    - `data`: folder that holds the files; `MNEMON_DATA`, else the download cache, without it.

    **Notes.** Words are lower-case, digits are dropped (156 words, `.`, `?` and `-`: 159 symbols). Of the training
    stories of each task a tenth validates. Training stories are drawn alike from all tasks, so that tasks of many
    short stories come more often. `error` is the share of a story's questions with any wrong word, averaged over
    stories; a task with more than 5 % has failed. **If the archive lacks the training file of task 3 of en-10k, as
    the one in the catalogue does, training is without that task: say so beside the numbers.** Without a memory the
    commonest answer is best. An error of 5 % or less counts as solved.
    """

    measures: ClassVar[str] = "answering questions about stories"
    needs: ClassVar[str | None] = "babi"
    words: UInt8[Array, " tokens"]  # of all stories, one after the other
    answers: UInt8[Array, " tokens"]  # the word wanted at each `-`
    starts: Int[Array, " examples"]
    lengths: Int[Array, " examples"]
    symbols: tuple[str, ...] = eqx.field(static=True)
    longest_story: int = eqx.field(static=True)
    split: Split = eqx.field(static=True)
    size: str = eqx.field(static=True)
    number: int | None = eqx.field(static=True)
    data: str | None = eqx.field(static=True)

    def __init__(
        self,
        size: Literal["en-10k", "en"] = "en-10k",
        number: int | None = None,
        longest: int | None = None,
        split: Split = "train",
        data: str | None = None,
    ):
        require(
            number is None or 1 <= number <= TASK_COUNT, "number", number, f"a task from 1 to {TASK_COUNT}", "number=1"
        )
        path = find("babi", "archive", data)
        symbols, stories = read_stories(path, size)
        chosen = [story for story in stories if _in_split(story, split) and number in (None, story.task)]
        chosen = [s for s in chosen if longest is None or split != "train" or len(s.words) <= longest]
        if not chosen:
            raise BadFile(path, None, f"has no {split} stories of task {number or 'any'} in {size}")
        lengths = np.asarray([len(story.words) for story in chosen])
        self.words = jnp.asarray(np.concatenate([story.words for story in chosen]))
        self.answers = jnp.asarray(np.concatenate([story.answers for story in chosen]))
        self.starts, self.lengths = jnp.asarray(np.cumsum(lengths) - lengths), jnp.asarray(lengths)
        self.symbols, self.longest_story = symbols, int(lengths.max())
        self.split, self.size, self.number, self.data = split, size, number, data

    @property
    def horizon(self) -> int:
        return self.longest_story

    @property
    def examples(self) -> int:
        return self.lengths.shape[0]

    @property
    def parts(self) -> dict[str, AbstractTask]:
        if self.number is not None:
            return {}
        size: Literal["en-10k", "en"] = "en" if self.size == "en" else "en-10k"
        present = {story.task for story in read_stories(find("babi", "archive", self.data), size)[1]}
        return {
            f"task {number}": BAbI(size, number, None, self.split, self.data)
            for number in sorted(present)
            if self.split == "test" or number in _trained(find("babi", "archive", self.data), size)
        }

    @property
    def chance(self) -> dict[str, float]:
        words, answers = np.asarray(self.words), np.asarray(self.answers)
        asked = words == self.symbols.index(_ANSWER)
        story = np.repeat(np.arange(self.examples), np.asarray(self.lengths))
        weight = 1.0 / np.bincount(story[asked])[story[asked]] / self.examples
        counts = np.bincount(answers[asked], weight, minlength=len(self.symbols))
        question = np.cumsum(asked & ~np.append(False, asked[:-1]))[asked] - 1
        first = np.flatnonzero(np.append(True, np.diff(question) > 0))
        wrong = np.bincount(question, answers[asked] != np.argmax(counts)) > 0
        of_story = story[asked][first]
        error = np.bincount(of_story, wrong) / np.bincount(of_story)
        return {"loss": best_guess(counts)["loss"], "error": float(error.mean())}

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "error": 0.0}

    def example(self, index: Int[Array, ""]) -> Episode:
        length, time = self.lengths[index], jnp.arange(self.longest_story)
        place = self.starts[index] + jnp.minimum(time, length - 1)
        words = self.words[place].astype(jnp.int32)
        mask = (words == self.symbols.index(_ANSWER)) & (time < length)
        return Episode(words, jnp.where(mask, self.answers[place], 0).astype(jnp.int32), mask, length)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        wrong = (jnp.argmax(outputs, axis=1) != episode.targets) & episode.mask
        return {"loss": self.loss(outputs, episode), "error": _question_error(wrong, episode.mask)}

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["error"] <= 0.05

    def show(self, episode: Episode) -> str:
        words = " ".join(self.symbols[int(word)] for word in episode.inputs[: int(episode.length)])
        answers = [self.symbols[int(word)] for word in np.asarray(episode.targets)[np.asarray(episode.mask)]]
        return f"{words}\nanswers: {' '.join(answers)}"


def _question_error(wrong: Bool[Array, " time"], asked: Bool[Array, " time"]) -> Float[Array, ""]:
    """The share of questions, runs of `asked` steps, with any wrong step."""
    first = asked & ~jnp.append(False, asked[:-1])
    question = jnp.cumsum(first)
    failed = jax.ops.segment_max(wrong.astype(jnp.float32), question, asked.shape[0] + 1)
    return jnp.sum(jnp.maximum(failed, 0.0)) / jnp.maximum(jnp.sum(first), 1)


class Story(NamedTuple):
    """A story in symbols."""

    task: int
    part: str  # of which file: train or test
    number: int  # in its file, from 0
    words: np.ndarray
    answers: np.ndarray


def _in_split(story: Story, split: Split) -> bool:
    if split == "test":
        return story.part == "test"
    return story.part == "train" and (story.number % _VALID_EVERY == _VALID_EVERY - 1) == (split == "valid")


def _trained(path: Path, size: str) -> set[int]:
    """The tasks that have a training file."""
    return {story.task for story in read_stories(path, size)[1] if story.part == "train"}


@lru_cache(maxsize=2)
def read_stories(path: Path, size: str) -> tuple[tuple[str, ...], list[Story]]:
    """The vocabulary of all files of a folder of the archive, and their stories."""
    files = [(_NAME.match(name), text) for name, text in sorted(read_archive(path, size).items())]
    parsed = {match: _parse(f"{path}:{size}/{match.string}", text) for match, text in files if match}
    if not parsed:
        raise BadFile(path, None, f"has no files of bAbI tasks in a folder {size}")
    found = {word for stories in parsed.values() for words, answers in stories for word in (*words, *answers)}
    symbols = tuple(sorted(found - {""}))
    index = {word: number for number, word in enumerate(symbols)}
    stories = []
    for match, parts in parsed.items():
        task, part = match.groups()
        for number, (words, answers) in enumerate(parts):
            arrays = (np.asarray([index.get(word, 0) for word in line], np.uint8) for line in (words, answers))
            stories.append(Story(int(task), part, number, *arrays))
    return symbols, stories


def _parse(where: str, text: str) -> list[tuple[list[str], list[str]]]:
    """The stories of a file: words, and beside each the answer wanted at it ("" at most)."""
    stories: list[tuple[list[str], list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        identity, _, rest = line.partition(" ")
        if not identity.isdigit():
            raise BadFile(where, number, f"starts with {identity!r}, not with a number")
        if identity == "1":
            stories.append(([], []))
        if not stories:
            raise BadFile(where, number, "a story must start with line 1")
        sentence, *answer = rest.split("\t")
        words = sentence.lower().replace(".", " .").replace("?", " ?").replace(",", " ").split()
        wanted = answer[0].lower().split(",") if answer else []
        if "?" in words and not all(wanted or [""]):
            raise BadFile(where, number, "a question without an answer")
        stories[-1][0].extend(words + [_ANSWER] * len(wanted))
        stories[-1][1].extend([""] * len(words) + wanted)
    return stories
