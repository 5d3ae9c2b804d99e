"""PyTorch networks of the same equations and the same weights, as a user would write or pick them."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..cells import GRU, LSTM
from ._cells import Spec
from ._rivals import Rival
from ._torch_fast import FAST
from ._torch_loop import Loop, tensor
from ._torch_memory import MEMORY
from ._torch_recurrent import RECURRENT
from ._torch_sparse import SPARSE

torch.set_num_threads(os.cpu_count() or 1)
LOOPS = RECURRENT | FAST | MEMORY | SPARSE


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
