"""Graphs: what is described, walked and wanted, against slow search on the same episode."""

from collections import deque
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, evaluate, fit, make_model
from mnemon._errors import BadValue
from mnemon.feedback import FedBack, FedBackState
from mnemon.tasks import Inference, ShortestPath, Traversal
from mnemon.tasks._graphs import ANSWER, PLANNING_STEPS, TRANSITION, decode
from mnemon.tasks._worlds import as_arrays, family, london
from mnemon.tasks.inference import EDGES, _relations
from mnemon.training import Diverged, Interactive, Supervised, graph_lessons, train_curriculum
from mnemon.training.curriculum import Lessons
from mnemon.unroll import unroll


def _episodes(task, count=40, seed=0):
    batch = jax.tree.map(np.asarray, jax.jit(lambda key: task.batch(key, 0, count))(jax.random.key(seed)))
    for n in range(count):
        yield jax.tree.map(lambda leaf, n=n: leaf[n], batch)


_decode = jax.jit(decode)


def _parts(episode):
    """The triples of the description, the later inputs, and the triples wanted."""
    labels = np.asarray(_decode(episode.inputs))
    wanted = np.asarray(_decode(episode.targets))[episode.mask]
    query = int(np.flatnonzero(episode.inputs[:, TRANSITION])[0])
    return [tuple(map(int, row)) for row in labels[:query]], labels[query:], [tuple(map(int, row)) for row in wanted]


def _check_graph(triples, lesson):
    nodes = {source for source, _, _ in triples}
    assert lesson.nodes[0] <= len(nodes) <= lesson.nodes[1]
    assert {destination for _, _, destination in triples} <= nodes
    assert len({(source, edge) for source, edge, _ in triples}) == len(triples)  # labels tell a node's edges apart
    for node in nodes:
        leaving = [destination for source, _, destination in triples if source == node]
        assert min(lesson.degree[0], len(nodes) - 1) <= len(leaving) <= lesson.degree[1]
        assert node not in leaving
        assert len(set(leaving)) == len(leaving)


@pytest.mark.parametrize("number", [1, 3, 13])
def test_traversal_wants_the_walk_that_the_query_names(number):
    task = Traversal(lesson=number)
    lengths = set()
    for episode in _episodes(task):
        triples, query, wanted = _parts(episode)
        _check_graph(triples, task.lessons[number - 1])
        step = {(source, edge): destination for source, edge, destination in triples}
        *walk, end = wanted
        assert end == (0, 0, 0)
        node, edges = int(query[0, 0]), [int(edge) for edge in query[: len(walk), 1]]
        for edge, triple in zip(edges, walk, strict=True):
            assert triple == (node, edge, step[node, edge])
            node = triple[2]
        assert not query[1 : len(walk), [0, 2]].any()
        answering = episode.inputs[:, ANSWER] == 1
        np.testing.assert_array_equal(answering, episode.mask)
        assert episode.inputs[answering, : ANSWER - 1].sum() == 0  # nothing but the flags
        assert int(episode.inputs[:, TRANSITION].sum()) == 2
        lengths.add(len(walk))
    low, high = task.lessons[number - 1].path
    assert min(lengths) == low
    assert max(lengths) <= high


def test_description_comes_in_random_order():
    task = Traversal(graph="london")
    (a, b) = (_parts(episode)[0] for episode in _episodes(task, 2))
    assert len(a) == len(b) == 102
    assert [t[0] for t in a] != sorted(t[0] for t in a)
    assert len({t[0] for t in a}) == 25


def test_london_holds_what_the_lecture_quotes():
    for triple in (
        ("Bond Street", "Central W", "Notting Hill Gate"),
        ("Notting Hill Gate", "Circle anticlockwise", "Gloucester Road"),
        ("Moorgate", "Northern (Bank) S", "Bank"),
        ("Holborn", "Piccadilly W", "Leicester Square"),
    ):
        assert triple in london()
    assert len({(source, edge) for source, edge, _ in london()}) == len(london())


