"""A run: a folder with everything that made it and everything it made.

```
run.json         what was trained on what, with which options
metrics.jsonl    one line a record
checkpoints/     for resuming
model.safetensors  the trained arrays by name, once the run has ended
```
"""

import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
from safetensors.numpy import save_file

from .._errors import MnemonError, require, unknown
from .._files import write_atomically
from .._version import __version__
from ..cells import cell_entry, cell_options, count_parameters, fit_size
from ..model import Model, make_model
from ..tasks import AbstractTask, make_task, task_options
from .checkpoints import Checkpoints
from .fit import METRICS_FILE, FitResult, Record, _init_state, fit, read_records
from .objectives import AbstractObjective, default_objective
from .optimizers import make_optimizer
from .reinforce import Reinforce

CONFIG_FILE = "run.json"
WEIGHTS_FILE = "model.safetensors"
# A run may be resumed to another end, and with another rule for stopping.
_FREE = ("steps", "stop_when_solved")
OBJECTIVES: dict[str, Callable[[AbstractTask], AbstractObjective]] = {
    "supervised": default_objective,
    "reinforce": lambda task: Reinforce(),
    "reinforce-auxiliary": lambda task: Reinforce(auxiliary=True),
}


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """What defines a run. Two runs with equal configurations end with equal metrics on one machine."""

    task: str
    cell: str
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    cell_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: int = 10_000
    batch: int = 10
    seed: int = 0
    lr: float = 1e-3
    optimizer: str = "adam"
    clip: float | None = 1.0
    log_every: int = 100
    stop_when_solved: bool = False
    embedding_size: int | None = None
    objective: str = "supervised"

    def __post_init__(self):
        require(self.steps >= 0, "steps", self.steps, "a number of updates, 0 or more", "--steps 10000")
        require(self.batch >= 1, "batch", self.batch, "at least one episode an update", "--batch 10")
        require(
            self.log_every >= 1,
            "log_every",
            self.log_every,
            "at least one update a record",
            "--log-every 100",
        )
        make_optimizer(self.optimizer, self.lr, self.clip)
        if self.objective not in OBJECTIVES:
            raise unknown("objective", self.objective, OBJECTIVES)
        # An option given at its default is the same run as one not given.
        for name, known in (
            ("task_options", task_options(self.task)),
            ("cell_options", cell_options(cell_entry(self.cell))),
        ):
            given = getattr(self, name)
            changed = {k: v for k, v in given.items() if k not in known or known[k].default != v}
            object.__setattr__(self, name, changed)

    def with_budget(self, budget: int) -> "RunConfig":
        """The same run with the cell's size chosen for a number of parameters."""
        task = self.make_task()
        size = task.input_size if self.embedding_size is None else self.embedding_size
        options = fit_size(self.cell, budget, size, task.output_size, **self.cell_options)
        return dataclasses.replace(self, cell_options=options)

    def make_task(self) -> AbstractTask:
        """The task."""
        return make_task(self.task, **self.task_options)

    def make_objective(self, task: AbstractTask) -> AbstractObjective:
        """What is minimised."""
        return OBJECTIVES[self.objective](task)

    def make_model(self) -> Model:
        """The untrained model."""
        key = jax.random.fold_in(jax.random.key(self.seed), 0x1417)
        return make_model(self.make_task(), self.cell, embedding_size=self.embedding_size, key=key, **self.cell_options)


@dataclasses.dataclass(frozen=True)
class Run:
    """A run on disk."""

    folder: Path
    config: RunConfig

    @property
    def records(self) -> list[Record]:
        """Its metrics so far."""
        return read_records(self.folder / METRICS_FILE)

    def load(self, report: Callable[[str], None] = print) -> tuple[int, Model]:
        """The newest sound checkpoint: number of updates, and model."""
        config, task = self.config, self.config.make_task()
        optimizer = make_optimizer(config.optimizer, config.lr, config.clip)
        like = _init_state(config.make_model(), task, optimizer, config.make_objective(task), config.batch, config.seed)
        with Checkpoints(self.folder / "checkpoints") as checkpoints:
            restored = checkpoints.restore(like, report)
        if restored is None:
            raise MnemonError(f"{self.folder} holds no sound checkpoint; train it first with `mnemon train --resume`")
        return restored[0], restored[1].model


