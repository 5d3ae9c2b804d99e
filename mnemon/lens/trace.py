"""What a cell's state holds, as named arrays over time, and the file it is kept in.

A trace file is a safetensors file (https://github.com/huggingface/safetensors, so no code is ever loaded) with the
arrays

```
inputs         [time] symbols or [time, channels]
targets        [time] symbols or [time, outputs]
mask           [time], True at the scored steps
outputs        [time, outputs], what the network answered
state/NAME     [time, ...], the part NAME of the state after each step
```

A part that is complex is kept as its two parts `NAME.real` and `NAME.imag`. The metadata of the file are `format`
(`mnemon-trace`), `version` (`1`), `state` (the names of the parts in order, a JSON list) and `about` (a JSON object:
what was traced, for people and viewers; [`trace_run`][mnemon.lens.trace_run] puts there `run`, `step`, `task`,
`task_options`, `cell`, `cell_options`, `seed`, and `shown`, the episode as text).
"""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .._errors import MnemonError
from ..model import Model
from ..tasks import AbstractTask, Episode

_FORMAT, _VERSION = "mnemon-trace", "1"
_EPISODE = ("inputs", "targets", "mask", "outputs")


@dataclasses.dataclass(frozen=True)
class Trace:
    """One episode, what the network answered, and its state after each step."""

    inputs: np.ndarray  # [time] symbols or [time, channels]
    targets: np.ndarray
    mask: np.ndarray  # [time], the scored steps
    outputs: np.ndarray  # [time, outputs]
    state: dict[str, np.ndarray]  # each [time, ...]
    about: dict[str, Any] = dataclasses.field(default_factory=dict)  # what was traced

    @property
    def episode(self) -> Episode:
        """The episode."""
        return Episode(self.inputs, self.targets, self.mask, len(self.inputs))  # pyright: ignore[reportArgumentType]


def named_arrays(state: Any) -> dict[str, Any]:
    """The arrays of a state by name.

    >>> import jax
    >>> from mnemon.cells import LSTM
    >>> list(named_arrays(LSTM(2, 3, key=jax.random.key(0)).init_state()))
    ['hidden', 'cell']
    """
    return {leaf_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(state)}


def leaf_name(path: Any) -> str:
    """The name of an array of a state: its fields, joined by dots."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def trace(model: Model, task: AbstractTask, key: PRNGKeyArray) -> Trace:
    """Run one fresh episode and keep everything."""
    episodes = task.batch(key, 0, 1)

    @eqx.filter_jit
    def run(model, episodes):
        outputs, result = model(episodes, observe=lambda state: state, lengths=episodes.length)
        return outputs, result.observed

    outputs, observed = run(model, episodes)
    end = int(episodes.length[0])

    def cut(array) -> np.ndarray:
        return np.asarray(array)[0, :end]

    state: dict[str, np.ndarray] = {}
    for name, array in named_arrays(observed).items():
        values = cut(array)
        if np.iscomplexobj(values):
            state |= {f"{name}.real": np.real(values), f"{name}.imag": np.imag(values)}
        else:
            state[name] = values
    return Trace(cut(episodes.inputs), cut(episodes.targets), cut(episodes.mask), cut(outputs), state)


def trace_run(folder: Path, *, seed: int = 1, report: Callable[[str], None] = print) -> Trace:
    """Trace a trained run on a fresh episode of its task."""
    from ..training.runs import open_run

    run = open_run(folder)
    task = run.config.make_task()
    step, model = run.load(report=report)
    traced = trace(model, task, jax.random.key(seed))
    config = dataclasses.asdict(run.config)
    about = {name: config[name] for name in ("task", "task_options", "cell", "cell_options")}
    about |= {"run": str(folder), "step": step, "seed": seed, "shown": task.show(traced.episode)}
    return dataclasses.replace(traced, about=about)


def save_trace(traced: Trace, path: Path) -> Path:
    """Write a trace file, whole or not at all."""
    arrays = {name: getattr(traced, name) for name in _EPISODE}
    arrays |= {f"state/{name}": values for name, values in traced.state.items()}
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "state": json.dumps(list(traced.state)),
        "about": json.dumps(traced.about),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    save_file({name: np.ascontiguousarray(values) for name, values in arrays.items()}, part, metadata)
    os.replace(part, path)
    return path


def load_trace(path: Path) -> Trace:
    """Read a trace file."""
    if not path.is_file():
        raise MnemonError(f"{path} does not exist; make a trace with `mnemon lens trace RUN --out {path}`")
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT or metadata.get("version") != _VERSION:
                found = f"format {metadata.get('format')!r}, version {metadata.get('version')!r}"
                raise MnemonError(f"{path} is not a trace of this version ({_FORMAT} {_VERSION}): it has {found}")
            episode = {name: file.get_tensor(name) for name in _EPISODE}
            names, about = json.loads(metadata["state"]), json.loads(metadata["about"])
            state = {name: file.get_tensor(f"state/{name}") for name in names}
    except (SafetensorError, json.JSONDecodeError, KeyError, OSError) as error:
        raise MnemonError(f"{path} is damaged: {error}; trace the run again with `mnemon lens trace`") from error
    lengths = {len(values) for values in (*episode.values(), *state.values()) if values.ndim}
    if len(lengths) != 1:
        raise MnemonError(f"{path} is damaged: its arrays have {sorted(lengths)} steps, not one number of them")
    return Trace(**episode, state=state, about=about)