def test_family_leads_to_the_great_uncle():
    step = {(source, kin): destination for source, kin, destination in family()}
    assert len(step) == len(family())
    person = "Freya"
    for kin in ("mother", "mother", "father", "son 1"):
        person = step[person, kin]
    assert person == "Fergus"
    assert len(as_arrays(family())[1]) <= EDGES


def test_traversal_chance_by_counting():
    task = Traversal(lesson=4, replay=0.2)
    episodes = list(_episodes(task, 3000))
    total = 0.0
    for first in (0.0, 1.0):
        targets = np.concatenate([e.targets[e.mask & (e.inputs[:, TRANSITION] == first)] for e in episodes])
        shares = targets.mean(axis=0)
        total -= len(targets) * float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
    assert abs(total / len(episodes) / task.chance["loss"] - 1.0) < 0.02


def test_replay_brings_earlier_lessons():
    replayed = list(_episodes(Traversal(lesson=5, replay=1.0), 60))
    assert len({_nodes(e) for e in replayed} & set(range(3, 10))) > 2
    assert min(_nodes(e) for e in _episodes(Traversal(lesson=5), 60)) >= 10
    assert min(len(_parts(e)[2]) - 1 for e in replayed) == 1


def _nodes(episode) -> int:
    return len({source for source, _, _ in _parts(episode)[0]})


def _distance(triples, start, goal) -> int:
    ahead, seen = deque([(start, 0)]), {start}
    while ahead:
        node, steps = ahead.popleft()
        if node == goal:
            return steps
        for source, _, destination in triples:
            if source == node and destination not in seen:
                seen.add(destination)
                ahead.append((destination, steps + 1))
    raise AssertionError(f"no path from {start} to {goal}")


@pytest.mark.parametrize("task", [ShortestPath(lesson=1), ShortestPath(lesson=8), ShortestPath(graph="london")])
def test_the_planners_path_is_shortest(task):
    for episode in _episodes(task, 20):
        triples, query, wanted = _parts(episode)
        start, goal = int(query[0, 0]), int(query[0, 2])
        assert len(wanted) == _distance(triples, start, goal) <= task.longest
        node = start
        for triple in wanted:
            assert triple in triples
            assert triple[0] == node
            node = triple[2]
        assert node == goal
        if task.graph == "london":
            assert len(wanted) == 4
        # the planner's moves come back as inputs, one step later
        answer = np.flatnonzero(episode.mask)
        fed = np.asarray(_decode(episode.inputs))[answer[1:]]
        assert [tuple(map(int, row)) for row in fed] == wanted[:-1]
        assert answer[0] == len(triples) + 1 + PLANNING_STEPS


def test_the_four_step_pairs_of_london():
    names = as_arrays(london())[0]
    pairs = [(a, b) for a in names for b in names if _distance(london(), a, b) == 4]
    assert len(pairs) == 122


def test_a_network_that_errs_is_led_from_where_it_stands():
    """With the planner off, the walk follows the network, and what is wanted starts where the network stands."""
    task = ShortestPath(lesson=2, planner=0.0)
    model = make_model(task, "rnn", hidden_size=5, key=jax.random.key(3))

    @eqx.filter_jit
    def live(model):
        episodes = task.batch(jax.random.key(1), 0, 30)
        worlds = jax.vmap(task.begin)(episodes)
        inner = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (30, *leaf.shape)), model.cell.init_state())
        result = unroll(
            FedBack(model, task, jax.tree.map(lambda leaf: leaf[0], worlds)),
            episodes.inputs,
            state=FedBackState(inner, worlds),
            lengths=episodes.length,
            observe=lambda state: state.world,
        )
        lived = jax.vmap(task.lived)(episodes, result.observed)
        return lived, result.observed.taken, jax.vmap(task.metrics)(result.outputs, lived)

    lived, all_taken, metrics = jax.tree.map(np.asarray, live(model))
    erred = 0
    for n in range(30):
        episode = jax.tree.map(lambda leaf, n=n: leaf[n], lived)
        triples, query, wanted = _parts(episode)
        start, goal = int(query[0, 0]), int(query[0, 2])
        taken = all_taken[n][episode.mask]
        node = start
        for want, took in zip(wanted, map(tuple, taken.tolist()), strict=True):
            assert want[0] == took[0] == node
            assert _distance(triples, want[2], goal) == _distance(triples, node, goal) - 1
            assert took in triples
            node = took[2]
        minimal = node == goal and len(wanted) == _distance(triples, start, goal)
        assert bool(metrics["minimal"][n]) == minimal
        erred += not minimal
    assert 0 < erred < 30


