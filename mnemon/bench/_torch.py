"""PyTorch networks of the same equations and the same weights, as a user would write or pick them."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..cells import GRU, JANET, LSTM, NRU, RNN, AbstractCell
from ._cells import Spec
from ._rivals import Rival

torch.set_num_threads(os.cpu_count() or 1)


def rivals(spec: Spec) -> dict[str, Rival]:
    """torch.nn's own network where it has this cell, and a plain loop."""
    cell = spec.make()
    found: dict[str, torch.nn.Module] = {}
    if isinstance(cell, LSTM) and cell.peepholes is None:
        found["torch.nn.LSTM"] = _FirstOutput(_nn_lstm(cell))
    if isinstance(cell, GRU) and cell.candidate_bias is not None:
        found["torch.nn.GRU"] = _FirstOutput(_nn_gru(cell))
    if type(cell) in LOOPS:
        found["PyTorch loop"] = Loop(cell, LOOPS[type(cell)])
    return {name: as_rival(module, spec) for name, module in found.items()}


def as_rival(module: torch.nn.Module, spec: Spec, *, same_numbers: bool = True) -> Rival:
    """A module of PyTorch, timed as a user would call it."""
    inputs = tensor(spec.inputs())

    def outputs(batch: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return module(tensor(batch)).numpy()

    return Rival(forward_pass(module, inputs), training_update(module, inputs), outputs if same_numbers else None)


def training_update(module: torch.nn.Module, inputs: torch.Tensor) -> Callable[[], object]:
    """Adam on the mean square of all outputs, as for our cells."""
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)

    def update() -> None:
        optimizer.zero_grad(set_to_none=True)
        (module(inputs) ** 2).mean().backward()
        optimizer.step()

    return update


def forward_pass(module: torch.nn.Module, inputs: torch.Tensor) -> Callable[[], object]:
    """Outputs without gradients."""

    def forward() -> None:
        with torch.no_grad():
            module(inputs)

    return forward


def tensor(array: Any) -> torch.Tensor:
    """A PyTorch copy of an array."""
    return torch.tensor(np.array(array))


class _FirstOutput(torch.nn.Module):
    """torch.nn's recurrent layers return outputs and state."""

    def __init__(self, layer: torch.nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs)[0]


def _nn_lstm(cell: LSTM) -> torch.nn.LSTM:
    layer = torch.nn.LSTM(cell.input_size, cell.output_size, batch_first=True)
    order = [0, 1, 3, 2]  # ours: i f o g; theirs: i f g o
    _copy(layer, cell.input_weights, cell.recurrent_weights, cell.bias, np.zeros_like(cell.bias), order)
    return layer


def _nn_gru(cell: GRU) -> torch.nn.GRU:
    layer = torch.nn.GRU(cell.input_size, cell.output_size, batch_first=True)
    n = cell.output_size
    # Ours: z is the share of the candidate; theirs the share of the old state, 1 - z: the same with its signs turned.
    sign = np.concatenate([-np.ones(n), np.ones(2 * n)])
    recurrent = np.concatenate([cell.gate_weights, cell.candidate_weights], axis=1)
    recurrent_bias = np.concatenate([np.zeros(2 * n), np.asarray(cell.candidate_bias)])
    order = [1, 0, 2]  # ours: z r h; theirs: r z h
    _copy(
        layer,
        np.asarray(cell.input_weights) * sign,
        recurrent * sign,
        np.asarray(cell.bias) * sign,
        recurrent_bias,
        order,
    )
    return layer


def _copy(layer: Any, input_weights, recurrent_weights, input_bias, recurrent_bias, order: list[int]) -> None:
    def arrange(array) -> torch.Tensor:
        blocks = np.split(np.asarray(array), len(order), axis=-1)
        return torch.tensor(np.concatenate([blocks[n] for n in order], axis=-1).T.astype(np.float32).copy())

    with torch.no_grad():
        layer.weight_ih_l0.copy_(arrange(input_weights))
        layer.weight_hh_l0.copy_(arrange(recurrent_weights))
        layer.bias_ih_l0.copy_(arrange(input_bias))
        layer.bias_hh_l0.copy_(arrange(recurrent_bias))


