"""Dynamic n-grams (Graves, Wayne & Danihelka 2014)."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from .._errors import require
from ._bits import bit_losses, entropy, show_bits, wrong_bits
from ._contract import AbstractTask, Episode
from ._symbols import mean_where

# Sequences behind the reference scores, and the losses above the optimum (nats a bit) that count as a solution: at
# 200 bits 1.4 bits a sequence, between the paper's NTM (about 1) and LSTM (about 3).
_SEQUENCES = 10_000
_SOLVED = 0.005


class DynamicNGrams(AbstractTask):
    r"""Predict each next bit of a random source whose statistics must be learned while it speaks.

    ```
    in   ##.##....##.#.#.#.#
    out      ....##.#.#.#.#.
    ```

    Each sequence draws a probability of 1 from Beta(1/2, 1/2) for each of the \(2^5\) contexts of five bits. The
    optimal prediction from \(N_1\) ones and \(N_0\) zeros seen in a context is
    \((N_1 + 1/2) / (N_1 + N_0 + 1)\): it is the oracle. `loss` is in nats a bit, `bits` the bits a sequence costs,
    `bit_error` the wrong bits, and `regret` the loss above the oracle's on the same sequence. A regret below 0.005
    counts as solved.

    **Options:**

    - `length`: bits of a sequence.
    - `context`: bits that the next one depends on; as many at the start are fair and not scored.

    **Notes.** No formula gives the optimum in expectation, as which contexts come depends on the bits: `perfect` and
    `chance` are means over 10,000 sequences of a fixed seed, good to 0.3 bits a sequence. Without a memory a network
    does a little better than guess, for runs of zeros and of ones tend to go on. At the default sizes the optimum is
    128.4 bits; the paper's curves have about 133, for they count the five fair bits too.
    """

    measures: ClassVar[str] = "learning statistics as they come"
    length: int = eqx.field(static=True, default=200)
    context: int = eqx.field(static=True, default=5)

    def __check_init__(self):
        require(1 <= self.context <= 16, "context", self.context, "1 to 16 bits", "context=5")
        require(
            self.length > self.context, "length", self.length, f"more bits than context={self.context}", "length=200"
        )

    @property
    def input_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return 1

    @property
    def symbolic(self) -> bool:
        return False

    @property
    def horizon(self) -> int:
        return self.length - 1

    @property
    def chance(self) -> dict[str, float]:
        repeats, best, _ = _reference(self.length, self.context)
        return self._scores(entropy(repeats), min(repeats, 1.0 - repeats), entropy(repeats) - best)

    @property
    def perfect(self) -> dict[str, float]:
        _, loss, error = _reference(self.length, self.context)
        return self._scores(loss, error, 0.0)

    def _scores(self, loss: float, error: float, regret: float) -> dict[str, float]:
        scored = self.length - self.context
        return {"loss": loss, "bits": scored * loss / math.log(2.0), "bit_error": scored * error, "regret": regret}

    def sample(self, key: PRNGKeyArray) -> Episode:
        source_key, start_key, bits_key = jax.random.split(key, 3)
        probabilities = jax.random.beta(source_key, 0.5, 0.5, (2**self.context,))
        start = jax.random.bernoulli(start_key, shape=(self.context,))

        def speak(seen: Int[Array, ""], chance: Float[Array, ""]):
            bit = chance < probabilities[seen]
            return (2 * seen + bit) % 2**self.context, bit

        chances = jax.random.uniform(bits_key, (self.length - self.context,))
        spoken = jax.lax.scan(speak, _number(start), chances)[1]
        bits = jnp.concatenate([start, spoken]).astype(float)[:, None]
        scored = jnp.arange(self.length - 1) >= self.context - 1
        return Episode(bits[:-1], bits[1:], scored, jnp.asarray(self.length - 1))

    def step_losses(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, " time"]:
        return bit_losses(outputs, episode.targets)

    def loss(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, ""]:
        return mean_where(self.step_losses(outputs, episode), episode.mask)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        loss = self.loss(outputs, episode)
        return {
            "loss": loss,
            "bits": loss * (self.length - self.context) / math.log(2.0),
            "bit_error": wrong_bits(outputs, episode.targets, episode.mask),
            "regret": loss - self.loss(self.oracle(episode), episode),
        }

    def oracle(self, episode: Episode) -> Float[Array, "time outputs"]:
        bits = episode.inputs[:, 0] > 0.5
        seen = jnp.stack([jnp.roll(bits, shift) for shift in range(self.context - 1, -1, -1)], axis=1)
        contexts = jax.vmap(_number)(seen)
        same_before = (contexts[:, None] == contexts[None]) & jnp.tri(bits.shape[0], k=-1, dtype=bool)
        counted = (same_before & episode.mask[None]).astype(float)
        ones = jnp.sum(counted * episode.targets.T, axis=1)
        zeros = jnp.sum(counted, axis=1) - ones
        return (jnp.log(ones + 0.5) - jnp.log(zeros + 0.5))[:, None]

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics["regret"] < _SOLVED

    def show(self, episode: Episode) -> str:
        return show_bits(episode)


def _number(bits: Bool[Array, " context"]) -> Int[Array, ""]:
    """The number that these binary digits write."""
    return jnp.sum(jnp.where(bits, 2 ** jnp.arange(bits.shape[0] - 1, -1, -1), 0))


@lru_cache
def _reference(length: int, context: int) -> tuple[float, float, float]:
    """How often a bit repeats the one before, and the optimum's loss and error a bit, means over many sequences.

    With its source unknown, a sequence is as if each bit were drawn by the optimal prediction itself.
    """
    generator = np.random.default_rng(0)
    every = np.arange(_SEQUENCES)
    counts = np.full((_SEQUENCES, 2**context, 2), 0.5)  # of zeros and ones seen in each context, and a half
    seen = generator.integers(0, 2**context, _SEQUENCES)
    repeats, loss, error = 0.0, 0.0, 0.0
    for _ in range(length - context):
        here = counts[every, seen]
        one = here[:, 1] / here.sum(axis=1)
        bit = (generator.random(_SEQUENCES) < one).astype(int)
        repeats += np.mean(bit == seen % 2)
        loss -= np.mean(one * np.log(one) + (1.0 - one) * np.log(1.0 - one))
        error += np.mean(np.minimum(one, 1.0 - one))
        counts[every, seen, bit] += 1.0
        seen = (2 * seen + bit) % 2**context
    scored = length - context
    return float(repeats / scored), float(loss / scored), float(error / scored)
