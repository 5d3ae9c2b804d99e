"""PyTorch steps of the cells with sparse access to a large memory."""

from typing import Any

import torch
from torch.nn.functional import softplus

from ..cells import SAM, SDNC
from ..memory import sparse_links
from ._torch_loop import Recurrence
from ._torch_memory import control, controller_drive, cosines, interface

_Vector: Any = sparse_links.SparseVector  # of tensors
_Links: Any = sparse_links.SparseLinks
_TIE = 1e-9  # added to a cosine for each row before, so that of rows of zeros the first is taken, as by ours


def _nearest(cosines, count):
    return (cosines.detach() - _TIE * torch.arange(cosines.shape[-1])).topk(count).indices


def _largest(scores, count):
    """Of a few scores, the first of equal ones first."""
    return scores.detach().sort(stable=True, descending=True).indices[..., :count]


def _least_recent(last_access, count):
    slots = last_access.shape[-1]
    return (last_access.long() * slots + torch.arange(slots)).topk(count, largest=False).indices


def _take(table, rows):
    """Rows [batch, ...] of a table [batch, slots, ...]."""
    return table[torch.arange(len(rows)).view(-1, *[1] * (rows.ndim - 1)), rows]


def _index(rows, table):
    """Rows [batch, n] as `scatter` wants them."""
    return rows[:, :, None].expand(-1, -1, table.shape[-1])


def _wipe_and_add(memory, rows, weights, words):
    added = (weights[..., None] * words[:, :, None]).flatten(1, 2)
    wiped = memory.scatter(1, _index(rows[:, :, -1], memory), 0.0)
    return wiped.scatter_add(1, _index(rows.flatten(1), memory), added)


def _nearest_rows(w, keys, scalars, memory):
    rows = _nearest(cosines(keys.detach(), memory.detach()), w.top_k)
    found = _take(memory, rows)
    similar = cosines(keys[:, :, None], found)[:, :, 0]
    similar = similar * (1 + softplus(scalars[..., -1:])) if w.strengths else similar
    return rows, torch.softmax(similar, -1), found


def _mark_accessed(w, last_access, rows, weights, time):
    accessed = _totals(rows, weights) > w.access_threshold
    now = torch.where(accessed, time[:, None], last_access.gather(1, rows))
    return last_access.scatter_reduce(1, rows, now, "amax")


def _same(rows):
    return rows[..., :, None] == rows[..., None, :]


def _totals(rows, weights):
    return (_same(rows) * weights[..., None, :]).sum(-1)


def _first(rows):
    return ~_same(rows).tril(-1).any(-1)


def _strongest(rows, weights, count):
    totals = _totals(rows, weights) * _first(rows)
    kept = _largest(totals, count)
    return _Vector(rows.gather(-1, kept), totals.gather(-1, kept))


def _read(weights, found):
    return (weights[:, :, None] @ found)[:, :, 0]


def _sam(w, state, drive):
    controller, output = control(w.controller, state.controller, drive, state.reads)
    orders = interface(w.interface, output).unflatten(-1, (w.heads, -1))
    keys, words, scalars = orders.split([w.word_size, w.word_size, 2 + w.strengths], -1)
    alpha, gamma = torch.sigmoid(scalars[..., :2]).split(1, -1)

    time = state.time + 1
    write_rows = torch.cat([state.read_rows, _least_recent(state.last_access, w.heads)[..., None]], -1).long()
    write_weights = alpha * torch.cat([gamma * state.read_weights, 1 - gamma], -1)
    memory = _wipe_and_add(state.memory, write_rows, write_weights, words)
    rows, weights, found = _nearest_rows(w, keys, scalars, memory)
    reads = _read(weights, found)

    accessed, amounts = (torch.cat(pair, -1).flatten(1) for pair in ((write_rows, rows), (write_weights, weights)))
    last_access = _mark_accessed(w, state.last_access, accessed, amounts, time)
    after = type(state)(controller, memory, last_access, reads, rows, weights, write_rows, write_weights, time)
    return after, torch.cat([output, reads.flatten(1)], -1)


