"""The plain PyTorch loop with its step compiled."""

import time

import torch

from ._cells import Spec
from ._rivals import Rival
from ._torch import LOOPS, as_rival
from ._torch_loop import Loop


def rivals(spec: Spec) -> dict[str, Rival]:
    """`torch.compile` of the step; compiling the loop as a whole takes minutes for a hundred steps."""
    cell = spec.make()
    if type(cell) not in LOOPS:
        return {}
    recurrence = LOOPS[type(cell)]
    rival = as_rival(Loop(cell, recurrence._replace(step=torch.compile(recurrence.step))), spec)
    started = time.perf_counter()
    rival.update()
    return {"torch.compile of the step": rival._replace(compile_seconds=time.perf_counter() - started)}
