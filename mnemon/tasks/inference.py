"""Graph inference: relations that stand for paths (Graves et al. 2016)."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from ._contract import Episode
from ._graphs import (
    PLANNING_STEPS,
    AbstractGraphTask,
    Graph,
    Lesson,
    answer_steps,
    blank_steps,
    counted_episodes,
    describe,
    different_labels,
    episode_of,
    random_graph,
    shown_steps,
    unique_labels,
)
from ._worlds import Triples, as_arrays, family

EDGES = 10  # labels of edges are 0 to 9, those of relations 10 to 409
LENGTHS = (2, 3, 4, 5)
EACH = 100  # relations of each length
_WORLD_LENGTH = 4  # as published for a family
_CHANCE_EPISODES = 512


def _relations() -> np.ndarray:
    """The edges of each relation, [400, 5], -1 after its end. They are the same in all runs and never shown."""
    random = np.random.RandomState(0)
    table = np.full((len(LENGTHS) * EACH, max(LENGTHS)), -1)
    for group, length in enumerate(LENGTHS):
        codes = random.choice(10**length, EACH, replace=False)
        for place in range(length):
            table[group * EACH : (group + 1) * EACH, place] = codes // 10**place % 10
    return table


class Inference(AbstractGraphTask):
    """Answer where a relation leads: a label that stands for a fixed, hidden sequence of edges.

    ```
    graph  (633, 004, 119)
    graph  (119, 007, 780)
    ...
    query  (633, 057, ___)
    plan   (___, ___, ___)      (ten steps)
    answer (___, ___, ___)  ->  (633, 057, 780)
    ```

    Three queries follow each graph, each with ten steps to think. The 400 relations, a hundred of each length from 2 to
    5, are the same in all episodes and must be learnt.

    **Options:**

    - `lesson`: which of the 17 lessons: sizes of graphs and lengths of relations.
    - `replay`: share of episodes from earlier lessons.
    - `graph`: random; family: a family tree and relations of four steps, never to be trained on; or a CSV file of your
      own with at most ten kinds of edges, a triple `source,edge,destination` a line.

    **Notes.** The paper does not say how it makes sure that a relation leads somewhere; here a length is drawn, then
    a start and a relation of that length that do, or of the next shorter length if none of that length does. The
    paper's family tree is only in a figure; this one is invented, its kinds of edges (father, son 1, ...) get random
    labels in each episode. Lessons 3 and 4, and 10 and 11, are printed alike. `sequences`, the share of episodes with
    all three answers right, is the paper's score; 90 % passes. The chance level is counted on 512 episodes: the
    digits of the answers by their frequencies.
    """

    measures: ClassVar[str] = "composing edges into relations"
    phases: ClassVar[tuple[str, ...]] = ("query", "plan", "answer")
    queries: ClassVar[int] = 3
    lessons: ClassVar[tuple[Lesson, ...]] = tuple(
        Lesson(*ranges)
        for ranges in (
            ((3, 3), (2, 2), (2, 2)),
            ((3, 5), (2, 2), (2, 2)),
            ((4, 6), (2, 4), (2, 2)),
            ((4, 6), (2, 4), (2, 2)),
            ((6, 12), (2, 4), (2, 2)),
            ((12, 18), (2, 4), (2, 2)),
            ((4, 6), (2, 4), (2, 3)),
            ((6, 12), (2, 4), (2, 3)),
            ((12, 18), (2, 4), (2, 3)),
            ((4, 6), (2, 4), (2, 4)),
            ((4, 6), (2, 4), (2, 4)),
            ((6, 12), (2, 4), (2, 4)),
            ((12, 18), (2, 4), (2, 4)),
            ((4, 6), (2, 4), (2, 5)),
            ((6, 12), (2, 4), (2, 5)),
            ((12, 18), (2, 4), (2, 5)),
            ((20, 25), (2, 4), (2, 5)),
        )
    )
    worlds: ClassVar[Mapping[str, Callable[[], Triples]]] = {"family": family}

    def __check_init__(self):
        if self.world is not None:
            self.world.require_labels(EDGES)
            sources = {source for source, _, _ in self.world.triples}
            if not any(destination in sources for _, _, destination in self.world.triples):
                raise self.world.refuse(0, "nothing leads on from here or anywhere: relations are of two edges or more")

    @property
    def horizon(self) -> int:
        edges = self.largest("nodes") * self.largest("degree") if self.world is None else len(self.world.triples)
        return edges + self.queries * (PLANNING_STEPS + 2)

    @property
    def chance(self) -> dict[str, float]:
        episodes = counted_episodes(self, _CHANCE_EPISODES)
        answers = np.asarray(episodes.targets)[np.asarray(episodes.mask)]
        shares = answers.mean(axis=0)
        loss = -float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
        return {"loss": self.queries * loss, "answers": 0.0, "sequences": 0.0}

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "answers": 1.0, "sequences": 1.0}

    def sample(self, key: PRNGKeyArray) -> Episode:
        lesson_key, graph_key, order_key, query_key = jax.random.split(key, 4)
        nodes, degree, lengths = self.draw_lesson(lesson_key)
        graph = self._graph(graph_key, nodes, degree)
        lengths = lengths if self.world is None else jnp.full((2,), _WORLD_LENGTH)
        reached = _reached(graph)
        phases = [describe(order_key, graph)]
        one, first = jnp.ones((1,), bool), jnp.asarray([[True, True, False]])
        for key in jax.random.split(query_key, self.queries):
            start, relation = _draw_query(key, reached, graph.nodes, lengths)
            labels = [graph.node_label[start], relation + EDGES, graph.node_label[reached[relation, start]]]
            answer = jnp.stack(labels)[None]
            phases += [shown_steps(answer, first, one), blank_steps(PLANNING_STEPS), answer_steps(answer, one)]
        return episode_of(*phases)

    def _graph(self, key: PRNGKeyArray, nodes: Int[Array, "2"], degree: Int[Array, "2"]) -> Graph:
        size_key, edge_key, node_key, label_key = jax.random.split(key, 4)
        if self.world is not None:
            names, kinds, out, destination, edge = as_arrays(self.world.triples)
            labels = jax.random.permutation(label_key, EDGES)[: len(kinds)]
            nodes_of = unique_labels(node_key, len(names))
            return Graph(jnp.asarray(len(names)), jnp.asarray(out), jnp.asarray(destination), nodes_of, labels[edge])
        size, slots = self.largest("nodes"), self.largest("degree")
        slots = min(slots, size)
        count = jax.random.randint(size_key, (), nodes[0], nodes[1] + 1)
        out, destination = random_graph(edge_key, count, degree[0], degree[1], size, slots)
        edges = different_labels(label_key, jnp.arange(EDGES), jnp.asarray(EDGES), size, slots)
        return Graph(count, out, destination, unique_labels(node_key, size), edges)

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        return self.sequence_scores(outputs, episode, "answers")


def _reached(graph: Graph) -> Int[Array, "relations nodes"]:
    """The node to which each relation leads from each node; -1 where it leads nowhere."""
    size = graph.destination.shape[0]
    hot = jax.nn.one_hot(graph.edge_label, EDGES, dtype=bool) & graph.present[:, :, None]
    after = jnp.max(jnp.where(hot, graph.destination[:, :, None], -1), axis=1)  # [node, edge]
    table = jnp.asarray(_relations())
    place = jnp.broadcast_to(jnp.arange(size)[None], (table.shape[0], size))
    for step in range(table.shape[1]):
        edge = jnp.broadcast_to(table[:, step, None], place.shape)
        moved = jnp.where(place < 0, -1, after[place, edge])
        place = jnp.where(edge < 0, place, moved)
    return place


def _draw_query(
    key: PRNGKeyArray, reached: Int[Array, "relations nodes"], nodes: Int[Array, ""], lengths: Int[Array, "2"]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """A start and a relation that leads somewhere."""
    length_key, pair_key = jax.random.split(key)
    wanted = jax.random.randint(length_key, (), lengths[0], lengths[1] + 1)
    leads = (reached >= 0) & (jnp.arange(reached.shape[1]) < nodes)[None]
    length_of = jnp.repeat(jnp.asarray(LENGTHS), EACH)
    offered: Bool[Array, " lengths"] = leads.reshape(len(LENGTHS), -1).any(axis=1)
    usable = offered & (jnp.asarray(LENGTHS) <= wanted)
    chosen = jnp.max(jnp.where(usable, jnp.asarray(LENGTHS), LENGTHS[0]))
    allowed = leads & (length_of == chosen)[:, None]
    pair = jnp.argmax(jnp.where(allowed, jax.random.uniform(pair_key, allowed.shape), -1.0))
    return pair % reached.shape[1], pair // reached.shape[1]
