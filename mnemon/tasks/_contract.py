"""The one contract that every task keeps."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


class Episode(NamedTuple):
    """One example of a task; a batch of them has a leading axis in every field."""

    inputs: Int[Array, "*batch time"] | Float[Array, "*batch time channels"]  # symbols, or vectors
    targets: Int[Array, "*batch time"] | Float[Array, "*batch time outputs"]
    mask: Bool[Array, "*batch time"]  # the steps that are scored
    length: Int[Array, "*batch"]  # number of real steps; the rest is padding
    reset: Bool[Array, "*batch"] | None = None  # whether the network's state starts afresh before the first step


class AbstractTask(eqx.Module):
    """A distribution of episodes that owns its inputs, targets, loss, metrics and reference scores.

    `sample` is a pure function of its key, so that data can be made inside a compiled update and a run can be resumed
    exactly. The methods see ONE episode; batches are made by `batch` and scored by `jax.vmap`.
    """

    measures: ClassVar[str]  # what the task measures, in a few words
    needs: ClassVar[str | None] = None  # the data set that the task reads at its default options

    @property
    @abc.abstractmethod
    def input_size(self) -> int:
        """Size of an input vector; for symbols, how many there are."""

    @property
    @abc.abstractmethod
    def output_size(self) -> int:
        """Size of an output vector."""

    @property
    @abc.abstractmethod
    def symbolic(self) -> bool:
        """Whether inputs are symbols (integers) rather than vectors."""

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """The longest dependency, in steps."""

    @property
    @abc.abstractmethod
    def chance(self) -> dict[str, float]:
        """The metrics, `loss` among them, of the best network without a memory."""

    @property
    @abc.abstractmethod
    def perfect(self) -> dict[str, float]:
        """The metrics of a perfect network."""

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray) -> Episode:
        """One episode."""

    @abc.abstractmethod
    def loss(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, ""]:
        """What is minimised, of one episode."""

    def step_losses(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, " time"]:
        """The losses whose mean over the scored steps is the loss; by default the last of these answers for all."""
        steps = jnp.arange(episode.mask.shape[0])
        last = jnp.max(jnp.where(episode.mask, steps, 0))
        return jnp.where(steps == last, self.loss(outputs, episode) * jnp.sum(episode.mask), 0.0)

    @abc.abstractmethod
    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        """What is reported, of one episode; averaged over episodes."""

    def weights(self, episode: Episode) -> dict[str, Float[Array, ""]]:
        """How much the episode counts in the averages of metrics; in those not named every episode counts the same."""
        del episode
        return {}

    @abc.abstractmethod
    def oracle(self, episode: Episode) -> Float[Array, "time outputs"]:
        """Outputs that score perfect."""

    @abc.abstractmethod
    def solved(self, metrics: Mapping[str, float]) -> bool:
        """Whether these averaged metrics count as a solution."""

    @abc.abstractmethod
    def show(self, episode: Episode) -> str:
        """The episode as a person would read it."""

    def batch(self, key: PRNGKeyArray, update: Int[Array, ""] | int, size: int) -> Episode:
        """The episodes of one update. Streams, whose episodes continue each other, go by the number of the `update`."""
        del update
        return jax.vmap(self.sample)(jax.random.split(key, size))

    def epoch(self, size: int) -> int | None:
        """How many batches of this size show all episodes once, where the task has a finite number of them."""
        del size
        return None

    @property
    def parts(self) -> "dict[str, AbstractTask]":
        """Parts of the task that are also scored apart, by name."""
        return {}

    @property
    def symbol_names(self) -> tuple[str, ...] | None:
        """What the input symbols stand for, where they are words or characters."""
        return None

    @property
    def vectors(self) -> Float[Array, "symbols embedded"] | None:
        """Vectors to start the embeddings of the symbols from, where the task has them."""
        return None

    @property
    def scored_steps(self) -> int | None:
        """At most so many steps, the last of an episode with its padding, are scored; None: any may be."""
        return None

    @property
    def carries_state(self) -> bool:
        """Whether each update's episodes continue those of the update before (a stream)."""
        return False

    @final
    def score(self, outputs: Float[Array, "batch time outputs"], episodes: Episode) -> tuple[Any, dict[str, Any]]:
        """Mean loss and metrics of a batch."""
        losses = jax.vmap(self.loss)(outputs, episodes)
        metrics = jax.vmap(self.metrics)(outputs, episodes)
        weights = jax.vmap(self.weights)(episodes)
        means = {name: values.mean() for name, values in metrics.items() if name not in weights}
        for name, weight in weights.items():
            means[name] = jnp.sum(weight * metrics[name]) / jnp.maximum(jnp.sum(weight), 1.0)
        return losses.mean(), means


class AbstractInteractive(AbstractTask):
    """A task in which the network's answers come back to it as inputs.

    An episode holds the inputs as a teacher would give them. When the network answers for itself, `FedBack` keeps
    a `world` for each episode: it begins with the episode, decides with each given input what the network sees, and
    moves on with each output. Its arrays are of one episode.
    """

    @property
    @abc.abstractmethod
    def teaching(self) -> float:
        """How often, in training, the teacher's answer comes back rather than the network's; 1: always."""

    @abc.abstractmethod
    def begin(self, episode: Episode) -> Any:
        """The world before the first step."""

    @abc.abstractmethod
    def feed(self, world: Any, given: Float[Array, " channels"]) -> Float[Array, " channels"]:
        """What the network sees."""

    @abc.abstractmethod
    def react(
        self, world: Any, output: Float[Array, " outputs"], given: Float[Array, " channels"], key: PRNGKeyArray | None
    ) -> Any:
        """The world after the network's output. With a key, the teacher answers as often as `teaching` says."""

    def lived(self, episode: Episode, worlds: Any) -> Episode:
        """The episode as it went, from the world after each step; where answers change what is right next."""
        del worlds
        return episode
