"""PyTorch steps of the cells with external memories and with fast weights, without what only a lens would want."""

from functools import reduce
from operator import mul

import torch
from torch.nn.functional import layer_norm, softplus

from ..cells import DNC, NTM, TARDIS, FastWeights, GatedFastWeights, HyperLSTM
from ._torch_loop import ACTIVATIONS, Recurrence, linear, normalise

_NORM_EPSILON, _WEIGHT_EPSILON, _USAGE_EPSILON = 1e-6, 1e-12, 1e-5  # those of our equations


def _controller(w, state, drive, reads):
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


def _interface(w, output):
    return output @ w.weights if w.bias is None else output @ w.weights + w.bias


def _content(keys, strengths, memory, masks=None):
    norms = (memory**2).sum(-1)[:, None]
    if masks is not None:
        norms = masks**2 @ (memory**2).mT
        keys = masks * keys
    keys = keys * torch.rsqrt((keys**2).sum(-1, keepdim=True) + _NORM_EPSILON)
    keys = keys if masks is None else masks * keys
    return torch.softmax(strengths[..., None] * (keys @ memory.mT) * torch.rsqrt(norms + _NORM_EPSILON), -1)


def _sharpen(weights, exponents, epsilon):
    return torch.softmax((1 + softplus(exponents))[..., None] * torch.log(weights + epsilon), -1)


def _erase_and_add(memory, weights, erase, add):
    kept = reduce(
        mul, [1 - w[:, :, None] * e[:, None] for w, e in zip(weights.unbind(1), erase.unbind(1), strict=True)]
    )
    return memory * kept + weights.mT @ add


def _controller_drive(w, inputs):
    return linear(w.controller, inputs)


def _ntm_start(w, state):
    return state._replace(
        memory=state.memory if w.initial_memory is None else torch.tanh(w.initial_memory),
        read_weights=torch.softmax(w.initial_read_weights, -1),
        write_weights=torch.softmax(w.initial_write_weights, -1),
        reads=torch.tanh(w.initial_reads),
    )


def _ntm(w, state, drive):
    controller, output = _controller(w.controller, state.controller, drive, state.reads)
    interface = _interface(w.interface, output)
    interface = interface if w.bound is None else interface.clamp(-w.bound, w.bound)
    m, address = w.word_size, w.word_size + 2 * w.shift_range + 4
    reading, writing = interface.split([w.read_heads * address, w.write_heads * (address + 2 * m)], -1)
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
    controller, output = _controller(w.controller, state.controller, drive, state.reads)
    m, mask = w.word_size, w.word_size * w.masked_content
    reading = [m, 1, 1, 3, mask, 2 * w.sharpen_links]
    interface = _interface(w.interface, output)
    heads, writing = interface.split([w.read_heads * sum(reading), 3 * m + 3 + mask], -1)
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


def _fast_weights(w, state, drive):
    activate, attends = ACTIVATIONS[w.activation], w.form == "attention"
    slow = drive + (state.past[:, 0] if attends else state.hidden) @ w.recurrent_weights
    slow = normalise(w.norm, slow) if w.layer_norm == "slow" else slow
    hidden = activate(normalise(w.start_norm, slow))
    for _ in range(w.inner_steps):
        if attends:
            ages = w.rate * w.decay ** torch.arange(w.max_steps, dtype=hidden.dtype)
            recalled = ((ages * (state.past @ hidden[:, :, None])[..., 0])[:, None] @ state.past)[:, 0]
        else:
            recalled = (hidden[:, None] @ state.fast)[:, 0]
        total = slow + recalled
        hidden = activate(normalise(w.norm, total) if w.layer_norm == "sum" else total)
    if attends:
        return type(state)(torch.cat([hidden[:, None], state.past[:, :-1]], 1)), hidden
    outer = hidden[:, :, None] * hidden[:, None]
    return type(state)(hidden, torch.add(w.decay * state.fast, outer, alpha=w.rate)), hidden


def _gated_fast_drive(w, inputs):
    return torch.cat([inputs, inputs @ w.slow_input_weights + w.slow_bias], -1)


