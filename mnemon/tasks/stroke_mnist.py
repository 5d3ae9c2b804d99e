"""Sequential stroke multi-digit MNIST (de Jong 2016; thesis 3.7.2)."""

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int8, PRNGKeyArray

from .._errors import require
from ..data import find
from ..data._read import BadFile
from ._contract import AbstractInteractive, Episode
from ._examples import Split
from ._symbols import AbstractClasses, best_guess, mean_where

CLASSES = 10
END = 10  # the output after the last digit
STROKE = 4  # channels dx dy eos eod; then come one for <bos> and one for each digit that is fed back
BOS = STROKE
_VALID = 10_000
# Sums of lengths beyond so many standard deviations are drawn again; that is fewer than one in a hundred thousand.
_DEVIATIONS = 6
_DRAWS = 4


class StrokeMNIST(AbstractInteractive, AbstractClasses):
    """Read the pen strokes of several digits, then name the digits in order.

    ```
    in   1 (21 strokes) 1 (20) 6 (42) 7 (29) 8 (50)  <bos> 1 1 6 7 8
    out                                              1     1 6 7 8 <end>
    ```

    A stroke is (dx, dy, end of stroke, end of digit); the absolute start of a digit is set to (0, 0). After the strokes
    the network sees `<bos>`, then the digit that it has just named: the right one in training, its own in evaluation.

    **Options:**

    - `digits`: how many digits, 1 to 20.
    - `feed_back`: whether named digits are fed back; the authors' code does not.
    - `split`: the part of the data: train, valid or test.
    - `data`: folder that holds the files; `MNEMON_DATA`, else the download cache, without it.

    **Notes.** The last 10,000 training digits validate. The authors draw 200,000 sequences once; here every episode is
    drawn anew. `digit_error` is that of the thesis; `sequence_error` counts a sequence as wrong when any digit or the
    end is (the authors' code). A digit error below a tenth of guessing counts as solved.
    """

    measures: ClassVar[str] = "recognising, counting and keeping digits over hundreds of strokes"
    needs: ClassVar[str | None] = "mnist-strokes"
    strokes: Int8[Array, "rows 4"]  # of all digits, one after the other
    starts: Int[Array, " examples"]
    lengths: Int[Array, " examples"]
    labels: Int[Array, " examples"]
    digits: int = eqx.field(static=True)
    feed_back: bool = eqx.field(static=True)
    stroke_steps: int = eqx.field(static=True)  # room for the strokes

    def __init__(self, digits: int = 5, feed_back: bool = True, split: Split = "train", data: str | None = None):
        require(1 <= digits <= 20, "digits", digits, "1 to 20 digits", "digits=5")
        strokes, lengths, labels = _read(find("mnist-strokes", "strokes", data), "test" if split == "test" else "train")
        if split != "test":
            valid = min(_VALID, len(lengths) // 6)
            first = int(lengths[:-valid].sum())
            strokes = strokes[first:] if split == "valid" else strokes[:first]
            part = slice(-valid, None) if split == "valid" else slice(None, -valid)
            lengths, labels = lengths[part], labels[part]
        usual = math.ceil(digits * lengths.mean() + _DEVIATIONS * math.sqrt(digits) * lengths.std())
        self.strokes, self.lengths, self.labels = jnp.asarray(strokes), jnp.asarray(lengths), jnp.asarray(labels)
        self.starts = jnp.asarray(np.cumsum(lengths) - lengths)
        self.digits, self.feed_back = digits, feed_back
        self.stroke_steps = min(max(usual, int(lengths.max())), digits * int(lengths.max()))

    @property
    def input_size(self) -> int:
        return STROKE + 1 + CLASSES

    @property
    def output_size(self) -> int:
        return CLASSES + 1

    @property
    def symbolic(self) -> bool:
        return False

    @property
    def horizon(self) -> int:
        return self.stroke_steps + self.digits + 1

    @property
    def teaching(self) -> float:
        return 1.0

    @property
    def chance(self) -> dict[str, float]:
        """Without a memory: `<bos>` means any digit, a digit means any digit or, once in `digits` times, the end."""
        counts = np.bincount(np.asarray(self.labels), minlength=CLASSES)
        first = best_guess(counts)
        later = best_guess(np.append(counts * (self.digits - 1), counts.sum()))["loss"]
        shares = np.sort(counts / counts.sum())[::-1]
        chain = float(np.prod(shares[: self.digits])) if self._can_chain else 0.0
        return {
            "loss": (first["loss"] + self.digits * later) / (self.digits + 1),
            "digit_error": 1.0 - first["accuracy"],
            "sequence_error": 1.0 - chain,
        }

    @property
    def _can_chain(self) -> bool:
        """Whether a fixed map from what was fed back to what comes next can get any sequence right."""
        return self.digits == 1 or (self.feed_back and self.digits <= CLASSES)

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "digit_error": 0.0, "sequence_error": 0.0}

    def sample(self, key: PRNGKeyArray) -> Episode:
        draws = jax.random.randint(key, (_DRAWS, self.digits), 0, self.labels.shape[0])
        fits = self.lengths[draws].sum(axis=1) <= self.stroke_steps
        chosen = draws[jnp.argmax(fits)]
        ends = jnp.cumsum(self.lengths[chosen])
        total = ends[-1]
        time = jnp.arange(self.horizon)
        which = jnp.minimum(jnp.searchsorted(ends, time, side="right"), self.digits - 1)
        rows = self.starts[chosen][which] + time - (ends - self.lengths[chosen])[which]
        strokes = jnp.where((time < total)[:, None], self.strokes[rows].astype(jnp.float32), 0.0)
        answer = time - total  # the answer phase counts from 0
        names = self.labels[chosen]
        fed = jax.nn.one_hot(names[jnp.clip(answer - 1, 0, self.digits - 1)], CLASSES)
        fed = jnp.where(((answer >= 1) & (answer <= self.digits))[:, None] & self.feed_back, fed, 0.0)
        bos = (answer == 0).astype(jnp.float32)
        mask = (answer >= 0) & (answer <= self.digits)
        wanted = jnp.where(answer == self.digits, END, names[jnp.clip(answer, 0, self.digits - 1)])
        inputs = jnp.concatenate([strokes, bos[:, None], fed], axis=1)
        return Episode(inputs, jnp.where(mask, wanted, 0), mask, total + self.digits + 1)

    def begin(self, episode: Episode) -> "Named":
        return Named(jnp.zeros((CLASSES,)), jnp.asarray(False))

    def feed(self, world: "Named", given: Float[Array, " channels"]) -> Float[Array, " channels"]:
        own = jnp.concatenate([given[: BOS + 1], world.digit])
        return jnp.where(world.answering & self.feed_back, own, given)

    def react(
        self,
        world: "Named",
        output: Float[Array, " outputs"],
        given: Float[Array, " channels"],
        key: PRNGKeyArray | None,
    ) -> "Named":
        answering = world.answering | (given[BOS] == 1.0)
        return Named(jax.nn.one_hot(jnp.argmax(output[:CLASSES]), CLASSES), answering)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        named = jnp.argmax(outputs[:, :CLASSES], axis=1) != episode.targets
        wrong = jnp.argmax(outputs, axis=1) != episode.targets
        return {
            "loss": self.loss(outputs, episode),
            "digit_error": mean_where(named.astype(outputs.dtype), episode.mask & (episode.targets != END)),
            "sequence_error": jnp.any(wrong & episode.mask).astype(outputs.dtype),
        }

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["digit_error"] < 0.1 * self.chance["digit_error"]

    def show(self, episode: Episode) -> str:
        inputs, mask = np.asarray(episode.inputs), np.asarray(episode.mask)
        digits = [str(int(d)) for d in np.asarray(episode.targets)[mask][:-1]]
        ends = np.flatnonzero(inputs[:, STROKE - 1] == 1) + 1
        strokes = np.diff(ends, prepend=0)
        drawn = " ".join(f"{digit} ({count})" for digit, count in zip(digits, strokes, strict=True))
        drawn = drawn.replace(")", " strokes)", 1)
        fed = digits if self.feed_back else ["."] * len(digits)
        return (
            f"in   {drawn}  <bos> {' '.join(fed)}\n"
            f"out  {' ' * len(drawn)}  {digits[0]:5} {' '.join([*digits[1:], '<end>'])}"
        )


class Named(NamedTuple):
    """What goes on while the network answers."""

    digit: Float[Array, " classes"]  # the digit just named, one-hot
    answering: Array  # whether `<bos>` has been seen


@lru_cache(maxsize=2)
def _read(path: Path, part: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strokes, lengths and labels, each digit starting at (0, 0)."""
    with np.load(path, allow_pickle=False) as archive:
        missing = {f"{part}_{name}" for name in ("seq", "len", "label")} - set(archive.files)
        if missing:
            raise BadFile(path, None, f"has no array {', '.join(sorted(missing))}")
        strokes, lengths, labels = (archive[f"{part}_{name}"] for name in ("seq", "len", "label"))
    if len(strokes) != lengths.sum() or len(lengths) != len(labels):
        raise BadFile(
            path, None, f"{len(strokes)} strokes, {lengths.sum()} in {len(lengths)} lengths, {len(labels)} labels"
        )
    strokes = strokes.astype(np.int8)
    strokes[np.cumsum(lengths) - lengths, :2] = 0
    return strokes, lengths.astype(np.int32), labels.astype(np.int32)
