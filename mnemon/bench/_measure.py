"""Measuring fairly on a noisy machine."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

_SETTLE_SECONDS, _TURN_SECONDS = 0.02, 0.05


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median and the quartiles around it."""

    median: float
    low: float
    high: float


def measure_alternately(
    calls: Mapping[str, Callable[[], object]], *, seconds: float = 2.0, least: int = 5
) -> dict[str, Timing]:
    """Time calls in turn, round after round, so that whatever else the machine does meets all of them alike.

    Each call must wait for its result. `seconds` is about how long it takes for each call. Before its turn each waits a
    moment, since the threads of the one before (OpenMP's, say) spin for a while after their work, and is made once
    without being timed, so that caches are its own.
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or len(next(iter(times.values()))) < least:
        for name, call in calls.items():
            time.sleep(_SETTLE_SECONDS)
            call()
            turn_ends = time.perf_counter() + _TURN_SECONDS
            while True:
                start = time.perf_counter()
                call()
                now = time.perf_counter()
                times[name].append(now - start)
                if now > turn_ends:
                    break
    return {name: _timing(values) for name, values in times.items()}


def _timing(values: list[float]) -> Timing:
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return Timing(statistics.median(values), low, high)


def matrix_product_rate(size: int = 1024) -> Callable[[], object]:
    """A call that does one float32 matrix product of 2 * size^3 operations."""
    product = jax.jit(lambda a: a @ a)
    matrix = jnp.ones((size, size))
    return lambda: jax.block_until_ready(product(matrix))
