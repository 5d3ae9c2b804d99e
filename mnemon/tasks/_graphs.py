"""What traversal, shortest path and inference share: random graphs, their encoding, phases (Graves et al. 2016)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from .._errors import require
from ._contract import AbstractTask, Episode
from ._symbols import certain, mean_where
from ._worlds import Triples, World, read_world

DIGITS = 9  # a triple is three labels of three decimal digits
TRIPLE = 10 * DIGITS
TRANSITION, ANSWER = TRIPLE, TRIPLE + 1  # the two channels after the triple
CHANNELS = TRIPLE + 2
PLANNING_STEPS = 10


class Lesson(NamedTuple):
    """Ranges, ends included, from which a lesson draws."""

    nodes: tuple[int, int]
    degree: tuple[int, int]  # edges that leave a node
    path: tuple[int, int]  # edges of a path, or length of a relation


class Exam(NamedTuple):
    """How the paper teaches lessons, and when one is passed."""

    score: str = "sequences"  # the metric that decides
    pass_mark: float = 0.9
    check_every: int = 100  # updates
    episodes: int = 200
    replay: float = 0.1  # share of the episodes of training from earlier lessons


class Graph(NamedTuple):
    """A directed graph with labels, in arrays of fixed size. A node's edges are its first slots."""

    nodes: Int[Array, ""]  # how many
    degree: Int[Array, " nodes"]  # 0 where there is no node
    destination: Int[Array, "nodes slots"]
    node_label: Int[Array, " nodes"]
    edge_label: Int[Array, "nodes slots"]

    @property
    def present(self) -> Bool[Array, "nodes slots"]:
        """Which edges there are."""
        return jnp.arange(self.destination.shape[1])[None] < self.degree[:, None]

    def triples(self) -> Int[Array, "edges three"]:
        """(source, edge, destination) labels of all slots."""
        source = jnp.broadcast_to(self.node_label[:, None], self.destination.shape)
        return jnp.stack([source, self.edge_label, self.node_label[self.destination]], axis=-1).reshape(-1, 3)


def unique_labels(key: PRNGKeyArray, count: int) -> Int[Array, " count"]:
    """Different numbers from 1 to 999; 0 is left for the pattern that ends an answer."""
    return jax.random.permutation(key, 999)[:count] + 1


def random_graph(key: PRNGKeyArray, nodes: Int[Array, ""], low: Int[Array, ""], high: Int[Array, ""], size, slots):
    """Places and edges: points in the unit square, each linked to its nearest neighbours, a random number of them.

    Returns the degree of each node and the destinations of its slots.
    """
    place_key, degree_key = jax.random.split(key)
    points = jax.random.uniform(place_key, (size, 2))
    apart = jnp.sum((points[:, None] - points[None]) ** 2, axis=-1)
    there = jnp.arange(size) < nodes
    apart = jnp.where(there[None] & ~jnp.eye(size, dtype=bool), apart, jnp.inf)
    _, nearest = jax.lax.top_k(-apart, slots)
    degree = jnp.minimum(jax.random.randint(degree_key, (size,), low, high + 1), nodes - 1)
    return jnp.where(there, degree, 0), nearest


def different_labels(
    key: PRNGKeyArray, pool: Int[Array, " pool"], usable: Int[Array, ""], size: int, slots: int
) -> Int[Array, "nodes slots"]:
    """Labels from the first `usable` of a pool, different among the edges of a node."""
    order = jax.random.uniform(key, (size, pool.shape[0])) + (jnp.arange(pool.shape[0]) >= usable)[None]
    return pool[jnp.argsort(order, axis=1)[:, :slots]]


class Steps(NamedTuple):
    """A phase of an episode at its greatest length; steps that are not `there` are left out."""

    inputs: Float[Array, "time channels"]
    targets: Float[Array, "time outputs"]
    mask: Bool[Array, " time"]
    there: Bool[Array, " time"]


