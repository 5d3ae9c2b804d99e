"""PyTorch steps of the gated and additive cells."""

import torch

from ..cells import GRU, JANET, LSTM, NRU, RNN
from ._torch_loop import ACTIVATIONS, Recurrence, normalise


def _rnn(w, state, drive):
    h = ACTIVATIONS[w.activation](normalise(w.norm, drive + state.hidden @ w.recurrent_weights))
    return type(state)(h), h


def _lstm_drive(w, inputs):
    return normalise(w.norms and w.norms[0], inputs @ w.input_weights) + w.bias


def _lstm(w, state, drive):
    h, c = state
    i, f, o, g = (drive + normalise(w.norms and w.norms[1], h @ w.recurrent_weights)).chunk(4, -1)
    if w.peepholes is not None:
        i, f = i + w.peepholes[0] * c, f + w.peepholes[1] * c
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    if w.peepholes is not None:
        o = o + w.peepholes[2] * c
    h = torch.sigmoid(o) * torch.tanh(normalise(w.norms and w.norms[2], c))
    return type(state)(h, c), h


def _gru(w, state, drive):
    h, n = state.hidden, w.output_size
    z, r = torch.sigmoid(drive[:, : 2 * n] + h @ w.gate_weights).chunk(2, -1)
    if w.candidate_bias is None:
        recurrent = (r * h) @ w.candidate_weights
    else:
        recurrent = r * (h @ w.candidate_weights + w.candidate_bias)
    h = (1 - z) * h + z * torch.tanh(drive[:, 2 * n :] + recurrent)
    return type(state)(h), h


def _janet(w, state, drive):
    s, candidate = (drive + state.hidden @ w.recurrent_weights).chunk(2, -1)
    h = torch.sigmoid(s) * state.hidden + (1 - torch.sigmoid(s - w.beta)) * torch.tanh(candidate)
    return type(state)(h), h


def _nru(w, state, drive):
    h, memory = state
    n, k, m = w.output_size, w.heads, w.memory_size
    h = torch.relu(drive[:, :n] + torch.cat([h, memory], -1) @ w.hidden_weights)
    u = drive[:, n:] + torch.cat([h, memory], -1) @ w.head_weights
    side = (u.shape[-1] - 2 * k) // 4
    alpha, beta, wp, wq, ep, eq = u.split([k, k, side, side, side, side], -1)

    def along(amounts, p, q):
        directions = (p[:, :, None] * q[:, None, :]).reshape(-1, k, m)
        if w.relu_heads:
            amounts, directions = torch.relu(amounts), torch.relu(directions)
        directions = torch.nn.functional.normalize(directions, p=w.norm, dim=-1)
        return (amounts[:, :, None] * directions).sum(1)

    change = along(alpha, wp, wq) - along(beta, ep, eq)
    return type(state)(h, memory + (change / k if w.average_heads else change)), h


RECURRENT: dict[type, Recurrence] = {
    RNN: Recurrence(_rnn),
    LSTM: Recurrence(_lstm, _lstm_drive),
    GRU: Recurrence(_gru),
    JANET: Recurrence(_janet),
    NRU: Recurrence(_nru),
}
