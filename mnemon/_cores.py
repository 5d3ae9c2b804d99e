"""Sharing a batch among the cores of a CPU: a device of JAX for each of them."""

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ._errors import require

SHARES_AXIS = "shares"
_USUAL_CORES = 4
# Of `mallopt`: no blocks of their own for large requests, nothing given back, one arena for all threads.
_KEEPING = ((-4, 0), (-1, 2**31 - 1), (-8, 1))


def use_cores(count: int | None = None) -> None:
    """Let batches be shared among CPU cores: by default all that this process may use, at most 4.

    XLA computes the small operations of a step on one core, so a network that goes step by step gains little from the
    others; whole sequences of different examples can be computed at the same time. JAX has one CPU device for each of
    the cores from here on, and [`choose_plan`][mnemon.choose_plan] uses them where it pays. Call it before JAX computes
    anything; later it changes nothing. The command line calls it; the environment variable `JAX_NUM_CPU_DEVICES`
    overrides it.

    The process also keeps large blocks of memory once it has them (with the C library of Linux, and unless one of its
    `MALLOC_` environment variables is set): XLA asks for the memory of a program at each call, and the system clears
    every page of it, which took half the time of an update of some networks.
    """
    require(count is None or count >= 1, "count", count, "at least one core", "use_cores(2)")
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        with contextlib.suppress(RuntimeError):  # JAX has begun
            jax.config.update("jax_num_cpu_devices", min(allowed, _USUAL_CORES) if count is None else count)
    keep_memory()


def keep_memory() -> None:
    """Tell the C library to keep large blocks of memory; see `use_cores`. Works for all threads begun afterwards."""
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in _KEEPING:
            mallopt(option, value)


def on_every_core(tree: PyTree) -> PyTree:
    """The arrays of a tree with a copy for each of JAX's devices, where a loop that shares a batch would put them."""
    return jax.device_put(tree, jax.sharding.NamedSharding(shares(), jax.P()))


def from_cores(tree: PyTree) -> PyTree:
    """The arrays of a tree where JAX puts new ones; a loop that shares a batch leaves them on every core."""

    def bring(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or len(leaf.sharding.device_set) == 1:
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(bring(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        return jnp.asarray(np.asarray(leaf))

    return jax.tree.map(bring, tree)


def shares() -> jax.sharding.Mesh:
    """All devices, along one axis."""
    return jax.sharding.Mesh(jax.local_devices(), (SHARES_AXIS,))


def free_cores() -> int:
    """CPU devices that a batch may be shared among; one where a caller already shares them."""
    busy = not jax.sharding.get_abstract_mesh().empty
    return 1 if busy or jax.default_backend() != "cpu" else jax.local_device_count()


def map_on_cores(function: Callable[[PyTree], PyTree], tree: PyTree) -> PyTree:
    """A function of each entry of the first axis, one after another, on a GPU all at once; free cores share them."""
    if jax.default_backend() != "cpu":
        return jax.vmap(function)(tree)
    # One entry after another: what a step computes stays in the first cache.
    one_by_one = functools.partial(jax.lax.map, function)
    cores, entries = free_cores(), jax.tree.leaves(tree)[0].shape[0]
    if cores == 1 or entries == 1:
        return one_by_one(tree)
    places = jnp.arange(-(-entries // cores) * cores) % entries  # the last cores get what is computed twice
    shared = jax.P(SHARES_AXIS)
    filled = jax.shard_map(one_by_one, mesh=shares(), in_specs=(shared,), out_specs=shared, check_vma=False)(
        jax.tree.map(lambda leaf: leaf[places], tree)
    )
    return jax.tree.map(lambda leaf: leaf[:entries], filled)