@pytest.mark.parametrize("cell", ["gru", "tardis"])  # tardis: draws of its own in training
def test_learning_from_a_walk_is_learning_while_walking(cell: str):
    """The gradient through the loop in which answers come back is that of the episode which came of it."""
    task = ShortestPath(lesson=2, planner=0.5)
    sizes: dict[str, Any] = {"memory_slots": 3, "word_size": 4} if cell == "tardis" else {}
    model = make_model(task, cell, hidden_size=5, key=jax.random.key(3), **sizes)
    key, episodes = jax.random.key(4), task.batch(jax.random.key(1), 0, 6)
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)

    def while_walking(parameters):
        model = eqx.combine(parameters, rest)
        worlds = jax.vmap(task.begin)(episodes)
        state = FedBackState(model.cell.init_state(), jax.tree.map(lambda leaf: leaf[0], worlds))
        state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (6, *leaf.shape)), state)._replace(world=worlds)
        cell = FedBack(model, task, jax.tree.map(lambda leaf: leaf[0], worlds))
        result = unroll(
            cell,
            episodes.inputs,
            state=state,
            lengths=episodes.length,
            observe=lambda state: state.world,
            key=key,
            plan=Plan(defer=False),
        )
        return task.score(result.outputs, jax.vmap(task.lived)(episodes, result.observed))

    def afterwards(parameters):
        loss, outcome = Interactive()(eqx.combine(parameters, rest), task, episodes, None, key=key)
        return loss, outcome.metrics

    (loss, metrics), gradient = eqx.filter_jit(jax.value_and_grad(while_walking, has_aux=True))(parameters)
    (same_loss, same_metrics), same = eqx.filter_jit(jax.value_and_grad(afterwards, has_aux=True))(parameters)
    np.testing.assert_allclose(same_loss, loss, rtol=1e-5)
    assert 0 < metrics["moves"] < 1
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), same_metrics, metrics)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), same, gradient)


def test_random_moves_are_as_lucky_as_chance_says():
    task = ShortestPath(lesson=3)
    rng, hits, count = np.random.default_rng(0), 0, 0
    for episode in _episodes(task, 200):
        triples, query, wanted = _parts(episode)
        for _ in range(10):
            node, goal = int(query[0, 0]), int(query[0, 2])
            for _ in wanted:
                leaving = [t for t in triples if t[0] == node]
                node = leaving[rng.integers(len(leaving))][2]
            hits, count = hits + (node == goal), count + 1
    assert abs(hits / count - task.chance["minimal"]) < 0.06


def test_dagger_trains_and_evaluates():
    task = ShortestPath(lesson=1)
    model = make_model(task, "rnn", hidden_size=4, key=jax.random.key(0))
    result = fit(model, task, updates=2, batch=2, log_every=1)
    own = evaluate(result.model, task, episodes=20, batch=10)
    taught = evaluate(result.model, task, episodes=20, batch=10, objective=Supervised())
    assert np.isfinite(own["loss"])
    assert own["loss"] != taught["loss"]


