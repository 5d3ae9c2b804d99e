"""PyTorch steps of the cells with fast weights and of the hypernetwork."""

import torch
from torch.nn.functional import layer_norm

from ..cells import FastWeights, GatedFastWeights, HyperLSTM
from ._torch_loop import ACTIVATIONS, Recurrence, normalise


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


FAST: dict[type, Recurrence] = {
    FastWeights: Recurrence(_fast_weights),
    GatedFastWeights: Recurrence(_gated_fast_weights, _gated_fast_drive),
    HyperLSTM: Recurrence(_hyper_lstm, lambda w, inputs: inputs @ w.input_weights),
}
