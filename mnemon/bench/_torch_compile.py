"""The plain PyTorch loop with its step compiled."""

import time

import torch

from ._cells import Spec
from ._rivals import Rival
from ._torch import LOOPS, as_rival
from ._torch_loop import Loop, tensor


def rivals(spec: Spec) -> dict[str, Rival]:
    """`torch.compile` of the step; compiling the loop as a whole takes minutes for a hundred steps."""
    cell = spec.make()
    if type(cell) not in LOOPS:
        return {}
    recurrence = LOOPS[type(cell)]
    module = Loop(cell, recurrence._replace(step=torch.compile(recurrence.step)))
    started = time.perf_counter()
    # Without a step of the optimiser: the weights stay ours until the outputs have been compared.
    (module(tensor(spec.inputs())) ** 2).mean().backward()
    return {"torch.compile of the step": as_rival(module, spec)._replace(compile_seconds=time.perf_counter() - started)}
