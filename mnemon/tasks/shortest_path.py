"""Shortest paths by structured prediction (Graves et al. 2016)."""

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from .._errors import require
from ._contract import AbstractInteractive, Episode
from ._graphs import (
    ANSWER,
    DIGITS,
    PLANNING_STEPS,
    TRANSITION,
    TRIPLE,
    AbstractGraphTask,
    Exam,
    Lesson,
    answer_steps,
    blank_steps,
    counted_episodes,
    decode,
    describe,
    encode,
    episode_of,
    shown_steps,
)
from ._symbols import mean_where
from ._worlds import LABELS, Triples, as_arrays, distances, london
from .traversal import walkable_graph

_FAR = 10_000
_WORLD_PATH = 4  # as published for London
_SPARE_STEPS = 5  # moves beyond the longest shortest path before an episode is given up
_CHANCE_EPISODES = 512


class ShortestPath(AbstractGraphTask, AbstractInteractive):
    """Find a shortest path between two nodes of a graph that was described before.

    ```
    graph  (633, 215, 119)
    graph  (119, 215, 780)
    graph  (780, 564, 633)
    ...
    query  (633, ___, 780)
    plan   (___, ___, ___)      (ten steps)
    answer (___, ___, ___)  ->  (633, 215, 119)
    answer (633, 215, 119)  ->  (119, 215, 780)
    ```

    The output is read as a distribution over the triples that leave the node where the network stands, so that every
    move is legal; the triple it chose is its next input. In training it follows a shortest path with probability
    `planner`, otherwise its own choice; what is wanted is always the next step of a shortest path from where it stands
    (DAgger). In evaluation it chooses for itself.

    **Options:**

    - `lesson`: which of the 15 lessons: sizes of graphs and lengths of paths.
    - `replay`: share of episodes from earlier lessons; the paper has none here.
    - `graph`: random; london: the interchanges of the London Underground, never to be trained on; or a CSV file of your
      own, a triple `source,edge,destination` a line.
    - `path`: exact length of the path; without it that of the lesson, or 4 in a graph that is not random.
    - `planner`: beta, how often a move in training is the planner's.

    **Notes.** The paper caps episodes at an unstated number of steps, here five more than the longest path asked for.
    Where a graph has no pair at the distance drawn, the next shorter distance is taken; where the network has walked
    to a node from which no path leads to the goal, nothing more is wanted and the path counts as wrong. `minimal`,
    the share of paths that are shortest, is the paper's score; 80 % passes (the paper's text also passes paths one
    step too long, its table does not). Chance is a random legal walk, counted on 512 episodes.
    """

    measures: ClassVar[str] = "planning on a stored graph"
    phases: ClassVar[tuple[str, ...]] = ("query", "plan", "answer")
    exam: ClassVar[Exam] = Exam("minimal", pass_mark=0.8, check_every=2000, episodes=50, replay=0.0)
    lessons: ClassVar[tuple[Lesson, ...]] = tuple(
        Lesson(*ranges)
        for ranges in (
            ((5, 10), (1, 2), (2, 2)),
            ((5, 20), (1, 2), (2, 2)),
            ((10, 20), (1, 2), (2, 2)),
            ((10, 20), (1, 2), (2, 3)),
            ((10, 20), (1, 3), (2, 3)),
            ((10, 20), (2, 3), (2, 3)),
            ((10, 20), (2, 3), (2, 4)),
            ((10, 20), (2, 4), (2, 4)),
            ((10, 25), (2, 4), (2, 4)),
            ((10, 25), (2, 4), (2, 5)),
            ((10, 25), (2, 4), (2, 5)),
            ((15, 25), (2, 4), (2, 5)),
            ((15, 25), (2, 5), (2, 5)),
            ((20, 25), (2, 5), (2, 5)),
            ((20, 25), (2, 6), (2, 5)),
        )
    )
    worlds: ClassVar[Mapping[str, Callable[[], Triples]]] = {"london": london}
    path: int | None = eqx.field(static=True, default=None)
    planner: float = eqx.field(static=True, default=0.8)

    def __check_init__(self):
        require(self.path is None or self.path >= 1, "path", self.path, "at least one edge", "path=4")
        require(0.0 <= self.planner <= 1.0, "planner", self.planner, "a probability", "planner=0.8")
        if self.world is None:
            farthest, which = self.largest("nodes") - 1, f"graphs of at most {self.largest('nodes')} nodes"
        else:
            self.world.require_labels(LABELS)
            farthest, which = int(distances(self.world.triples).max()), str(self.world.name)
        wanted = f"at most {farthest} edges, the longest shortest path in {which}"
        require(self.longest <= farthest, "path", self.longest, wanted, f"path={farthest}")

    @property
    def longest(self) -> int:
        """The longest path asked for."""
        if self.path is not None:
            return self.path
        return self.largest("path") if self.world is None else _WORLD_PATH

    @property
    def moves(self) -> int:
        """How many moves an episode allows."""
        return self.longest + _SPARE_STEPS

    @property
    def edges(self) -> int:
        """Room for the description of a graph."""
        if self.world is None:
            return self.largest("nodes") * self.largest("degree")
        return int(np.prod(as_arrays(self.world.triples)[3].shape))

    @property
    def horizon(self) -> int:
        return self.edges + 1 + PLANNING_STEPS + self.moves

    @property
    def teaching(self) -> float:
        return self.planner

    @property
    def chance(self) -> dict[str, float]:
        episodes = counted_episodes(self, _CHANCE_EPISODES)
        loss, moves, minimal = (float(value) for value in _mean_luck(self, episodes))
        return {"loss": loss, "moves": moves, "minimal": minimal}

    def luck(self, episode: Episode) -> Float[Array, "3"]:
        """Loss of even odds; how often a random move is right on the teacher's path, and a random walk shortest."""
        world = self.begin(episode)
        legal = world.leaving(world.triples[:, 2])  # [edge, edges that may follow it]
        best = jnp.min(jnp.where(legal, world.steps[None], _FAR), axis=1, keepdims=True)
        good = legal & (world.steps[None] == best)
        share = good / jnp.maximum(legal.sum(axis=1, keepdims=True), 1)
        arrives = world.triples[:, 2] == world.goal
        luck = arrives.astype(jnp.float32)
        for _ in range(self.longest):
            luck = jnp.where(arrives, 1.0, share @ luck)
        first = world.leaving(world.node[None])[0]
        right = first & (world.steps == jnp.min(jnp.where(first, world.steps, _FAR)))
        minimal = jnp.sum(jnp.where(right, luck, 0.0)) / jnp.maximum(first.sum(), 1)
        at = world.leaving(decode(episode.targets)[:, 0])
        nearest = jnp.min(jnp.where(at, world.steps[None], _FAR), axis=1, keepdims=True)
        each = jnp.sum(at & (world.steps[None] == nearest), axis=1) / jnp.maximum(at.sum(axis=1), 1)
        loss = self.loss(jnp.zeros_like(episode.targets), episode)
        return jnp.stack([loss, mean_where(each, episode.mask), minimal])

    @property
    def perfect(self) -> dict[str, float]:
        return {"loss": 0.0, "moves": 1.0, "minimal": 1.0}

    def sample(self, key: PRNGKeyArray) -> Episode:
        lesson_key, graph_key, order_key, length_key, pair_key = jax.random.split(key, 5)
        nodes, degree, path = self.draw_lesson(lesson_key)
        graph = walkable_graph(graph_key, self.world, nodes, degree, self.largest("nodes"), self.largest("degree"))
        length = jax.random.randint(length_key, (), path[0], path[1] + 1)
        if self.path is not None or self.world is not None:
            length = jnp.asarray(self.longest)
        apart = _distances(graph.destination, graph.present, self.longest)
        start, goal = _draw_pair(pair_key, apart, length)

        def follow(node: Int[Array, ""], _):
            closer = graph.present[node] & (apart[graph.destination[node], goal] == apart[node, goal] - 1)
            slot = jnp.argmax(closer)
            after = graph.destination[node, slot]
            labels = (graph.node_label[node], graph.edge_label[node, slot], graph.node_label[after])
            return jnp.where(node == goal, node, after), (jnp.stack(labels), node != goal)

        _, (triples, moving) = jax.lax.scan(follow, start, length=self.moves)
        one = jnp.ones((1,), bool)
        ends = jnp.stack([graph.node_label[start], jnp.asarray(0), graph.node_label[goal]])[None]
        query = shown_steps(ends, jnp.asarray([[True, False, True]]), one)
        answer = answer_steps(triples, jnp.ones((self.moves,), bool))
        taken = encode(triples, jnp.broadcast_to(moving[:, None], triples.shape))
        inputs = answer.inputs.at[1:, :TRIPLE].set(taken[:-1])
        targets = answer.targets * moving[:, None]
        answer = answer._replace(inputs=inputs, targets=targets, mask=moving)
        return episode_of(describe(order_key, graph), query, blank_steps(PLANNING_STEPS), answer)

    def begin(self, episode: Episode) -> "Walk":
        labels = decode(episode.inputs)
        query = jnp.argmax(episode.inputs[:, TRANSITION])  # the first step of the first phase after the description
        triples, there = labels[: self.edges], jnp.arange(self.edges) < query
        goal = labels[query, 2]
        steps = _steps_to(goal, triples, there, self.largest("nodes") if self.world is None else self.edges)
        nothing, no = jnp.zeros((3,), triples.dtype), jnp.asarray(False)
        return Walk(triples, there, steps, goal, labels[query, 0], nothing, nothing, no, no)

    def feed(self, world: "Walk", given: Float[Array, " channels"]) -> Float[Array, " channels"]:
        taken = encode(world.taken[None], jnp.ones((1, 3), bool))[0]
        own = jnp.concatenate([taken, given[TRIPLE:]])
        return jnp.where((given[ANSWER] == 1.0) & jnp.any(world.taken > 0), own, given)

    def react(
        self,
        world: "Walk",
        output: Float[Array, " outputs"],
        given: Float[Array, " channels"],
        key: PRNGKeyArray | None,
    ) -> "Walk":
        legal = world.leaving(world.node[None])[0]
        best = jnp.argmin(jnp.where(legal, world.steps, _FAR))
        choice = jnp.argmax(jnp.where(legal, _scores(output[None], world.triples)[0], -jnp.inf))
        if key is not None:
            choice = jnp.where(jax.random.bernoulli(key, self.planner), best, choice)
        moves = (given[ANSWER] == 1.0) & ~world.arrived
        taken = jnp.where(moves, world.triples[choice], world.taken)
        node = jnp.where(moves, taken[2], world.node)
        return world._replace(
            node=node,
            taken=taken,
            wanted=world.triples[best],
            moved=moves & (world.steps[best] < _FAR),
            arrived=world.arrived | (moves & (node == world.goal)),
        )

    def lived(self, episode: Episode, worlds: "Walk") -> Episode:
        wanted = encode(worlds.wanted, jnp.broadcast_to(worlds.moved[:, None], worlds.wanted.shape))
        steps = jnp.arange(episode.mask.shape[0]) < episode.length
        return episode._replace(targets=wanted, mask=worlds.moved & steps)

    def loss(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, ""]:
        logs, _ = self._moves(outputs, episode)
        world_triples = decode(episode.inputs[: self.edges])
        same = jnp.all(decode(episode.targets)[:, None] == world_triples[None], axis=-1)
        wanted = jnp.max(jnp.where(same, logs, -jnp.inf), axis=1)
        return -jnp.sum(jnp.where(episode.mask, wanted, 0.0))

    def metrics(self, outputs: Float[Array, "time outputs"], episode: Episode) -> dict[str, Float[Array, ""]]:
        _, right = self._moves(outputs, episode)
        return {
            "loss": self.loss(outputs, episode),
            "moves": mean_where(right.astype(outputs.dtype), episode.mask),
            "minimal": jnp.all(right | ~episode.mask).astype(outputs.dtype),
        }

    def _moves(
        self, outputs: Float[Array, "time outputs"], episode: Episode
    ) -> tuple[Float[Array, "time edges"], Bool[Array, " time"]]:
        """Log-probabilities of the legal moves at each step, and whether the likeliest is one of a shortest path."""
        world = self.begin(episode)
        legal = world.leaving(decode(episode.targets)[:, 0]) | ~episode.mask[:, None]
        logs = jax.nn.log_softmax(jnp.where(legal, _scores(outputs, world.triples), -jnp.inf), axis=1)
        chosen = world.steps[jnp.argmax(logs, axis=1)]
        return logs, chosen == jnp.min(jnp.where(legal, world.steps[None], _FAR), axis=1)


