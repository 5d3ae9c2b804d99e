"""Associative retrieval (Ba et al. 2016)."""

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from .._errors import require
from ._contract import Episode
from ._symbols import AbstractClasses, AbstractNamed

Split = Literal["stream", "train", "valid", "test"]

_NAMES = "abcdefghijklmnopqrstuvwxyz0123456789?"
_LETTERS, _DIGITS, _ASK = 26, 10, 36
# How many examples each fixed set has; their order is that of the keys from which they are made.
_EXAMPLES = {"train": 100_000, "valid": 10_000, "test": 20_000}


class AssociativeRetrieval(AbstractNamed, AbstractClasses):
    """Pairs of a letter and a digit, then a letter: which digit came with it?

    ```
    in   c9k8j3f1??c
    out            9
    ```

    The letters of an episode differ, its digits need not (the paper shows one that occurs twice). Only the last step
    is scored, among all 37 symbols. Without a memory one digit in ten is right; one in `pairs` (or a little more) is
    right if the digits are remembered but not their letters. An error below 1 % counts as solved.

    **Options:**

    - `pairs`: letters with their digits, at most 26.
    - `distinct_digits`: no digit occurs twice, as in public code; then at most 10 pairs.
    - `split`: stream makes new episodes for ever; train, valid and test are the fixed sets of 100,000, 10,000 and
      20,000 examples of the paper's sizes, the first drawn from at random, the others in order.
    """

    measures: ClassVar[str] = "binding digits to letters"
    pairs: int = eqx.field(static=True, default=4)
    distinct_digits: bool = eqx.field(static=True, default=False)
    split: Split = eqx.field(static=True, default="stream")
    symbols: tuple[str, ...] = eqx.field(static=True, init=False, default=tuple(_NAMES))

    def __check_init__(self):
        require(1 <= self.pairs <= _LETTERS, "pairs", self.pairs, "1 to 26 pairs", "pairs=4")
        possible = not self.distinct_digits or self.pairs <= _DIGITS
        require(possible, "pairs", self.pairs, "at most 10 pairs if their digits are to differ", "pairs=10")
        known = ("stream", *_EXAMPLES)
        require(self.split in known, "split", self.split, f"one of {', '.join(known)}", "split=test")

    @property
    def horizon(self) -> int:
        return 2 * self.pairs + 3

    @property
    def scored_steps(self) -> int:
        return 1

    @property
    def chance(self) -> dict[str, float]:
        return {"loss": math.log(_DIGITS), "accuracy": 1.0 / _DIGITS}

    def epoch(self, size: int) -> int | None:
        """How many batches of this size show all examples once, where their number is finite."""
        return None if self.split == "stream" else -(-_EXAMPLES[self.split] // size)

    def sample(self, key: PRNGKeyArray) -> Episode:
        if self.split == "stream":
            return self._made_from(key)
        return self.example(jax.random.randint(key, (), 0, _EXAMPLES[self.split]))

    def batch(self, key: PRNGKeyArray, update: Int[Array, ""] | int, size: int) -> Episode:
        if self.split in ("stream", "train"):
            return jax.vmap(self.sample)(jax.random.split(key, size))
        return jax.vmap(self.example)((jnp.asarray(update) * size + jnp.arange(size)) % _EXAMPLES[self.split])

    def example(self, index: Int[Array, ""] | int) -> Episode:
        """One example of a fixed set."""
        seed = list(_EXAMPLES).index(self.split)
        return self._made_from(jax.random.fold_in(jax.random.key(seed), index))

    def _made_from(self, key: PRNGKeyArray) -> Episode:
        letters_key, digits_key, query_key = jax.random.split(key, 3)
        letters = jax.random.permutation(letters_key, _LETTERS)[: self.pairs]
        if self.distinct_digits:
            digits = _LETTERS + jax.random.permutation(digits_key, _DIGITS)[: self.pairs]
        else:
            digits = jax.random.randint(digits_key, (self.pairs,), _LETTERS, _LETTERS + _DIGITS)
        asked = jax.random.randint(query_key, (), 0, self.pairs)
        shown = jnp.stack([letters, digits], axis=1).reshape(-1)
        inputs = jnp.concatenate([shown, jnp.array([_ASK, _ASK]), letters[asked][None]])
        last = jnp.arange(self.horizon) == self.horizon - 1
        return Episode(inputs, jnp.where(last, digits[asked], 0), last, jnp.asarray(self.horizon))

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["accuracy"] > 0.99

    def show(self, episode: Episode) -> str:
        inputs = "".join(_NAMES[int(symbol)] for symbol in episode.inputs)
        answer = _NAMES[int(episode.targets[-1])]
        return f"in   {inputs}\nout  {answer.rjust(len(inputs))}"