def _gated_fast_weights(w, state, drive):
    x, slow = drive.split([w.input_size, w.slow_bias.shape[0]], -1)
    layer = torch.tanh(slow + state.slow_hidden @ w.slow_recurrent_weights)
    update = layer @ w.update_weights + w.update_bias
    rows, columns = [matrix.shape[1] for matrix in (state.first, state.second)], w.output_size
    sizes = [columns, rows[0], columns, rows[1]]
    slow_hidden, *values = torch.tanh(update[:, : w.slow_size + sum(sizes)]).split([w.slow_size, *sizes], -1)
    gates = torch.sigmoid(update[:, w.slow_size + sum(sizes) :]).split(sizes, -1) if w.gate else None
    constant = [torch.ones_like(x[:, :1])] if w.fast_bias else []

    def standardise(v, when):
        return layer_norm(v, v.shape[-1:], eps=w.eps) if w.layer_norm in (when, "both") else v

    hidden, matrices = torch.cat([state.fast_hidden, x], -1), []
    for number, fast in enumerate((state.first, state.second)):
        inputs = torch.cat([hidden, *constant], -1)
        hidden = standardise(torch.tanh(standardise((inputs[:, None] @ fast)[:, 0], "pre")), "post")
        alpha, beta = values[2 * number : 2 * number + 2]
        new = beta[:, :, None] * alpha[:, None]
        if gates is None:
            matrices.append(fast + new)
        else:
            gamma, delta = gates[2 * number : 2 * number + 2]
            matrices.append(torch.lerp(fast, new, delta[:, :, None] * gamma[:, None]))
    return type(state)(hidden, slow_hidden, *matrices), hidden


def _gates_to_lstm(sums, cell, gate_norms, cell_norm):
    """One LSTM of a HyperLSTM, from its sums [batch, 4, size]."""
    if gate_norms is not None:
        sums = layer_norm(sums, sums.shape[-1:], eps=gate_norms.eps) * gate_norms.gain + gate_norms.shift
    i, f, o, g = sums.unbind(1)
    cell = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(normalise(cell_norm, cell)), cell


def _hyper_lstm(w, state, drive):
    n, hyper_gates = w.hyper_size, 4 * w.hyper_size
    from_hidden = state.hidden @ w.recurrent_weights
    sums = drive[:, :hyper_gates] + from_hidden[:, :hyper_gates] + state.hyper_hidden @ w.hyper_weights + w.hyper_bias
    hyper_hidden, hyper_cell = _gates_to_lstm(
        sums.view(-1, 4, n), state.hyper_cell, w.hyper_gate_norms, w.hyper_cell_norm
    )
    z = (state.hyper_hidden if w.delayed else hyper_hidden) @ w.embedding_weights
    z = z.view(-1, 3, 4, w.hyper_embedding_size) + torch.nn.functional.pad(w.embedding_bias, (0, 0, 0, 0, 0, 1))
    hidden_scale, input_scale, shift = torch.einsum("bkge,kgeh->bkgh", z, w.scaling_weights).unbind(1)
    from_hidden, from_input = (part[:, hyper_gates:].unflatten(-1, (4, -1)) for part in (from_hidden, drive))
    sums = hidden_scale * from_hidden + input_scale * from_input + shift + w.bias
    hidden, cell = _gates_to_lstm(sums, state.cell, w.gate_norms, w.cell_norm)
    return type(state)(hidden, cell, hyper_hidden, hyper_cell), hidden


MEMORY: dict[type, Recurrence] = {
    NTM: Recurrence(_ntm, _controller_drive, _ntm_start),
    DNC: Recurrence(_dnc, _controller_drive),
    TARDIS: Recurrence(_tardis),
    FastWeights: Recurrence(_fast_weights),
    GatedFastWeights: Recurrence(_gated_fast_weights, _gated_fast_drive),
    HyperLSTM: Recurrence(_hyper_lstm, lambda w, inputs: inputs @ w.input_weights),
}