@eqx.filter_jit
def _mean_luck(task: ShortestPath, episodes: Episode) -> Float[Array, "3"]:
    return jax.vmap(task.luck)(episodes).mean(axis=0)


class Walk(NamedTuple):
    """Where the network stands on the graph that was described to it."""

    triples: Int[Array, "*time edges three"]
    there: Bool[Array, "*time edges"]
    steps: Int[Array, "*time edges"]  # moves to the goal, the edge's own included
    goal: Int[Array, "*time"]
    node: Int[Array, "*time"]
    taken: Int[Array, "*time three"]  # the last move
    wanted: Int[Array, "*time three"]  # the planner's move at the last step
    moved: Bool[Array, "*time"]  # whether the last step was a move from where the goal can be reached
    arrived: Bool[Array, "*time"]

    def leaving(self, nodes: Int[Array, " many"]) -> Bool[Array, "many edges"]:
        """The edges that leave each of some nodes."""
        return (self.triples[None, :, 0] == nodes[:, None]) & self.there[None]


def _scores(outputs: Float[Array, "time outputs"], triples: Int[Array, "edges three"]) -> Float[Array, "time edges"]:
    """Log-probability of each triple: the sum of those of its nine digits."""
    logs = jax.nn.log_softmax(outputs.reshape(-1, DIGITS, 10), axis=-1).reshape(outputs.shape)
    return logs @ encode(triples, jnp.ones(triples.shape, bool)).T