class Loop(torch.nn.Module):
    """A plain Python loop over time; the input projection is computed for all steps at once."""

    def __init__(self, cell: AbstractCell, step: Callable):
        super().__init__()
        self.cell, self.step = cell, step
        arrays = {name: value for name, value in vars(cell).items() if hasattr(value, "shape")}
        self.weights = torch.nn.ParameterDict({name: torch.nn.Parameter(tensor(a)) for name, a in arrays.items()})

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        w = self.weights
        drive = inputs @ w["input_weights"]
        extra = w["bias"].shape[0] - drive.shape[-1]
        drive = torch.nn.functional.pad(drive, (0, extra)) + w["bias"]
        leaves = self.cell.init_state()
        state = [inputs.new_zeros(inputs.shape[0], leaf.shape[0]) for leaf in leaves]
        outputs = []
        for step_drive in drive.unbind(1):  # indexing would write zeros for all steps in each step's backward pass
            state = self.step(self.cell, w, state, step_drive)
            outputs.append(state[0])
        return torch.stack(outputs, 1)


def _rnn(cell: RNN, w, state, drive):
    z = drive + state[0] @ w["recurrent_weights"]
    if cell.norm is not None:
        z = torch.nn.functional.layer_norm(z, z.shape[-1:])
    return [torch.tanh(z) if cell.activation == "tanh" else torch.relu(z)]


def _lstm(cell: LSTM, w, state, drive):
    h, c = state
    i, f, o, g = (drive + h @ w["recurrent_weights"]).chunk(4, -1)
    if cell.peepholes is not None:
        i, f = i + w["peepholes"][0] * c, f + w["peepholes"][1] * c
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    if cell.peepholes is not None:
        o = o + w["peepholes"][2] * c
    return [torch.sigmoid(o) * torch.tanh(c), c]


def _gru(cell: GRU, w, state, drive):
    (h,) = state
    n = cell.output_size
    z, r = torch.sigmoid(drive[:, : 2 * n] + h @ w["gate_weights"]).chunk(2, -1)
    if cell.candidate_bias is None:
        recurrent = (r * h) @ w["candidate_weights"]
    else:
        recurrent = r * (h @ w["candidate_weights"] + w["candidate_bias"])
    return [(1 - z) * h + z * torch.tanh(drive[:, 2 * n :] + recurrent)]


def _janet(cell: JANET, w, state, drive):
    (h,) = state
    s, candidate = (drive + h @ w["recurrent_weights"]).chunk(2, -1)
    return [torch.sigmoid(s) * h + (1 - torch.sigmoid(s - cell.beta)) * torch.tanh(candidate)]


def _nru(cell: NRU, w, state, drive):
    h, memory = state
    n, k, m = cell.output_size, cell.heads, cell.memory_size
    h = torch.relu(drive[:, :n] + torch.cat([h, memory], -1) @ w["hidden_weights"])
    u = drive[:, n:] + torch.cat([h, memory], -1) @ w["head_weights"]
    side = (u.shape[-1] - 2 * k) // 4
    alpha, beta, wp, wq, ep, eq = u.split([k, k, side, side, side, side], -1)

    def along(amounts, p, q):
        directions = (p[:, :, None] * q[:, None, :]).reshape(-1, k, m)
        if cell.relu_heads:
            amounts, directions = torch.relu(amounts), torch.relu(directions)
        directions = torch.nn.functional.normalize(directions, p=cell.norm, dim=-1)
        return (amounts[:, :, None] * directions).sum(1)

    change = along(alpha, wp, wq) - along(beta, ep, eq)
    return [h, memory + (change / k if cell.average_heads else change)]


LOOPS: dict[type, Callable] = {RNN: _rnn, LSTM: _lstm, GRU: _gru, JANET: _janet, NRU: _nru}
