"""A cell as a plain PyTorch loop over time, as a user of PyTorch would write it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import torch

from ..cells import AbstractCell
from ..cells._fixed import Fixed


def tensor(array: Any) -> torch.Tensor:
    """A PyTorch copy of an array."""
    return torch.tensor(np.array(array))


class Mirror(torch.nn.Module):
    """A cell's fields under their own names: arrays as parameters, fixed ones as buffers, sizes and options as such."""

    def __init__(self, module: eqx.Module):
        super().__init__()
        for name, value in vars(module).items():
            setattr(self, name, _mirror(value))


def _mirror(value: Any) -> Any:
    if isinstance(value, Fixed):
        return torch.nn.Buffer(tensor(value.value))
    if isinstance(value, eqx.Module):
        return Mirror(value)
    if isinstance(value, tuple) and all(isinstance(part, eqx.Module) for part in value):
        return torch.nn.ModuleList([Mirror(part) for part in value])
    if isinstance(value, tuple) and all(map(eqx.is_array, value)):
        return torch.nn.ParameterList([tensor(part) for part in value])
    return torch.nn.Parameter(tensor(value)) if eqx.is_array(value) else value


def normalise(norm: Any, values: torch.Tensor) -> torch.Tensor:
    """Layer normalisation by the mirror of ours, where there is one."""
    if norm is None:
        return values
    return torch.nn.functional.layer_norm(values, values.shape[-1:], norm.gain, norm.shift, norm.eps)


ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda values: values}


def linear(weights: Any, inputs: torch.Tensor) -> torch.Tensor:
    """What most cells take from their inputs. A bias that is longer than it goes on where the inputs have no part."""
    from_inputs = inputs @ weights.input_weights
    extra = weights.bias.shape[0] - from_inputs.shape[-1]
    return torch.nn.functional.pad(from_inputs, (0, extra)) + weights.bias


class Recurrence(NamedTuple):
    """A cell's equations for a batch. `weights` is the cell's `Mirror`; states are those of the cell, batched."""

    step: Callable[[Any, Any, torch.Tensor], tuple[Any, torch.Tensor]]  # weights, state, drive -> state, output
    drive: Callable[[Any, torch.Tensor], torch.Tensor] = linear  # from the inputs of all steps at once
    start: Callable[[Any, Any], Any] = lambda weights, state: state  # puts what is learned in the first state


class Loop(torch.nn.Module):
    """The loop over time."""

    def __init__(self, cell: AbstractCell, recurrence: Recurrence):
        super().__init__()
        self.weights, self.recurrence = Mirror(cell), recurrence
        self.first = jax.tree.map(tensor, cell.init_state())

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        step, drive, start = self.recurrence
        batch = len(inputs)
        state = jax.tree.map(lambda leaf: leaf.expand(batch, *leaf.shape), start(self.weights, self.first))
        outputs = []
        # Slices taken one by one would each make a gradient of the size of the whole.
        for now in drive(self.weights, inputs).unbind(1):
            state, output = step(self.weights, state, now)
            outputs.append(output)
        return torch.stack(outputs, 1)
