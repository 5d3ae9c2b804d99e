"""Episodic memory: the last examples of every task so far."""

from collections.abc import Callable
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
        return cls(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like), jnp.zeros((), int))

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
    """The last examples of each task before this one.

    Every task has `slots` places, or, with `capacity`, an equal share of a buffer of fixed size, which shrinks from
    task to task (thesis 5.4.1). What is kept are the newest examples.

    >>> memory = EpisodicMemory(capacity=24)
    >>> memory.tasks, memory.share(1), memory.share(5)
    (0, 24, 4)
    """

    episodes: tuple[Episode, ...]  # of each task [slots, ...], newest first
    slots: int = eqx.field(static=True)
    capacity: int | None = eqx.field(static=True)

    def __init__(self, *, slots: int = 10, capacity: int | None = None, episodes: tuple[Episode, ...] = ()):
        """**Arguments:**

        - `slots`: examples of each task, if there is no `capacity`.
        - `capacity`: examples of all tasks together.
        - `episodes`: the memory so far, of each task [slots, ...]; by default empty.
        """
        require(slots >= 1, "slots", slots, "at least one example of each task", "slots=10")
        require(capacity is None or capacity >= 1, "capacity", capacity, "at least one example", "capacity=200")
        self.slots, self.capacity, self.episodes = slots, capacity, episodes

    @property
    def tasks(self) -> int:
        """How many tasks are remembered."""
        return len(self.episodes)

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
        cut = jax.tree.map(lambda leaf: leaf[:share], self.episodes)
        return EpisodicMemory(slots=self.slots, capacity=self.capacity, episodes=cut)

    def with_task(self, recent: Recent) -> "EpisodicMemory":
        """The same memory with one more task. Not for use in a compiled function: its shape changes."""
        episodes = (*self.for_next_task().episodes, recent.newest_first())
        return EpisodicMemory(slots=self.slots, capacity=self.capacity, episodes=episodes)

    def batches(self, multiple: int = 1) -> list[Episode]:
        """The tasks in groups of about one length, each [tasks, slots, ...], so that a group needs one program.

        Tasks are padded by at most an eighth of the longest, which makes at most nine groups, and by more only where a
        group would not have a multiple of so many tasks. In one group of all tasks, whose lengths grow from level to
        level, nearly half of the steps would be padding.
        """
        tasks = sorted(self.episodes, key=_time, reverse=True)
        groups: list[list[Episode]] = []
        for task in tasks:
            full = bool(groups) and len(groups[-1]) % multiple == 0
            if not groups or (full and _PADDING * (_time(groups[-1][0]) - _time(task)) > _time(tasks[0])):
                groups.append([])
            groups[-1].append(task)
        return [_joined(group, jnp.stack) for group in groups]

    def union(self) -> Episode:
        """All examples as one batch."""
        return _joined(list(self.episodes), jnp.concatenate)


# One over the largest part of the longest task that another one is padded by.
_PADDING = 8


def _time(episodes: Episode) -> int:
    return episodes.mask.shape[-1]


def _joined(batches: list[Episode], join: Callable[[list[Array]], Array]) -> Episode:
    longest = max(map(_time, batches))
    return jax.tree.map(lambda *leaves: join(list(leaves)), *(padded(batch, longest) for batch in batches))


def padded(episodes: Episode, time: int) -> Episode:
    """The same episodes with steps at the end that are not scored; `length` tells that they are no real steps."""
    missing = time - episodes.mask.shape[-1]
    axis = episodes.mask.ndim - 1

    def pad(leaf: Any) -> Any:
        return jnp.pad(leaf, [(0, missing if n == axis else 0) for n in range(leaf.ndim)])

    timed = {name: pad(value) for name, value in episodes._asdict().items() if name != "length" and value is not None}
    return episodes._replace(**timed)
