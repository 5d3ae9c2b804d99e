"""PyTorch steps of the cells with external memories, without what only a lens would want."""

from functools import reduce
from operator import mul

import torch
from torch.nn.functional import layer_norm, softplus

from ..cells import DNC, DNTM, GRU, NTM, NUTM, TARDIS
from ..cells.dntm import NOP
from ..cells.gru import GRUState
from ..cells.ntm import NTMState
from ._torch_loop import ACTIVATIONS, Recurrence, linear
from ._torch_recurrent import RECURRENT

_NORM_EPSILON, _WEIGHT_EPSILON, _USAGE_EPSILON = 1e-6, 1e-12, 1e-5  # those of our equations


def control(w, state, drive, reads):
    """The controller of an external memory: its next state, and its output."""
    hidden, cell = [], []
    for layer, (weights, now) in enumerate(zip(w.layer_weights, drive.chunk(len(w.layer_weights), -1), strict=True)):
        seen = [reads.flatten(1), *hidden[-1:]]
        if w.kind == "feedforward":
            hidden.append(torch.tanh(now + torch.cat(seen, -1) @ weights))
            continue
        i, f, o, g = (now + torch.cat([*seen, state.hidden[:, layer]], -1) @ weights).chunk(4, -1)
        c = torch.sigmoid(f) * state.cell[:, layer] + torch.sigmoid(i) * torch.tanh(g)
        cell.append(c if w.bound is None else c.clamp(-w.bound, w.bound))
        hidden.append(torch.sigmoid(o) * torch.tanh(cell[-1]))
    return type(state)(torch.stack(hidden, 1), torch.stack(cell, 1) if cell else None), torch.cat(hidden, -1)


def interface(w, output):
    return output @ w.weights if w.bias is None else output @ w.weights + w.bias


def cosines(keys, memory, masks=None):
    """Of each key [..., heads, word] with each word of the memory [..., slots, word]."""
    norms = (memory**2).sum(-1)[..., None, :]
    if masks is not None:
        norms = masks**2 @ (memory**2).mT
        keys = masks * keys
    keys = keys * torch.rsqrt((keys**2).sum(-1, keepdim=True) + _NORM_EPSILON)
    keys = keys if masks is None else masks * keys
    return (keys @ memory.mT) * torch.rsqrt(norms + _NORM_EPSILON)


def _content(keys, strengths, memory, masks=None):
    return torch.softmax(strengths[..., None] * cosines(keys, memory, masks), -1)


def _sharpen(weights, exponents, epsilon):
    return torch.softmax((1 + softplus(exponents))[..., None] * torch.log(weights + epsilon), -1)


def _erase_and_add(memory, weights, erase, add):
    kept = reduce(
        mul, [1 - w[:, :, None] * e[:, None] for w, e in zip(weights.unbind(1), erase.unbind(1), strict=True)]
    )
    return memory * kept + weights.mT @ add


def controller_drive(w, inputs):
    return linear(w.controller, inputs)


def _ntm_start(w, state):
    return state._replace(
        memory=state.memory if w.initial_memory is None else torch.tanh(w.initial_memory),
        read_weights=torch.softmax(w.initial_read_weights, -1),
        write_weights=torch.softmax(w.initial_write_weights, -1),
        reads=torch.tanh(w.initial_reads),
    )


def _ntm(w, state, drive):
    controller, output = control(w.controller, state.controller, drive, state.reads)
    return _ntm_access(w, state, controller, output, interface(w.interface, output))


def _ntm_units(w):
    address = w.word_size + 2 * w.shift_range + 4
    return [address] * w.read_heads + [address + 2 * w.word_size] * w.write_heads


def _ntm_access(w, state, controller, output, orders):
    orders = orders if w.bound is None else orders.clamp(-w.bound, w.bound)
    m, address = w.word_size, _ntm_units(w)[0]
    reading, writing = orders.split([w.read_heads * address, w.write_heads * (address + 2 * m)], -1)
    reading, writing = reading.unflatten(-1, (w.read_heads, -1)), writing.unflatten(-1, (w.write_heads, -1))
    writing, erase, add = writing.split([address, m, m], -1)

    def place(orders, memory, previous):
        keys, (strength, gate, sharpness), shifts = (
            orders[..., :m],
            orders[..., m : m + 3].unbind(-1),
            orders[..., m + 3 :],
        )
        content = _content(torch.tanh(keys) if w.tanh_words else keys, softplus(strength), memory)
        mixed = torch.lerp(previous, content, torch.sigmoid(gate)[..., None])
        shifts = torch.softmax(shifts, -1).split(1, -1)
        moved = sum(torch.roll(mixed, n - w.shift_range, -1) * shift for n, shift in enumerate(shifts))
        return _sharpen(moved, sharpness, _WEIGHT_EPSILON)

    write_weights = place(writing, state.memory, state.write_weights)
    add = torch.tanh(add) if w.tanh_words else add
    memory = _erase_and_add(state.memory, write_weights, torch.sigmoid(erase), add)
    seen = state.memory if w.read_before_write else memory
    read_weights = place(reading, seen, state.read_weights)
    reads = read_weights @ seen
    return type(state)(controller, memory, read_weights, write_weights, reads), torch.cat(
        [output, reads.flatten(1)], -1
    )


