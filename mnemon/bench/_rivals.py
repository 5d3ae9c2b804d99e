"""What a cell is compared with: other libraries' networks of the same sizes, and where possible the same numbers."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from .._errors import MnemonError
from ._cells import Spec, compile_network


class Rival(NamedTuple):
    """Someone else's network, ready to be timed."""

    forward: Callable[[], object]  # outputs without gradients; waits for the result
    update: Callable[[], object]  # Adam on the mean square of all outputs, as for our cells
    outputs: Callable[[np.ndarray], np.ndarray] | None  # to compare with ours; None where the equations differ
    compile_seconds: float = 0.0


def jax_rival(run: Callable[[Any, jax.Array], jax.Array], network: Any, spec: Spec) -> Rival:
    """A network of another JAX library, timed in the same way as ours."""
    compiled = compile_network(run, network, spec.inputs())
    return Rival(
        compiled.forward,
        compiled.update,
        lambda batch: np.asarray(run(network, jax.numpy.asarray(batch))),
        compiled.compile_seconds,
    )


# By the word of --against: the module that makes the rivals, and the packages it needs.
_MODULES = {
    "torch": ("_torch", "torch"),
    "torch-compile": ("_torch_compile", "torch"),
    "dnc": ("_pypi_dnc", "bench"),
    "equinox": ("_equinox", "bench"),
    "flax": ("_flax", "bench"),
}
AGAINST = tuple(_MODULES)


def find_rivals(against: tuple[str, ...], spec: Spec) -> dict[str, Rival]:
    """The rivals of a cell at its sizes; none where a library has no such network."""
    found: dict[str, Rival] = {}
    for word in against:
        module, extra = _MODULES[word]
        try:
            source = importlib.import_module(f"{__package__}.{module}")
        except ImportError as error:
            raise MnemonError(f"--against {word} needs a package: pip install 'mnemon[{extra}]' ({error})") from error
        found |= source.rivals(spec)
    return found


def agree(ours: np.ndarray, rival: Rival, inputs: np.ndarray) -> bool | None:
    """Whether a rival gives our outputs, so that its time can be compared with ours; None if it cannot be checked.

    At least half the outputs must agree: where rounding decides which of two equally near rows of a memory is read,
    the rest of an example goes another way.
    """
    if rival.outputs is None:
        return None
    errors = np.abs(ours - rival.outputs(inputs)).max(axis=-1)
    return bool(np.median(errors) <= _TOLERANCE * (1 + np.max(np.abs(ours))))


# Equal networks agree to rounding; beyond this the rival computes something else and no ratio is shown.
_TOLERANCE = 1e-4
