"""Graph traversal (Graves et al. 2016)."""

import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import require
from ._contract import Episode
from ._graphs import (
    DIGITS,
    AbstractGraphTask,
    Graph,
    Lesson,
    answer_steps,
    describe,
    different_labels,
    episode_of,
    random_graph,
    shown_steps,
    unique_labels,
)
from ._worlds import LABELS, Triples, World, as_arrays, london

_WORLD_PATH = 7  # as published for London


def walkable_graph(key: PRNGKeyArray, world: World | None, nodes, degree, size: int, slots: int) -> Graph:
    """A world, or a random graph, with random labels: those of nodes differ, and those of the edges of a node."""
    size_key, edge_key, node_key, pool_key, label_key = jax.random.split(key, 5)
    if world is not None:
        names, kinds, out, destination, edge = as_arrays(world.triples)
        return Graph(
            jnp.asarray(len(names)),
            jnp.asarray(out),
            jnp.asarray(destination),
            unique_labels(node_key, len(names)),
            unique_labels(pool_key, len(kinds))[edge],
        )
    count = jax.random.randint(size_key, (), nodes[0], nodes[1] + 1)
    out, destination = random_graph(edge_key, count, degree[0], degree[1], size, slots)
    edges = different_labels(label_key, unique_labels(pool_key, size), count, size, slots)
    return Graph(count, out, destination, unique_labels(node_key, size), edges)


class Traversal(AbstractGraphTask):
    """Follow a path through a graph that was described before.

    ```
    graph  (633, 215, 119)
    graph  (119, 215, 780)
    graph  (780, 564, 633)
    ...
    query  (633, 215, ___)
    query  (___, 215, ___)
    answer (___, ___, ___)  ->  (633, 215, 119)
    answer (___, ___, ___)  ->  (119, 215, 780)
    answer (___, ___, ___)  ->  (000, 000, 000)
    ```

    The query gives a start and the edges of a random walk; the answer is the walk's triples, then 000 000 000.

    **Options:**

    - `lesson`: which of the 14 lessons: sizes of graphs and lengths of walks.
    - `replay`: share of episodes from earlier lessons.
    - `graph`: random; london: the interchanges of the London Underground, never to be trained on; or a CSV file of your
      own, a triple `source,edge,destination` a line.
    - `path`: exact length of the walk; without it that of the lesson, or 7 in a graph that is not random.

    **Notes.** The paper does not say what ends an answer, nor whether labels may be 0; here they are 1 to 999. London
    is derived from open data (25 stations, 102 triples), since the paper's graph is only in a figure. `sequences`,
    the share of walks that are right in all triples, is the paper's score; 90 % passes.
    """

    measures: ClassVar[str] = "storing a graph and walking on it"
    phases: ClassVar[tuple[str, ...]] = ("query", "answer")
    lessons: ClassVar[tuple[Lesson, ...]] = tuple(
        Lesson(*ranges)
        for ranges in (
            ((3, 10), (2, 4), (1, 1)),
            ((3, 10), (2, 4), (1, 2)),
            ((5, 10), (2, 4), (1, 3)),
            ((5, 10), (2, 4), (1, 4)),
            ((10, 15), (2, 4), (1, 4)),
            ((10, 15), (2, 4), (1, 5)),
            ((10, 20), (2, 4), (1, 5)),
            ((10, 20), (2, 4), (1, 6)),
            ((10, 30), (2, 4), (1, 6)),
            ((10, 30), (2, 4), (1, 7)),
            ((10, 30), (2, 4), (1, 8)),
            ((10, 30), (2, 4), (1, 9)),
            ((10, 40), (2, 6), (1, 10)),
            ((10, 40), (2, 6), (1, 20)),
        )
    )
    worlds: ClassVar[Mapping[str, Callable[[], Triples]]] = {"london": london}
    path: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require(self.path is None or self.path >= 1, "path", self.path, "at least one edge", "path=7")
        if self.world is not None:
            self.world.require_labels(LABELS)
            self.world.require_ways_on()

    @property
    def longest(self) -> int:
        """The longest walk."""
        if self.path is not None:
            return self.path
        return self.largest("path") if self.world is None else _WORLD_PATH

    @property
    def horizon(self) -> int:
        edges = self.largest("nodes") * self.largest("degree") if self.world is None else len(self.world.triples)
        return edges + 2 * self.longest + 1

    @property
    def lengths(self) -> dict[int, float]:
        """The probability of each length of walk."""
        if self.path is not None or self.world is not None:
            return {self.longest: 1.0}
        earlier = self.replay if len(self.seen_lessons) > 1 else 0.0
        chances: dict[int, float] = {}
        for number, lesson in enumerate(reversed(self.seen_lessons)):
            share = 1.0 - earlier if number == 0 else earlier / (len(self.seen_lessons) - 1)
            low, high = lesson.path
            for length in range(low, high + 1):
                chances[length] = chances.get(length, 0.0) + share / (high - low + 1)
        return chances

    @property
    def chance(self) -> dict[str, float]:
        """Without a memory: the first triple is any; each later one is any or, once in a walk, the end."""
        mean = sum(length * p for length, p in self.lengths.items())
        some = np.asarray([99.0] + [100.0] * 9) / 999.0  # a digit of a label from 1 to 999
        later = some * (1.0 - 1.0 / mean) + np.eye(10)[0] / mean
        first = -float(some @ np.log(some))
        rest = -math.log(later[0]) - (mean - 1.0) * float(some @ np.log(later)) if mean > 1.0 else 0.0
        triples = sum(p / (length + 1) for length, p in self.lengths.items())
        return {"loss": DIGITS * (first + rest), "triples": triples, "sequences": 0.0}

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "triples": 1.0, "sequences": 1.0}

    def sample(self, key: PRNGKeyArray) -> Episode:
        lesson_key, graph_key, order_key, length_key, start_key, walk_key = jax.random.split(key, 6)
        nodes, degree, path = self.draw_lesson(lesson_key)
        graph = walkable_graph(
            graph_key, self.world, nodes, degree, self.largest("nodes"), min(self.largest("degree"), 998)
        )
        length = jax.random.randint(length_key, (), path[0], path[1] + 1)
        length = length if len(self.lengths) > 1 else jnp.asarray(self.longest)
        start = jax.random.randint(start_key, (), 0, graph.nodes)
        walk = _walk(walk_key, graph, start, self.longest)
        steps = jnp.arange(self.longest)
        parts = jnp.stack([steps == 0, steps >= 0, steps < 0], axis=1)  # which labels a query shows
        query = shown_steps(walk, parts, steps < length)
        wanted = jnp.where((jnp.arange(self.longest + 1) < length)[:, None], jnp.pad(walk, ((0, 1), (0, 0))), 0)
        answer = answer_steps(wanted, jnp.arange(self.longest + 1) <= length)
        return episode_of(describe(order_key, graph), query, answer)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        return self.sequence_scores(outputs, episode, "triples")


def _walk(key: PRNGKeyArray, graph: Graph, start: Int[Array, ""], steps: int) -> Int[Array, "steps three"]:
    """The triples of a random walk."""

    def move(node: Int[Array, ""], key: PRNGKeyArray):
        slot = jax.random.randint(key, (), 0, graph.degree[node])
        after = graph.destination[node, slot]
        labels = (graph.node_label[node], graph.edge_label[node, slot], graph.node_label[after])
        return after, jnp.stack(labels)

    return jax.lax.scan(move, start, jax.random.split(key, steps))[1]