def _dnc(w, state, drive):
    controller, output = control(w.controller, state.controller, drive, state.reads)
    return _dnc_access(w, state, controller, output, interface(w.interface, output))


def _dnc_units(w):
    m, mask = w.word_size, w.word_size * w.masked_content
    return [m + 5 + mask + 2 * w.sharpen_links] * w.read_heads + [3 * m + 3 + mask]


def _dnc_access(w, state, controller, output, orders):
    m, mask = w.word_size, w.word_size * w.masked_content
    reading = [m, 1, 1, 3, mask, 2 * w.sharpen_links]
    heads, writing = orders.split([w.read_heads * sum(reading), 3 * m + 3 + mask], -1)
    keys, strengths, free, modes, masks, sharpness = heads.unflatten(-1, (w.read_heads, -1)).split(reading, -1)
    write_key, erase, word, gates, write_mask = writing[:, None].split([m, m, m, 3, mask], -1)
    write_strength, allocation_gate, write_gate = gates.unbind(-1)

    def content(keys, strengths, memory, masks):
        strengths = softplus(strengths) + (not w.softplus_strengths)
        masks = w.mask_floor + (1 - w.mask_floor) * torch.sigmoid(masks) if w.masked_content else None
        return _content(keys, strengths, memory, masks)

    kept = reduce(mul, (1 - torch.sigmoid(free) * state.read_weights).unbind(1))
    last = state.write_weights if w.usage_gradient else state.write_weights.detach()
    usage = (state.usage + last - state.usage * last) * kept
    ascending, order = torch.sort(usage, dim=-1, stable=True)
    before = torch.cumprod(torch.cat([torch.ones_like(usage[:, :1]), ascending[:, :-1]], -1), -1)
    allocation = torch.zeros_like(usage).scatter(-1, order, (1 - ascending) * before)
    looked_up = content(write_key, write_strength, state.memory, write_mask)[:, 0]
    write = torch.sigmoid(write_gate) * torch.lerp(looked_up, allocation, torch.sigmoid(allocation_gate))
    memory = kept[:, :, None] * state.memory if w.deallocate else state.memory
    memory = _erase_and_add(memory, write[:, None], torch.sigmoid(erase), word)

    links = (1 - write[:, :, None] - write[:, None]) * state.links + write[:, :, None] * state.precedence[:, None]
    links = links * (1 - torch.eye(links.shape[-1]))
    precedence = (1 - write.sum(-1, keepdim=True)) * state.precedence + write
    forward, backward = state.read_weights @ links.mT, state.read_weights @ links
    if w.sharpen_links:
        backward, forward = (
            _sharpen(b, e, 1e-6) for b, e in zip((backward, forward), sharpness.unbind(-1), strict=True)
        )
    back, stay, go = torch.softmax(modes, -1).split(1, -1)
    read_weights = back * backward + stay * content(keys, strengths[..., 0], memory, masks) + go * forward
    reads = read_weights @ memory
    after = state._replace(
        controller=controller,
        memory=memory,
        usage=usage,
        precedence=precedence,
        links=links,
        write_weights=write,
        read_weights=read_weights,
        reads=reads,
    )
    return after, torch.cat([output, reads.flatten(1)], -1)


def _tardis(w, state, drive):
    """Without noise: the most likely slot is read."""
    gates, n, slots = w.read_weights.shape[1], w.output_size, w.usage_weights.shape[0]
    memory = torch.cat([w.addresses.expand(len(drive), -1, -1), state.content], -1)
    from_hidden = state.hidden @ w.hidden_weights
    if w.usage == "softmax":
        usage = torch.softmax(state.read_counts, -1)
    else:
        usage = layer_norm(state.read_counts, (slots,), eps=_USAGE_EPSILON)
    shared = drive[:, gates:] + from_hidden[:, gates:] + usage @ w.usage_weights
    logits = torch.tanh(memory @ w.memory_weights + shared[:, None]) @ w.score_weights
    chosen = (logits - w.last_read_penalty * state.read_weights).argmax(-1)
    read = memory.gather(1, chosen[:, None, None].expand(-1, 1, memory.shape[-1]))[:, 0]

    from_read = read @ w.read_weights
    total = drive[:, :gates] + from_hidden[:, :gates] + from_read
    f, i, o = torch.sigmoid(total[:, : 3 * n]).chunk(3, -1)
    past, new, remembered = (part[:, 3 * n : 4 * n] for part in (from_hidden, drive, from_read))
    if w.reset_gates:
        alpha, beta = torch.sigmoid(total[:, -2:] / w.gate_temperature).chunk(2, -1)
        past, remembered = alpha * past, beta * remembered
    cell = f * state.cell + i * torch.tanh(past + new + remembered)
    hidden = o * torch.tanh(cell)
    place = torch.where(state.filled < slots, state.filled, chosen)
    micro = (hidden @ w.micro_weights)[:, None]
    read_weights = torch.nn.functional.one_hot(chosen, slots).to(hidden.dtype)
    after = state._replace(
        hidden=hidden,
        cell=cell,
        content=state.content.scatter(1, place[:, None, None].expand_as(micro), micro),
        filled=(state.filled + 1).clamp(max=slots),
        read_weights=read_weights,
        read_counts=state.read_counts + read_weights,
    )
    if w.output_weights is None:
        return after, hidden
    return after, torch.tanh(torch.cat([hidden, read], -1) @ w.output_weights + w.output_bias)