def _steps_to(
    goal: Int[Array, ""], triples: Int[Array, "edges three"], there: Bool[Array, " edges"], longest: int
) -> Int[Array, " edges"]:
    """Moves from the start of each edge to the goal by way of that edge."""
    follows = (triples[:, None, 2] == triples[None, :, 0]) & there[:, None] & there[None]
    arrives = (triples[:, 2] == goal) & there

    def relax(_, steps: Int[Array, " edges"]) -> Int[Array, " edges"]:
        after = jnp.min(jnp.where(follows, steps[None], _FAR), axis=1)
        return jnp.where(arrives, 1, jnp.minimum(after + 1, _FAR))

    return jax.lax.fori_loop(0, longest, relax, jnp.where(arrives, 1, _FAR))


def _distances(
    destination: Int[Array, "nodes slots"], present: Bool[Array, "nodes slots"], longest: int
) -> Int[Array, "nodes nodes"]:
    """Moves between nodes, as far as `longest`."""
    size = destination.shape[0]
    links = jnp.any(jax.nn.one_hot(destination, size, dtype=bool) & present[:, :, None], axis=1)
    near, apart = jnp.eye(size, dtype=bool), jnp.where(jnp.eye(size, dtype=bool), 0, _FAR)
    for steps in range(1, longest + 1):
        near = near @ links
        apart = jnp.where(near & (apart == _FAR), steps, apart)
    return apart


def _draw_pair(
    key: PRNGKeyArray, apart: Int[Array, "nodes nodes"], length: Int[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Two nodes at a distance, or at the greatest distance below it that there is."""
    distance = jnp.max(jnp.where(apart <= length, apart, 0))
    pair = jnp.argmax(jnp.where(apart == distance, jax.random.uniform(key, apart.shape), -1.0))
    return pair // apart.shape[0], pair % apart.shape[0]