def _update_links(links, precedence, written):
    count, rows = links.before.shape[-1], written.rows[..., None]
    amounts = _totals(*written)[..., None]
    linked = precedence.rows[:, None].expand(-1, written.rows.shape[-1], -1)
    fresh = torch.where(rows == linked, 0.0, amounts * precedence.weights[:, None])
    before = torch.cat([_take(links.before, written.rows), linked], -1)
    weights = torch.cat([(1 - amounts) * _take(links.weights, written.rows), fresh], -1)
    before, weights = _strongest(before, weights, count)
    before = torch.where(weights > 0, before, rows)
    # A row that is listed again has the same values, and no gradient of its own.
    weights = torch.where(_first(written.rows)[..., None], weights, weights.detach())
    into = _index(written.rows, links.weights)
    links = links._replace(
        before=links.before.scatter(1, into, before), weights=links.weights.scatter(1, into, weights)
    )

    preceding = precedence.rows[..., None]
    after = torch.cat([_take(links.after, precedence.rows), written.rows[:, None].expand(-1, count, -1)], -1)
    strengths = _look_up(links, after, preceding).detach() * _first(after)
    kept = _largest(strengths, count)
    after = torch.where(strengths.gather(-1, kept) > 0, after.gather(-1, kept), preceding)
    return links._replace(after=links.after.scatter(1, _index(precedence.rows, links.after), after))


def _look_up(links, i, j):
    return (_take(links.weights, i) * (_take(links.before, i) == j[..., None])).sum(-1)


def _sdnc_start(w, state):
    """Rows are what PyTorch indexes by."""
    links = _Links(state.links.before.long(), state.links.weights, state.links.after.long())
    vectors = {
        name: _Vector(vector.rows.long(), vector.weights)
        for name, vector in (("precedence", state.precedence), ("read", state.read), ("written", state.written))
    }
    return state._replace(links=links, **vectors)


def _sdnc(w, state, drive):
    controller, output = control(w.controller, state.controller, drive, state.reads)
    word, gates, heads = interface(w.interface, output).split(
        [w.word_size, 2, w.read_heads * (w.word_size + 3 + w.strengths)], -1
    )
    keys, scalars = heads.unflatten(-1, (w.read_heads, -1)).split([w.word_size, 3 + w.strengths], -1)
    alpha, gamma = torch.sigmoid(gates).split(1, -1)
    modes = torch.softmax(scalars[..., :3], -1)

    time = state.time + 1
    mixture = torch.cat([gamma * state.read.weights.flatten(1) / w.read_heads, 1 - gamma], -1)
    rows = torch.cat([state.read.rows.flatten(1), _least_recent(state.last_access, 1)], -1)
    written = _Vector(rows, alpha * mixture)
    memory = _wipe_and_add(state.memory, rows[:, None], written.weights[:, None], word[:, None])

    linked = written if w.link_gradients else _Vector(rows, written.weights.detach())
    links = _update_links(state.links, state.precedence, linked)
    faded = (1 - linked.weights.sum(-1, keepdim=True)) * state.precedence.weights
    precedence = _strongest(
        torch.cat([state.precedence.rows, rows], -1), torch.cat([faded, linked.weights], -1), w.links
    )
    last = state.read
    after, before = _take(links.after, last.rows), _take(links.before, last.rows)
    forward = last.weights[..., None] * _look_up(links, after, last.rows[..., None])
    backward = last.weights[..., None] * _take(links.weights, last.rows)

    nearest, content, _ = _nearest_rows(w, keys, scalars, memory)
    back, stay, go = modes.split(1, -1)
    candidates = torch.cat([back * backward.flatten(2), stay * content, go * forward.flatten(2)], -1)
    read = _strongest(torch.cat([before.flatten(2), nearest, after.flatten(2)], -1), candidates, w.top_k)
    reads = _read(read.weights, _take(memory, read.rows))

    accessed = torch.cat([rows, read.rows.flatten(1)], -1)
    amounts = torch.cat([written.weights, read.weights.flatten(1)], -1)
    last_access = _mark_accessed(w, state.last_access, accessed, amounts, time)
    state = type(state)(controller, memory, last_access, links, precedence, reads, read, written, modes, time)
    return state, torch.cat([output, reads.flatten(1)], -1)


SPARSE: dict[type, Recurrence] = {
    SAM: Recurrence(_sam, controller_drive),
    SDNC: Recurrence(_sdnc, controller_drive, _sdnc_start),
}