def encode(labels: Int[Array, "time three"], shown: Bool[Array, "time three"]) -> Float[Array, "time digits"]:
    """Triples as nine one-hot digits; labels that are not shown are blank (all zero)."""
    digits = jnp.stack([labels // 100, labels // 10 % 10, labels % 10], axis=-1)
    hot = jax.nn.one_hot(digits, 10) * shown[:, :, None, None]
    return hot.reshape(labels.shape[0], TRIPLE)


def decode(vectors: Float[Array, "time digits"]) -> Int[Array, "time three"]:
    """The labels of triples: the likeliest of each digit."""
    digits = jnp.argmax(vectors[:, :TRIPLE].reshape(-1, 3, 3, 10), axis=-1)
    return digits[..., 0] * 100 + digits[..., 1] * 10 + digits[..., 2]


def shown_steps(
    labels: Int[Array, "time three"],
    shown: Bool[Array, "time three"],
    there: Bool[Array, " time"],
    *,
    begins: bool = True,
) -> Steps:
    """A phase that shows triples, or parts of them. Its first step is marked if it `begins` a phase."""
    vectors = encode(labels, shown & there[:, None])
    marks = (jnp.arange(labels.shape[0]) == 0) & begins
    flags = jnp.stack([marks, jnp.zeros_like(marks)], axis=1).astype(vectors.dtype)
    nothing = jnp.zeros_like(vectors)
    return Steps(jnp.concatenate([vectors, flags], axis=1), nothing, jnp.zeros_like(there), there)


def blank_steps(count: int) -> Steps:
    """A phase without inputs."""
    none = jnp.zeros((count, 3), int)
    return shown_steps(none, none.astype(bool), jnp.ones((count,), bool))


def answer_steps(labels: Int[Array, "time three"], there: Bool[Array, " time"]) -> Steps:
    """A phase in which triples are wanted."""
    steps = shown_steps(labels, jnp.zeros_like(labels, bool), there)
    return Steps(steps.inputs.at[:, ANSWER].set(1.0), encode(labels, jnp.ones_like(labels, bool)), there, there)


def describe(key: PRNGKeyArray, graph: Graph) -> Steps:
    """The phase that shows all triples of a graph, in random order."""
    triples, there = graph.triples(), graph.present.reshape(-1)
    order = jnp.argsort(jax.random.uniform(key, there.shape) + ~there)
    shown = jnp.ones_like(triples, bool)
    return shown_steps(triples[order], shown, there[order], begins=False)


def episode_of(*phases: Steps) -> Episode:
    """An episode from its phases, without the steps that are not there."""
    steps = jax.tree.map(lambda *parts: jnp.concatenate(parts), *phases)
    order = jnp.argsort(~steps.there, stable=True)
    steps = jax.tree.map(lambda part: part[order], steps)
    keep = steps.there[:, None].astype(steps.inputs.dtype)
    return Episode(steps.inputs * keep, steps.targets * keep, steps.mask & steps.there, jnp.sum(steps.there))


def digit_losses(outputs: Float[Array, "time outputs"], targets: Float[Array, "time outputs"]) -> Float[Array, " time"]:
    """Cross-entropy of each step, summed over the nine digits."""
    logs = jax.nn.log_softmax(outputs.reshape(-1, DIGITS, 10), axis=-1)
    return -jnp.sum(logs.reshape(targets.shape) * targets, axis=1)


def certain_of(targets: Float[Array, "time outputs"]) -> Float[Array, "time outputs"]:
    """Outputs of a network that is certain of all nine digits."""
    digits = jnp.argmax(targets.reshape(-1, 10), axis=1)
    return certain(digits, 10).reshape(targets.shape)


class AbstractGraphTask(AbstractTask):
    """A graph is described triple by triple, a query follows, then the answer is wanted.

    A label is a number of three decimal digits; a triple (source, edge, destination) is nine one-hot digits, blank
    where there is nothing to say. Two more channels mark the first step of each phase after the description, and
    the answer phase. The loss is the cross-entropy of the nine digits, summed over them and the steps of the answer.

    A lesson draws the graph's size, the number of edges that leave a node, and the length of the path; with `replay`,
    so large a share of the episodes comes from all earlier lessons alike. Instead of being drawn, the graph can be one
    of the `worlds` of the task, or that of a file; its nodes and edges then have other labels in each episode.
    """

    lessons: ClassVar[tuple[Lesson, ...]]
    exam: ClassVar[Exam] = Exam()
    worlds: ClassVar[Mapping[str, Callable[[], Triples]]]
    lesson: int = eqx.field(static=True, default=1)
    replay: float = eqx.field(static=True, default=0.0)
    graph: str = eqx.field(static=True, default="random")

    def __check_init__(self):
        last = len(self.lessons)
        require(1 <= self.lesson <= last, "lesson", self.lesson, f"1 to {last}", f"lesson={last}")
        require(0.0 <= self.replay <= 1.0, "replay", self.replay, "a share from 0 to 1", "replay=0.1")

    @property
    def world(self) -> World | None:
        """The graph, if it is not drawn at random."""
        if self.graph == "random":
            return None
        if self.graph in self.worlds:
            return World(self.graph, self.worlds[self.graph]())
        wanted = f"random, {', '.join(self.worlds)} or a file of triples whose name ends in .csv"
        is_file = Path(self.graph).suffix == ".csv"
        require(is_file, "graph", self.graph, wanted, f"graph={next(iter(self.worlds))!r}")
        return read_world(self.graph)

    @property
    def input_size(self) -> int:
        return CHANNELS

    @property
    def output_size(self) -> int:
        return TRIPLE

    @property
    def symbolic(self) -> bool:
        return False

    @property
    def seen_lessons(self) -> tuple[Lesson, ...]:
        """The lessons that episodes come from."""
        return self.lessons[0 if self.replay else self.lesson - 1 : self.lesson]

    def largest(self, what: Literal["nodes", "degree", "path"]) -> int:
        """The greatest of a range over the lessons that episodes come from."""
        return max(getattr(lesson, what)[1] for lesson in self.seen_lessons)

    def draw_lesson(self, key: PRNGKeyArray) -> tuple[Int[Array, "2"], Int[Array, "2"], Int[Array, "2"]]:
        """The ranges of nodes, degree and path of an episode."""
        again_key, which_key = jax.random.split(key)
        table = jnp.asarray(self.seen_lessons)
        last = len(self.seen_lessons) - 1
        again = jax.random.bernoulli(again_key, self.replay) & (last > 0)
        which = jnp.where(again, jax.random.randint(which_key, (), 0, max(last, 1)), last)
        return table[which, 0], table[which, 1], table[which, 2]

    def loss(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Float[Array, ""]:
        return jnp.sum(jnp.where(episode.mask, digit_losses(outputs, episode.targets), 0.0))

    def oracle(self, episode: Episode) -> Float[Array, "time outputs"]:
        return certain_of(episode.targets)

    def right(self, outputs: Float[Array, "time outputs"], episode: Episode) -> Bool[Array, " time"]:
        """The steps at which all nine digits are right."""
        return jnp.all(decode(outputs) == decode(episode.targets), axis=1)

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return metrics[self.exam.score] >= self.exam.pass_mark

    def sequence_scores(
        self, outputs: Float[Array, "time outputs"], episode: Episode, unit: str
    ) -> dict[str, Float[Array, ""]]:
        """The loss, and the shares of right steps (under the name of a `unit`) and of answers right as a whole."""
        right = self.right(outputs, episode)
        return {
            "loss": self.loss(outputs, episode),
            unit: mean_where(right.astype(outputs.dtype), episode.mask),
            "sequences": jnp.all(right | ~episode.mask).astype(outputs.dtype),
        }

    def show(self, episode: Episode) -> str:
        lines, phase = [], "graph"
        phases = iter(self.phases * 9)
        for t in range(int(episode.length)):
            vector = np.asarray(episode.inputs[t])
            phase = next(phases) if vector[TRANSITION] else phase
            seen = _triple_text(vector)
            wanted = _triple_text(np.asarray(episode.targets[t])) if bool(episode.mask[t]) else ""
            if seen.strip("_ ()") or wanted or phase == "plan":
                lines.append(f"{phase:6} {seen}{'  ->  ' + wanted if wanted else ''}")
        return "\n".join(lines)

    phases: ClassVar[tuple[str, ...]]  # names of the phases after the description, again and again


def _triple_text(vector: np.ndarray) -> str:
    parts = vector[:TRIPLE].reshape(3, 3, 10)
    names = ["".join(str(d) for d in part.argmax(axis=1)) if part.any() else "___" for part in parts]
    return f"({', '.join(names)})"


@eqx.filter_jit
def counted_episodes(task: AbstractTask, count: int) -> Episode:
    """The episodes on which a chance level is counted."""
    return task.batch(jax.random.key(0), 0, count)
