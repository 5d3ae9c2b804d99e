"""The package `dnc` of PyPI."""

import dnc
import torch

from ..cells import DNC
from ._cells import Spec
from ._rivals import Rival
from ._torch import as_rival


def rivals(spec: Spec) -> dict[str, Rival]:
    """A DNC of the same sizes. Its equations depart from the paper in places, so outputs are not compared."""
    cell = spec.make()
    if not isinstance(cell, DNC):
        return {}
    options = spec.options
    module = dnc.DNC(
        input_size=spec.input_size,
        hidden_size=options["hidden_size"],
        rnn_type="lstm",
        num_layers=1,
        num_hidden_layers=1,
        nr_cells=options["memory_slots"],
        cell_size=options["word_size"],
        read_heads=options["read_heads"],
        batch_first=True,
    )
    return {"PyPI dnc": as_rival(_Outputs(module), spec, same_numbers=False)}


class _Outputs(torch.nn.Module):
    """The package returns outputs and state, and wants to be told to start afresh."""

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.module = module

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.module(inputs, (None, None, None), reset_experience=True)[0]
