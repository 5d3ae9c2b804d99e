"""Atomic checkpoints (Orbax) that notice when they are damaged."""

import hashlib
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from .._errors import MnemonError

T = TypeVar("T")
KEEP = 2


class Checkpoints:
    """The checkpoints of a run, newest last. A context manager."""

    def __init__(self, folder: Path):
        self.folder = folder.absolute()
        logging.getLogger("absl").setLevel(logging.ERROR)
        self._manager = self._open()

    def _open(self) -> ocp.CheckpointManager:
        options = ocp.CheckpointManagerOptions(max_to_keep=KEEP, enable_async_checkpointing=False, create=True)
        return ocp.CheckpointManager(self.folder, options=options)

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *_: object) -> None:
        self._manager.close()

    def path(self, update: int) -> Path:
        """Where the checkpoint of an update is."""
        return self.folder / str(update)

    def updates(self) -> list[int]:
        """The updates that have a checkpoint."""
        return sorted(self._manager.all_steps())

    def save(self, update: int, tree: object) -> Path:
        """Save the arrays of `tree`. The checkpoint is there as a whole or not at all."""
        if update not in self.updates():
            arrays = _arrays(tree)
            save = ocp.args.Composite(
                arrays=ocp.args.StandardSave(arrays), digest=ocp.args.JsonSave({"sha256": _digest(arrays)})
            )
            self._manager.save(update, args=save, force=True)
        return self.path(update)

    def restore(self, like: T, report: Callable[[str], None]) -> tuple[int, T] | None:
        """The newest sound checkpoint in the structure of `like`; damaged ones are reported and set aside."""
        for update in reversed(self.updates()):
            try:
                return update, self._load(update, like)
            except Exception as error:  # a damaged checkpoint can fail in any of the layers below
                aside = self.folder.parent / f"damaged-checkpoint-{update}"
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                report(
                    f"checkpoint {self.path(update)} is damaged ({reason:.120}); moved to {aside}; using the one before"
                )
                self._manager.close()
                self.path(update).rename(aside)
                self._manager = self._open()
        return None

    def _load(self, update: int, like: T) -> T:
        template = _arrays(like)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = self._manager.restore(
                update,
                args=ocp.args.Composite(arrays=ocp.args.StandardRestore(template), digest=ocp.args.JsonRestore()),
            )
        if _digest(loaded["arrays"]) != loaded["digest"]["sha256"]:
            raise MnemonError("its checksum does not match its content")
        leaves, treedef = jax.tree.flatten(like)
        values = [
            _like(leaf, loaded["arrays"][f"{n:04d}"]) if eqx.is_array(leaf) else leaf for n, leaf in enumerate(leaves)
        ]
        return jax.tree.unflatten(treedef, values)


def _arrays(tree: object) -> dict[str, np.ndarray]:
    leaves = enumerate(jax.tree.leaves(tree))
    return {f"{n:04d}": _plain(leaf) for n, leaf in leaves if eqx.is_array(leaf)}


def _plain(leaf) -> np.ndarray:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _like(leaf, value: np.ndarray):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(value))
    return jnp.asarray(value, leaf.dtype)


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
