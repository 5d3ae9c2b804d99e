"""What the tasks share whose episodes are the examples of a data set."""

import abc
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from ._contract import AbstractTask, Episode

Split = Literal["train", "valid", "test"]


class AbstractExamples(AbstractTask):
    """A finite set of examples, held as arrays of the task so that compiled programs take them as arguments.

    Training examples are drawn at random, with replacement. Those of the other splits come in order, so that an
    epoch of batches scores each once (the last batch starts again from the front to be whole).
    """

    split: eqx.AbstractVar[Split]

    @property
    @abc.abstractmethod
    def examples(self) -> int:
        """How many examples the split has."""

    @abc.abstractmethod
    def example(self, index: Int[Array, ""]) -> Episode:
        """One example."""

    def sample(self, key: PRNGKeyArray) -> Episode:
        return self.example(jax.random.randint(key, (), 0, self.examples))

    def batch(self, key: PRNGKeyArray, update: Int[Array, ""] | int, size: int) -> Episode:
        if self.split == "train":
            return jax.vmap(self.sample)(jax.random.split(key, size))
        return jax.vmap(self.example)((jnp.asarray(update) * size + jnp.arange(size)) % self.examples)

    def epoch(self, size: int) -> int:
        return -(-self.examples // size)
