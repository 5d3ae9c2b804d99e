"""Sparse temporal links: which row was written after which, a few for each row (Rae et al. 2016, supplement)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .sparse import read_rows, total_weights


class SparseVector(NamedTuple):
    """The non-zeros of a long vector. A row may be listed more than once: its weights add up."""

    rows: Int[Array, "*lists entries"]
    weights: Float[Array, "*lists entries"]


class SparseLinks(NamedTuple):
    """The non-zeros of N, which is the temporal link matrix, row by row, and an index of its columns.

    An entry that is not in use points at its own row, which has no link with itself.
    """

    before: Int[Array, "slots links"]  # for each i, the rows j with N[i, j] > 0: those written just before i
    weights: Float[Array, "slots links"]  # N[i, before[i]]
    after: Int[Array, "slots links"]  # for each j, the rows i with N[i, j] > 0: those written just after j


def no_links(slots: int, links: int, dtype: jnp.dtype) -> SparseLinks:
    """The links of a memory in which nothing has been written."""
    own = jnp.broadcast_to(jnp.arange(slots, dtype=jnp.int32)[:, None], (slots, links))
    return SparseLinks(own, jnp.zeros((slots, links), dtype), own)


def strongest(vector: SparseVector, count: int) -> SparseVector:
    """The `count` largest entries of one sparse vector, each listed once."""
    totals = jnp.where(_first(vector.rows), total_weights(*vector), 0.0)
    kept = jax.lax.top_k(jax.lax.stop_gradient(totals), count)[1]
    return SparseVector(vector.rows[kept], totals[kept])


def update_precedence(precedence: SparseVector, written: SparseVector) -> SparseVector:
    r"""$$ p_t = (1 - \sum_i w_t[i]) p_{t-1} + w_t $$, cut to its largest entries."""
    faded = (1.0 - jnp.sum(written.weights)) * precedence.weights
    both = SparseVector(*map(jnp.concatenate, zip((precedence.rows, faded), written, strict=True)))
    return strongest(both, precedence.rows.size)


def update_links(links: SparseLinks, precedence: SparseVector, written: SparseVector) -> SparseLinks:
    r"""$$ N_t[i, j] = (1 - w_t[i]) N_{t-1}[i, j] + w_t[i] p_{t-1}[j], \quad N_t[i, i] = 0 $$

    Each row of N is cut to its largest entries. Only the rows that are written or in `precedence` are touched.
    """
    slots, count = links.before.shape
    rows, amounts = written.rows[:, None], total_weights(*written)[:, None]
    old, table = read_rows(links.weights, written.rows)
    linked = jnp.broadcast_to(precedence.rows, (written.rows.size, count))
    fresh = jnp.where(rows == linked, 0.0, amounts * precedence.weights[None, :])
    before = jnp.concatenate([links.before[written.rows], linked], axis=1)
    weights = jnp.concatenate([(1.0 - amounts) * old, fresh], axis=1)
    before, weights = jax.vmap(lambda b, w: strongest(SparseVector(b, w), count))(before, weights)
    before = jnp.where(weights > 0, before, rows)
    # A row that is listed again is left out, so that the gradient of the scatter is a gather.
    target = jnp.where(_first(written.rows), written.rows, slots + jnp.arange(written.rows.size))
    links = links._replace(
        before=links.before.at[target].set(before, mode="drop"),
        weights=table.at[target].set(weights, mode="drop", unique_indices=True),
    )

    # What comes after the rows in `precedence`: old successors and written rows, the strongest by their links.
    preceding = precedence.rows[:, None]
    after = jnp.concatenate(
        [links.after[precedence.rows], jnp.broadcast_to(written.rows, (count, written.rows.size))], axis=1
    )
    current = jax.lax.stop_gradient(links.weights)[after]
    weights = jnp.where(jax.vmap(_first)(after), _look_up(links, current, after, preceding), 0.0)
    kept = jax.lax.top_k(weights, count)[1]
    used = jnp.take_along_axis(weights, kept, axis=1) > 0
    after = jnp.where(used, jnp.take_along_axis(after, kept, axis=1), preceding)
    return links._replace(after=links.after.at[precedence.rows].set(after))


def follow(links: SparseLinks, weightings: SparseVector) -> tuple[SparseVector, SparseVector, SparseLinks]:
    r"""Where each weighting w leads: forwards \( N w \), backwards \( N^T w \), and the links, to go on with."""
    rows, weights = weightings.rows, weightings.weights[..., None]
    after = links.after[rows]
    into_after, table = read_rows(links.weights, after)
    into_rows, table = read_rows(table, rows)
    forward = weights * _look_up(links, into_after, after, rows[..., None])
    entries = (*rows.shape[:-1], -1)
    return (
        SparseVector(after.reshape(entries), forward.reshape(entries)),
        SparseVector(links.before[rows].reshape(entries), (weights * into_rows).reshape(entries)),
        links._replace(weights=table),
    )


def _look_up(
    links: SparseLinks,
    weights: Float[Array, "*rows n links"],
    i: Int[Array, "*rows n"],
    j: Int[Array, "*rows 1"],
) -> Float[Array, "*rows n"]:
    """N[i, j], given the `weights` of the rows i."""
    return jnp.sum(jnp.where(links.before[i] == j[..., None], weights, 0.0), axis=-1)


def _first(rows: Int[Array, " rows"]) -> Bool[Array, " rows"]:
    """True where a row is listed for the first time."""
    earlier = np.triu(np.ones((rows.size, rows.size), bool), 1)
    return ~jnp.any((rows[:, None] == rows[None, :]) & earlier, axis=0)