def open_run(folder: Path) -> Run:
    """A run that exists."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise MnemonError(
            f"{folder} is not a run: it has no {CONFIG_FILE}; e.g. `mnemon train copying nru --out {folder}`"
        )
    stored = _read_config(path)
    try:
        return Run(folder, RunConfig(**stored))
    except TypeError as error:
        raise MnemonError(f"{path} is damaged: {error}") from error


def train_run(
    config: RunConfig, folder: Path, *, resume: bool = False, overwrite: bool = False, **options: Any
) -> FitResult:
    """Train a configuration in a folder, or go on with what the folder holds.

    A folder that holds another run is refused unless `overwrite`; one that holds this run is refused unless `resume`
    or `overwrite`. Nothing is written before the configuration has been found to work.
    """
    task, model = config.make_task(), config.make_model()
    claim_folder(folder, config, count_parameters(model), resume=resume, overwrite=overwrite, free=_FREE)
    result = fit(
        model,
        task,
        updates=config.steps,
        batch=config.batch,
        optimizer=make_optimizer(config.optimizer, config.lr, config.clip),
        objective=config.make_objective(task),
        seed=config.seed,
        log_every=config.log_every,
        stop_when_solved=config.stop_when_solved,
        folder=folder,
        **options,
    )
    export_weights(result.model, folder / WEIGHTS_FILE)
    return result


def claim_folder(
    folder: Path, config: Any, parameters: int, *, resume: bool, overwrite: bool, free: tuple[str, ...] = ()
) -> None:
    """Write what a run is (`config`, a dataclass) into its folder, or find that the folder holds this very run.

    The fields named in `free` may differ from those of the run that is resumed.
    """
    path = folder / CONFIG_FILE
    # As it is read back, so that tuples and lists are alike.
    wanted = json.loads(json.dumps(dataclasses.asdict(config)))
    if path.exists() and not overwrite:
        existing = {**_defaults(config), **_read_config(path)}
        if not resume:
            raise MnemonError(
                f"{folder} holds a run already: `--resume` goes on, `--overwrite` starts anew; or choose an `--out`"
            )
        changed = [
            f"{name} {existing[name]!r} not {value!r}"
            for name, value in wanted.items()
            if existing[name] != value and name not in free
        ]
        if changed:
            changes = ", ".join(changed)
            raise MnemonError(f"{folder} holds another run ({changes}): give another `--out`, or `--overwrite`")
    elif folder.exists() and any(folder.iterdir()) and not path.exists():
        raise MnemonError(f"{folder} exists and is not a run: give another `--out`")
    about = {
        "config": wanted,
        "parameters": parameters,
        "versions": {"mnemon": __version__, "jax": jax.__version__, "equinox": eqx.__version__},
    }
    if overwrite and path.exists():
        shutil.rmtree(folder)
    write_atomically(path, json.dumps(about, indent=2) + "\n")


def _defaults(config: Any) -> dict[str, Any]:
    """The fields that a run from before they existed does not tell of, as it was trained."""
    return {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(config)
    }


def _read_config(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text())["config"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise MnemonError(f"{path} is damaged: {error}") from error


def export_weights(model: Model, path: Path) -> None:
    """Write all arrays of a model by name as safetensors."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_array))
    part = path.with_suffix(".part")
    save_file({jax.tree_util.keystr(name).lstrip("."): jax.device_get(leaf) for name, leaf in leaves}, part)
    os.replace(part, path)


def default_folder(config: RunConfig) -> Path:
    """A new folder under `runs/`, named by task, cell, seed and time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{config.task}-{config.cell}-seed{config.seed}-{stamp}"
