"""Wormhole connections and the paths they make through time (thesis section 3.5).

A read at step t of a slot last written at step i < t is a connection from t back to i: a gradient can take it instead
of the t - i steps of the recurrent chain. Reads come before the write of the same step. Arrays of slots are
[..., steps]; steps count from 0, and -1 stands for no step (a slot that has not been written).
"""

import dataclasses

import numpy as np

from .._errors import MnemonError, require, unknown
from .trace import Trace

KINDS = ("tardis", "umann", "urmann")
_NONE = -1


def simulate_slots(
    kind: str, steps: int, slots: int, simulations: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The slots that an untrained network reads and writes, each [simulations, steps].

    Reads are uniform over all slots. `tardis` writes slot t while the memory fills and then where it has read;
    `umann` writes uniformly at random; `urmann` writes one slot after another, round and round.
    """
    require(steps >= 1, "steps", steps, "at least one step", "steps=200")
    require(slots >= 1, "slots", slots, "at least one slot", "slots=50")
    require(simulations >= 1, "simulations", simulations, "at least one simulation", "simulations=200")
    if kind not in KINDS:
        raise unknown("network", kind, KINDS)
    reads = random.integers(slots, size=(simulations, steps))
    if kind == "umann":
        return reads, random.integers(slots, size=reads.shape)
    in_order = np.broadcast_to(np.arange(steps) % slots, reads.shape)
    return reads, np.where(np.arange(steps) < slots, in_order, reads) if kind == "tardis" else in_order


def read_sources(reads: np.ndarray, writes: np.ndarray) -> np.ndarray:
    """The step that wrote what each step reads.

    >>> read_sources(np.array([[0, 0, 1, 0]]), np.array([[0, 1, 0, 1]]))
    array([[-1,  0,  1,  2]])
    """
    rows = np.arange(len(reads))
    slots = int(max(reads.max(), writes.max())) + 1
    written = np.full((len(reads), slots), _NONE)
    sources = np.empty_like(reads)
    for t in range(reads.shape[1]):
        sources[:, t] = written[rows, reads[:, t]]
        written[rows, writes[:, t]] = t
    return sources


def memory_path_lengths(reads: np.ndarray, writes: np.ndarray, slots: int) -> np.ndarray:
    """The mean over slots of the length of the path of wormholes that ends there, [simulations, steps] (3.34).

    Writing after reading slot j makes the path of the written slot one longer than that of j. While the memory fills
    (the first `slots` steps) all lengths are 0, as the thesis assumes; the expected value after t steps is then
    t / slots - 1.
    """
    rows = np.arange(len(reads))
    lengths = np.zeros((len(reads), slots))
    means = np.zeros(reads.shape)
    for t in range(slots, reads.shape[1]):
        lengths[rows, writes[:, t]] = lengths[rows, reads[:, t]] + 1
        means[:, t] = lengths.mean(axis=1)
    return means


@dataclasses.dataclass(frozen=True)
class ShortestPaths:
    """Shortest paths back from one step to an earlier one, [simulations] each."""

    length: np.ndarray  # connections on the path
    outside: np.ndarray  # those of them that are steps of the chain, not wormholes


def shortest_paths(sources: np.ndarray, start: int, end: int) -> ShortestPaths:
    """The shortest paths from step `end` back to step `start` by the chain and by wormholes.

    Of the paths of one length, the one with the fewest steps of the chain counts.

    >>> paths = shortest_paths(np.array([[-1, -1, -1, 0, -1, -1]]), 0, 5)  # 5 - 4 - 3 = 0
    >>> paths.length, paths.outside
    (array([3]), array([2]))
    """
    _check_steps(sources.shape[1], start, end)
    cost = _costs(sources, start, end)[:, end - start]
    length, outside = np.divmod(cost, end - start + 1)
    return ShortestPaths(length, outside)


def shortest_path(sources: np.ndarray, start: int, end: int) -> list[int]:
    """The steps of the shortest path from `end` back to `start`, of one sequence of sources [steps].

    >>> shortest_path(np.array([-1, -1, -1, 0, -1, -1]), 0, 5)
    [5, 4, 3, 0]
    """
    _check_steps(len(sources), start, end)
    cost = _costs(sources[None], start, end)[0]
    path = [end]
    while path[-1] > start:
        t = path[-1]
        by_wormhole = sources[t] >= start and cost[t - start] == cost[sources[t] - start] + _wormhole_cost(start, end)
        path.append(int(sources[t]) if by_wormhole else t - 1)
    return path


def _check_steps(steps: int, start: int, end: int) -> None:
    require(0 <= start < end < steps, "steps", (start, end), f"0 <= start < end < {steps}", f"0 and {steps - 1}")


def _wormhole_cost(start: int, end: int) -> int:
    """Length counts before steps outside; a step of the chain costs one more than this."""
    return end - start + 1


def _costs(sources: np.ndarray, start: int, end: int) -> np.ndarray:
    """The cost of the best path from each step in start ... end back to start, [simulations, end - start + 1]."""
    rows, wormhole = np.arange(len(sources)), _wormhole_cost(start, end)
    costs = np.zeros((len(sources), end - start + 1), np.int64)
    for t in range(start + 1, end + 1):
        by_chain = costs[:, t - 1 - start] + wormhole + 1
        usable = sources[:, t] >= start
        by_wormhole = costs[rows, np.where(usable, sources[:, t] - start, 0)] + wormhole
        costs[:, t - start] = np.where(usable, np.minimum(by_chain, by_wormhole), by_chain)
    return costs


def trace_sources(traced: Trace, *, read: str = "read_weights", write: str = "write_weights") -> np.ndarray:
    """The wormholes of a real network: for each step, the step that last wrote the slot it reads most, [steps].

    Weights are [time, slots], or [time, heads, slots] of which the first head counts.
    """
    for name in (read, write):
        if name not in traced.state:
            known = ", ".join(traced.state)
            raise MnemonError(f"the trace has no {name!r}, so there are no wormholes to see; it has {known}")
    slots = {name: _strongest(traced.state[name]) for name in (read, write)}
    return read_sources(slots[read][None], slots[write][None])[0]


def _strongest(weights: np.ndarray) -> np.ndarray:
    return weights.reshape(len(weights), -1, weights.shape[-1])[:, 0].argmax(axis=-1)


def has_wormholes(traced: Trace) -> bool:
    """Whether the trace holds read and write weights."""
    return {"read_weights", "write_weights"} <= traced.state.keys()


def simulated_paths(
    kind: str,
    slots: int,
    *,
    start: int,
    end: int,
    simulations: int,
    seed: int = 0,
) -> ShortestPaths:
    """Shortest paths from `end` to `start` in simulations of an untrained network."""
    reads, writes = simulate_slots(kind, end + 1, slots, simulations, np.random.default_rng(seed))
    return shortest_paths(read_sources(reads, writes), start, end)
