"""Sparse access: a few rows of a large memory, at a cost that does not depend on its size.

Inside a time loop `memory[rows]` is cheap forwards but not backwards: its gradient is a whole memory of zeros with a
few rows filled in, made at each step and added to the gradient that comes from later steps. `read_rows` also returns
the memory, for the rest of the loop to go on with. Its gradient is then the one that comes back from there, with a few
rows added *in place*; that of `wipe_and_add` is changed in place too.

No step keeps the memory for the backward pass: the gradient needs the rows that were read, not the memory they came
from, so there is no state to restore and nothing to compute again. Any scan over such steps has one memory forwards,
one gradient of it backwards, and a few rows for each step.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .content import cosine_similarity


@jax.custom_vjp
def read_rows(
    memory: Float[Array, "slots word"], rows: Int[Array, "*rows"]
) -> tuple[Float[Array, "*rows word"], Float[Array, "slots word"]]:
    """`memory[rows]` and the memory, to go on with. Reverse-mode differentiation only.

    >>> words, memory = read_rows(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1, 1]))
    >>> words.tolist()
    [[3.0, 4.0], [3.0, 4.0]]
    """
    return memory[rows], memory


def _read_forward(memory, rows):
    return (memory[rows], memory), rows


def _read_backward(rows, gradients):
    of_words, of_memory = gradients
    return of_memory.at[rows].add(of_words), None


read_rows.defvjp(_read_forward, _read_backward)


@jax.custom_vjp
def wipe_and_add(
    memory: Float[Array, "slots word"],
    rows: Int[Array, "heads rows"],
    weights: Float[Array, "heads rows"],
    words: Float[Array, "heads word"],
) -> Float[Array, "slots word"]:
    r"""Set the last row of each head to zero, then let each head add its word to all its rows.

    $$ M_t = (1 - \sum_h 1_{l_h} 1^T) \odot M_{t-1} + \sum_h w_h a_h^T $$

    Heads may share rows, but not the last ones. Reverse-mode differentiation only.

    >>> wipe_and_add(jnp.ones((3, 1)), jnp.array([[2, 0]]), jnp.array([[0.5, 0.25]]), jnp.array([[8.0]])).tolist()
    [[2.0], [1.0], [5.0]]
    """
    memory = memory.at[rows[:, -1]].set(0.0, unique_indices=True)
    return memory.at[rows].add(weights[:, :, None] * words[:, None, :])


def _write_forward(memory, rows, weights, words):
    return wipe_and_add(memory, rows, weights, words), (rows, weights, words)


def _write_backward(residuals, of_memory):
    rows, weights, words = residuals
    of_rows = of_memory[rows]
    wiped = jnp.any(rows[:, :, None] == rows[None, None, :, -1], axis=-1)
    # The gradient of wiped rows ends here. It is set together with that of the rows that stay, unchanged, because a
    # scatter whose values come from its own operand can be done in place after the gather.
    of_memory = of_memory.at[rows].set(jnp.where(wiped[:, :, None], 0.0, of_rows))
    of_weights = jnp.sum(of_rows * words[:, None, :], axis=-1)
    of_words = jnp.sum(of_rows * weights[:, :, None], axis=1)
    return of_memory, None, of_weights, of_words


wipe_and_add.defvjp(_write_forward, _write_backward)


def nearest(
    keys: Float[Array, "heads word"], memory: Float[Array, "slots word"], count: int
) -> Int[Array, "heads {count}"]:
    """The `count` rows most similar (by cosine) to each key, nearest first. No gradient."""
    return largest(cosine_similarity(*jax.lax.stop_gradient((keys, memory))), count)


def least_recent(last_access: Int[Array, " slots"], now: Int[Array, ""], count: int) -> Int[Array, " {count}"]:
    """The `count` rows that have not been accessed for the longest time."""
    return largest((now - last_access).astype(jnp.float32), count)


def mark_accessed(
    last_access: Int[Array, " slots"],
    rows: Int[Array, " rows"],
    weights: Float[Array, " rows"],
    now: Int[Array, ""],
    threshold: float,
) -> Int[Array, " slots"]:
    """Set the last access of all rows whose weights add up to more than `threshold` to `now`."""
    accessed = total_weights(rows, weights) > threshold
    return last_access.at[jnp.where(accessed, rows, len(last_access))].set(now, mode="drop")


def total_weights(rows: Int[Array, " rows"], weights: Float[Array, " rows"]) -> Float[Array, " rows"]:
    """For each row in a list with repetitions, the sum of its weights."""
    # Over the first axis: many sums at a time, where one sum over a last axis is made entry by entry.
    return jnp.sum(jnp.where(rows[:, None] == rows[None, :], weights[:, None], 0.0), axis=0)


_BLOCK = 64


def largest(scores: Float[Array, "*rows slots"], count: int) -> Int[Array, "*rows {count}"]:
    """Where the `count` largest scores are, largest first; which of equal ones is left open.

    The largest scores lie in the blocks with the largest maxima, so only those blocks are searched: a maximum over all
    scores is several times cheaper than `top_k` over all of them.

    >>> largest(jnp.array([3.0, 1.0, 4.0, 1.0, 5.0]), 2).tolist()
    [4, 2]
    """
    slots = scores.shape[-1]
    if slots < 4 * count * _BLOCK or slots % _BLOCK:
        return jax.lax.top_k(scores, count)[1]
    blocks = scores.reshape(*scores.shape[:-1], slots // _BLOCK, _BLOCK)
    best = jax.lax.top_k(jnp.max(blocks, axis=-1), count)[1]
    searched = jnp.take_along_axis(blocks, best[..., None], axis=-2).reshape(*scores.shape[:-1], count * _BLOCK)
    found = jax.lax.top_k(searched, count)[1]
    return jnp.take_along_axis(best, found // _BLOCK, axis=-1) * _BLOCK + found % _BLOCK