def _nutm_start(w, state):
    return state._replace(core=_ntm_start(w.core, state.core)) if isinstance(state.core, NTMState) else state


def _nutm(w, state, drive):
    is_ntm = isinstance(state.core, NTMState)
    controller, output = control(w.core.controller, state.core.controller, drive, state.core.reads)
    heads, programs, _ = w.keys.shape
    queries = interface(w.query, output).unflatten(-1, (heads, 1, -1))
    queries, strengths, keys = queries[..., :-1], softplus(queries[..., -1]), w.keys
    if w.tanh_keys:
        queries, keys = torch.tanh(queries), torch.tanh(keys)
    weights = _content(queries, strengths, keys)[:, :, 0]
    units = torch.tensor((_ntm_units if is_ntm else _dnc_units)(w.core))
    shares = weights.repeat_interleave(units, 1, output_size=int(units.sum()))
    orders = (shares.mT * interface(w.values, output).unflatten(-1, (programs, -1))).sum(1)
    core, output = (_ntm_access if is_ntm else _dnc_access)(w.core, state.core, controller, output, orders)
    return type(state)(core, weights), output


def _dntm_drive(w, inputs):
    sizes = [w.controller.bias.shape[0], w.read_size + 2, w.read_size + 3 + w.word_size, w.word_size]
    controller, read, write, candidate = (inputs @ w.input_weights).split(sizes, -1)
    write = torch.nn.functional.pad(write, (0, w.word_size))
    return torch.cat([controller, read + w.read_head_bias, write + w.write_head_bias, candidate], -1)


def _dntm(w, state, drive):
    """Without noise: with discrete addressing the most likely cell is chosen."""
    sizes = [w.controller.bias.shape[0], len(w.read_head_bias), len(w.write_head_bias), w.word_size]
    from_input, read_head, write_head, candidate = drive.split(sizes, -1)
    addresses = w.addresses.expand(len(drive), -1, -1)

    def address(head, memory, average):
        strength, gate = 1 + softplus(head[:, -2:-1]), torch.sigmoid(head[:, -1:])
        similar = cosines(head[:, None, :-2], memory)[:, 0]
        before, after = (1, strength) if w.average_cosines else (strength, 1)
        average, logits = average.detach(), before * similar
        moved = (w.lru_decay * average + (1 - w.lru_decay) * logits).detach()
        logits = after * (logits - gate * average)
        if w.soft_probability is None:
            return torch.softmax(logits, -1), moved
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype), moved

    def but_nop(weights):
        return torch.cat([torch.zeros_like(weights[:, : NOP + 1]), weights[:, NOP + 1 :]], -1)

    def think(state):
        total = linear(w.controller, state.read) + from_input
        if not hasattr(w.controller, "gate_weights"):
            return state._replace(hidden=torch.tanh(total))
        return state._replace(hidden=RECURRENT[GRU].step(w.controller, GRUState(state.hidden), total)[1])

    def read(state):
        memory = torch.cat([addresses, state.content], -1)
        weights, average = address(read_head + state.hidden @ w.read_head_weights, memory, state.read_average)
        read = (but_nop(weights)[:, None] @ memory)[:, 0]
        return state._replace(read=read, read_weights=weights, read_average=average)

    def write(state):
        orders = write_head + state.hidden @ w.write_head_weights
        head, alpha, erase, word = orders.split([w.read_size + 2, 1, w.word_size, w.word_size], -1)
        memory = torch.cat([addresses, state.content], -1)
        weights, average = address(head, memory, state.write_average)
        word = ACTIVATIONS[w.candidate](word + torch.sigmoid(alpha) * candidate)
        content = _erase_and_add(state.content, but_nop(weights)[:, None], torch.sigmoid(erase)[:, None], word[:, None])
        return state._replace(content=content, write_weights=weights, write_average=average)

    if w.order == "read-write":
        for _ in range(w.hops):
            state = think(read(state))
        state = write(state)
    else:
        state = read(write(think(state)))
        for _ in range(w.hops - 1):
            state = read(think(state))
    return state, torch.cat([state.hidden, state.read], -1)


MEMORY: dict[type, Recurrence] = {
    NTM: Recurrence(_ntm, controller_drive, _ntm_start),
    DNC: Recurrence(_dnc, controller_drive),
    NUTM: Recurrence(_nutm, lambda w, inputs: controller_drive(w.core, inputs), _nutm_start),
    DNTM: Recurrence(_dntm, _dntm_drive),
    TARDIS: Recurrence(_tardis),
}
