"""Episodic memory: the last examples of every task so far."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from .._errors import require
from ..tasks import AbstractTask, Episode


class Recent(eqx.Module):
    """A ring of the last examples of the task that is being learned."""

    episodes: Episode  # [slots, ...]
    written: Int[Array, ""]  # examples so far

    @classmethod
    def empty(cls, task: AbstractTask, slots: int) -> "Recent":
        """Before the first example."""
        like = eqx.filter_eval_shape(task.batch, jax.random.key(0), 0, slots)
        return cls(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like), jnp.asarray(0))

    def write(self, episodes: Episode) -> "Recent":
        """With the last of these episodes in the places of the oldest."""
        slots, batch = self.episodes.length.size, episodes.length.size
        count = min(slots, batch)
        places = (self.written + jnp.arange(count)) % slots
        return Recent(
            jax.tree.map(lambda old, new: old.at[places].set(new[batch - count :]), self.episodes, episodes),
            self.written + count,
        )

    def newest_first(self) -> Episode:
        """The episodes from the newest to the oldest; if there are fewer than slots, they repeat."""
        require(int(self.written) >= 1, "recent", "empty", "at least one example of the task", "updates=100")
        slots = self.episodes.length.size
        held = min(int(self.written), slots)
        places = (int(self.written) - 1 - jnp.arange(slots) % held) % slots
        return jax.tree.map(lambda leaf: leaf[places], self.episodes)


class EpisodicMemory(eqx.Module):
    """The last examples of each task before this one, padded to one length so that all can run in one pass.

    Every task has `slots` places, or, with `capacity`, an equal share of a buffer of fixed size, which shrinks from
    task to task (thesis 5.4.1). What is kept are the newest examples.

    >>> memory = EpisodicMemory(capacity=24)
    >>> memory.tasks, memory.share(1), memory.share(5)
    (0, 24, 4)
    """

    episodes: Episode | None  # [tasks, slots, ...], newest first
    slots: int = eqx.field(static=True)
    capacity: int | None = eqx.field(static=True)

    def __init__(self, *, slots: int = 10, capacity: int | None = None, episodes: Episode | None = None):
        """**Arguments:**

        - `slots`: examples of each task, if there is no `capacity`.
        - `capacity`: examples of all tasks together.
        - `episodes`: the memory so far, [tasks, slots, ...]; by default empty.
        """
        require(slots >= 1, "slots", slots, "at least one example of each task", "slots=10")
        require(capacity is None or capacity >= 1, "capacity", capacity, "at least one example", "capacity=200")
        self.slots, self.capacity, self.episodes = slots, capacity, episodes

    @property
    def tasks(self) -> int:
        """How many tasks are remembered."""
        return 0 if self.episodes is None else self.episodes.length.shape[0]

    def share(self, tasks: int) -> int:
        """How many examples each of `tasks` tasks has."""
        if self.capacity is None:
            return self.slots
        require(
            self.capacity >= tasks,
            "capacity",
            self.capacity,
            f"at least one example for each of {tasks} tasks",
            f"capacity={10 * tasks}",
        )
        return self.capacity // tasks

    def for_next_task(self) -> "EpisodicMemory":
        """The same memory, cut to make room for the examples of one more task."""
        share = self.share(self.tasks + 1)
        cut = None if self.episodes is None else jax.tree.map(lambda leaf: leaf[:, :share], self.episodes)
        return EpisodicMemory(slots=self.slots, capacity=self.capacity, episodes=cut)

    def with_task(self, recent: Recent) -> "EpisodicMemory":
        """The same memory with one more task. Not for use in a compiled function: its shape changes."""
        new = jax.tree.map(lambda leaf: leaf[None], recent.newest_first())
        old = self.for_next_task().episodes
        if old is not None:
            time = max(old.mask.shape[-1], new.mask.shape[-1])
            old, new = padded(old, time), padded(new, time)
            new = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), old, new)
        return EpisodicMemory(slots=self.slots, capacity=self.capacity, episodes=new)

    def union(self) -> Episode:
        """All examples as one batch."""
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self.episodes)


def padded(episodes: Episode, time: int) -> Episode:
    """The same episodes with steps at the end that are not scored; `length` tells that they are no real steps."""
    missing = time - episodes.mask.shape[-1]
    axis = episodes.mask.ndim - 1

    def pad(leaf: Any) -> Any:
        return jnp.pad(leaf, [(0, missing if n == axis else 0) for n in range(leaf.ndim)])

    timed = {name: pad(value) for name, value in episodes._asdict().items() if name != "length" and value is not None}
    return episodes._replace(**timed)
