"""Wormhole paths: against searches by hand, expectations of the thesis, and real traces."""

import itertools

import numpy as np
import pytest

from mnemon._errors import MnemonError
from mnemon.lens import (
    Trace,
    memory_path_lengths,
    read_sources,
    shortest_path,
    shortest_paths,
    simulate_slots,
    simulated_paths,
    trace_sources,
)


def _slow_shortest(sources: list[int], start: int, end: int) -> tuple[int, int]:
    """Breadth-first over all paths: length, and fewest steps of the chain among the shortest."""
    reached = {(end, 0)}
    length = 0
    while not any(step == start for step, _ in reached):
        length += 1
        following = set()
        for step, outside in reached:
            following.add((step - 1, outside + 1))
            if sources[step] >= start:
                following.add((sources[step], outside))
        reached = {(step, outside) for step, outside in following if step >= start}
    return length, min(outside for step, outside in reached if step == start)


@pytest.mark.parametrize("kind", ["tardis", "umann", "urmann"])
@pytest.mark.parametrize("slots", [1, 3, 30])
def test_shortest_paths_are_those_of_a_search(kind, slots):
    sources = read_sources(*simulate_slots(kind, 20, slots, 12, np.random.default_rng(slots)))
    paths = shortest_paths(sources, 3, 17)
    for row, length, outside in zip(sources, paths.length, paths.outside, strict=True):
        assert (length, outside) == _slow_shortest(row.tolist(), 3, 17)
        steps = shortest_path(row, 3, 17)
        assert len(steps) - 1 == length
        assert (steps[0], steps[-1]) == (17, 3)
        assert all(b == a - 1 or b == row[a] for a, b in itertools.pairwise(steps))


def test_sources_are_the_last_write_before_the_read():
    reads, writes = np.array([[2, 0, 0, 0]]), np.array([[0, 0, 0, 2]])
    assert read_sources(reads, writes).tolist() == [[-1, 0, 1, 2]]


def test_how_each_network_writes():
    random = np.random.default_rng(0)
    reads, writes = simulate_slots("tardis", 9, 4, 5, random)
    assert (writes[:, :4] == np.arange(4)).all()
    assert (writes[:, 4:] == reads[:, 4:]).all()
    _, writes = simulate_slots("urmann", 9, 4, 5, random)
    assert (writes == [0, 1, 2, 3, 0, 1, 2, 3, 0]).all()


@pytest.mark.parametrize("kind", ["tardis", "umann"])
def test_expected_length_of_memory_paths(kind):
    """T / k - 1, thesis figure 3.3; for TARDIS in every simulation, for uMANN in the mean."""
    reads, writes = simulate_slots(kind, 200, 50, 400, np.random.default_rng(1))
    lengths = memory_path_lengths(reads, writes, 50)
    assert (lengths[:, :50] == 0).all()
    error = lengths.std(axis=0)[-1] / 20
    assert abs(lengths.mean(axis=0)[-1] - 3) <= max(4 * error, 1e-9)
    if kind == "tardis":
        np.testing.assert_allclose(lengths[:, -1], 3)


def test_more_memory_makes_shorter_paths():
    means = [
        simulated_paths("tardis", slots, start=5, end=50, simulations=200, seed=2).length.mean()
        for slots in (2, 10, 30)
    ]
    assert 45 > means[0] > means[1] > means[2]


def _trace(**state: np.ndarray) -> Trace:
    steps = len(next(iter(state.values())))
    zeros = np.zeros((steps,))
    return Trace(zeros, zeros, zeros > 0, zeros[:, None], state)


def test_wormholes_of_recorded_weights():
    reads, writes = np.eye(3)[[0, 0, 2, 1]], np.eye(3)[[0, 1, 2, 2]]
    assert trace_sources(_trace(read_weights=reads, write_weights=writes)).tolist() == [-1, 0, -1, 1]
    heads = np.stack([reads, np.eye(3)[[1, 1, 1, 1]]], axis=1)
    assert trace_sources(_trace(read_weights=heads, write_weights=writes)).tolist() == [-1, 0, -1, 1]


def test_bad_input():
    with pytest.raises(MnemonError, match="no 'read_weights'"):
        trace_sources(_trace(hidden=np.zeros((4, 2))))
    with pytest.raises(MnemonError, match="0 <= start < end < 20"):
        shortest_path(np.full(20, -1), 5, 20)
    with pytest.raises(MnemonError, match="did you mean 'umann'"):
        simulate_slots("mann", 5, 5, 5, np.random.default_rng(0))
    with pytest.raises(MnemonError, match="at least one slot"):
        simulate_slots("umann", 5, 0, 5, np.random.default_rng(0))