@pytest.mark.parametrize("task", [Inference(lesson=1), Inference(lesson=14), Inference(graph="family")])
def test_relations_lead_where_their_edges_do(task):
    relations = _relations()
    lengths = set()
    for episode in _episodes(task, 20):
        triples, _, wanted = _parts(episode)
        step = {(source, edge): destination for source, edge, destination in triples}
        assert len(step) == len(triples)
        assert len(wanted) == 3
        for start, relation, end in wanted:
            edges = [int(edge) for edge in relations[relation - EDGES] if edge >= 0]
            node = start
            for edge in edges:
                node = step[node, edge]
            assert node == end
            lengths.add(len(edges))
    low, high = (4, 4) if task.graph == "family" else task.lessons[task.lesson - 1].path
    assert lengths <= set(range(low, high + 1))
    assert task.graph == "random" or lengths == {4}


def test_relations_are_fixed_and_different():
    relations = _relations()
    assert relations.shape == (400, 5)
    assert len({tuple(row) for row in relations}) == 400
    assert [(relations[100 * n : 100 * n + 100] >= 0).sum(axis=1).tolist() for n in range(4)] == [
        [n] * 100 for n in (2, 3, 4, 5)
    ]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Traversal(lesson=15), "lesson=15"),
        (lambda: Inference(lesson=0), "lesson=0"),
        (lambda: ShortestPath(planner=1.5), "planner=1.5"),
        (lambda: Traversal(replay=-0.1), "replay=-0.1"),
        (lambda: Traversal(path=0), "path=0"),
    ],
)
def test_bad_options(make, words):
    with pytest.raises(BadValue, match=words):
        make()


def test_published_lessons():
    lessons = graph_lessons(Traversal)
    assert (lessons.train[13], lessons.examine[13]) == (Traversal(lesson=14, replay=0.1), Traversal(lesson=14))
    assert len(lessons.train) == 14
    assert (lessons.pass_mark, lessons.check_every) == (0.9, 100)
    lessons = graph_lessons(ShortestPath)
    assert lessons.train[14] == ShortestPath(lesson=15)
    assert (len(lessons.train), lessons.pass_mark, lessons.check_every) == (15, 0.8, 2000)
    assert len(graph_lessons(Inference).train) == 17


class _NotFinite(Supervised):
    def __call__(self, model, task, episodes, carry, *, key):
        loss, aux = super().__call__(model, task, episodes, carry, key=key)
        return jnp.nan * loss, aux


def test_a_curriculum_passes_lessons_and_goes_on_where_it_stopped(tmp_path):
    """A pass mark of nothing passes a lesson at each examination; one beyond reach passes none."""
    easy = graph_lessons(Traversal, last=3, pass_mark=0.0, check_every=2, episodes=4)
    model = make_model(easy.train[0], "rnn", hidden_size=3, key=jax.random.key(0))
    whole = train_curriculum(model, easy, updates=10, batch=2)
    assert [passed.lesson for passed in whole.passed] == [1, 2, 3]
    assert whole.update == 6
    train_curriculum(model, easy, updates=2, batch=2, folder=tmp_path)
    rest = train_curriculum(model, easy, updates=10, batch=2, folder=tmp_path)
    assert rest.records == whole.records
    for a, b in zip(jax.tree.leaves(rest.model), jax.tree.leaves(whole.model), strict=True):
        np.testing.assert_array_equal(a, b)
    hard = graph_lessons(Traversal, last=2, pass_mark=1.1, check_every=2, episodes=4)
    stuck = train_curriculum(model, hard, updates=4, batch=2)
    assert stuck.passed == []
    assert {record["lesson"] for record in stuck.records} == {1}
    with pytest.raises(Diverged, match="at update 1; no checkpoint was kept"):
        train_curriculum(model, hard, updates=4, batch=2, objective=_NotFinite())
    train_curriculum(model, hard, updates=2, batch=2, folder=tmp_path / "hard")
    with pytest.raises(Diverged, match=r"at update 3; the last good checkpoint is .*/2$"):
        train_curriculum(model, hard, updates=4, batch=2, folder=tmp_path / "hard", objective=_NotFinite())
    with pytest.raises(BadValue, match="examine=0"):
        Lessons(easy.train, [], "sequences", 0.9, 100, 10)
