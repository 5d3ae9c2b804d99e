"""Graphs of a user's own: what a file may hold, and what is asked about it."""

import jax
import numpy as np
import pytest

from mnemon._errors import BadValue
from mnemon.data._read import BadFile
from mnemon.tasks import Inference, ShortestPath, Traversal
from mnemon.tasks._graphs import TRANSITION, decode
from mnemon.tasks._worlds import as_arrays, distances, london

RING = [("a", "on", "b"), ("b", "on", "c"), ("c", "on", "d"), ("d", "on", "a"), ("a", "across, twice", "c")]


def _file(folder, text, name="graph.csv"):
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.fixture
def ring(tmp_path):
    lines = ["\ufeffsource,edge,destination", *(f'{source},"{edge}",{end}' for source, edge, end in RING), ""]
    return _file(tmp_path, "\n".join(lines))


def _described(episode):
    """The triples of the description."""
    query = int(np.flatnonzero(episode.inputs[:, TRANSITION])[0])
    return [tuple(map(int, row)) for row in decode(episode.inputs)[:query]]


def _degrees(triples):
    """How many edges leave each node, and how many kinds of edges there are."""
    leaving = sorted(sum(source == node for source, _, _ in triples) for node in _nodes(triples))
    return leaving, len({edge for _, edge, _ in triples})


def _nodes(triples):
    return {node for source, _, destination in triples for node in (source, destination)}


@pytest.mark.parametrize("make", [lambda ring: Traversal(graph=ring), lambda ring: ShortestPath(graph=ring, path=3)])
def test_the_graph_of_a_file_is_described_with_other_labels_each_time(ring, make):
    task = make(ring)
    episodes = [task.sample(jax.random.key(seed)) for seed in (0, 1)]
    first, second = map(_described, episodes)
    assert len(first) == len(second) == len(RING)
    assert _degrees(first) == _degrees(second) == _degrees(RING)
    assert _nodes(first) != _nodes(second)
    for episode in episodes:
        wanted = np.asarray(decode(episode.targets))[np.asarray(episode.mask)]
        edges = [tuple(map(int, row)) for row in wanted if row.any()]
        assert len(edges) == task.longest
        assert set(edges) <= set(_described(episode))


def test_relations_are_asked_about_the_graph_of_a_file(ring):
    episode = Inference(graph=ring).sample(jax.random.key(0))
    triples = _described(episode)
    assert _degrees(triples) == _degrees(RING)
    wanted = np.asarray(decode(episode.targets))[np.asarray(episode.mask)]
    assert len(wanted) == 3
    assert {int(node) for start, _, end in wanted for node in (start, end)} <= _nodes(triples)


def test_distances_are_those_of_a_search():
    names, apart = as_arrays(london())[0], distances(london())
    assert (apart == 4).sum() == 122
    assert apart[names.index("Bank"), names.index("Holborn")] == 1
    np.testing.assert_array_equal(np.diag(apart), 0)
    one_way = distances((("a", "x", "b"), ("b", "x", "c")))
    np.testing.assert_array_equal(one_way, [[0, 1, 2], [-1, 0, 1], [-1, -1, 0]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "graph.csv: is empty"),
        ("source,edge,destination\n\n", "graph.csv: holds no triple"),
        ("a,x,b\nb,x\n", "line 2: has 'b,x'; wanted source,edge,destination"),
        ("a,x,b\nb,x,\n", "line 2"),
        ("a,x,b\nb,x,a\na,x,a\n", "line 3: a second edge 'x' leaves 'a', the first is in line 1"),
        ("a,x,b\n\nb,x,c\n", "line 3: no edge leaves 'c'"),
    ],
)
def test_files_that_no_walk_is_on(tmp_path, text, words):
    with pytest.raises(BadFile, match=words):
        Traversal(graph=_file(tmp_path, text))


def test_graphs_with_too_many_names(tmp_path):
    many = _file(tmp_path, "".join(f"{n},x,{(n + 1) % 1000}\n" for n in range(1000)))
    with pytest.raises(BadFile, match=r"line 999: more than 999 nodes"):
        Traversal(graph=many)
    kinds = _file(tmp_path, "".join(f"a,{n},a\n" for n in range(11)), "kinds.csv")
    with pytest.raises(BadFile, match=r"kinds.csv, line 11: more than 10 kinds of edges"):
        Inference(graph=kinds)
    assert Traversal(graph=kinds).horizon == 11 + 2 * 7 + 1


def test_a_graph_without_a_path_is_refused(tmp_path, ring):
    with pytest.raises(BadValue, match=r"path=4 cannot work: wanted at most 3 edges, .*graph.csv, e.g. path=3"):
        ShortestPath(graph=ring)
    with pytest.raises(BadValue, match=r"path=20 cannot work: .* in london"):
        ShortestPath(graph="london", path=20)
    with pytest.raises(BadValue, match=r"path=10 cannot work: .* graphs of at most 10 nodes"):
        ShortestPath(lesson=1, path=10)
    short = _file(tmp_path, "a,x,b\na,y,c\n", "short.csv")
    with pytest.raises(BadFile, match=r"short.csv, line 1: nothing leads on"):
        Inference(graph=short)


def test_graphs_that_do_not_exist(tmp_path):
    with pytest.raises(BadFile, match=r"none.csv: there is no such file"):
        Traversal(graph=str(tmp_path / "none.csv"))
    with pytest.raises(BadValue, match=r"graph='family' cannot work: wanted random, london or a file"):
        Traversal(graph="family")
