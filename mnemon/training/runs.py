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
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from safetensors.numpy import save_file

from .._elsewhere import plain_name
from .._errors import BadValue, MnemonError, require, unknown
from .._files import write_atomically
from .._mixed import checked_precision
from .._version import __version__
from ..cells import cell_entry, cell_options, count_parameters, fit_size
from ..model import Model, make_model
from ..tasks import AbstractTask, make_task, task_class, task_options
from ._records import METRICS_FILE, Record, read_records
from ._updates import TrainState, init_state
from .checkpoints import Checkpoints
from .curriculum import Lessons, Progress, graph_lessons, train_curriculum
from .fit import FitResult, fit, kept_model, start_validation
from .objectives import AbstractObjective, default_objective
from .optimizers import make_optimizer
from .reinforce import Reinforce
from .schedules import Schedule, set_scheduled
from .synthetic import SyntheticGradients

Config = TypeVar("Config")
CONFIG_FILE = "run.json"
WEIGHTS_FILE = "model.safetensors"
_LESSON_OPTION = re.compile(r"(\d+):(\w+)=(-?\d+(?:\.\d+)?|true|false)")
# From the task and the steps after which gradients through the state stop.
OBJECTIVES: dict[str, Callable[[AbstractTask, int | None], AbstractObjective]] = {
    "supervised": default_objective,
    "reinforce": lambda task, truncate: Reinforce(truncate=truncate),
    "reinforce-auxiliary": lambda task, truncate: Reinforce(auxiliary=True, truncate=truncate),
    "synthetic-gradients": lambda task, truncate: SyntheticGradients(truncate),
}


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """What defines a run. Two runs with equal configurations end with equal metrics on one machine.

    Without an `objective` it is the one that the name of the cell stands for. `lesson_options` change options of the
    cell from a lesson on, as `9:memory_slots=128`: a memory that grows with what is taught.
    """

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
    objective: str | None = None
    truncate: int | None = None
    input_layer_size: int | None = None
    output_layer_size: int | None = None
    lr_schedule: str = "constant"
    schedule: Sequence[str] = ()
    patience: int | None = None
    validation_episodes: int | None = None
    lessons: int | None = None
    precision: str = "float32"
    embedding_scale: float = 1.0
    lesson_options: Sequence[str] = ()

    def __post_init__(self):
        object.__setattr__(self, "objective", self.objective or cell_entry(self.cell).objective)
        object.__setattr__(self, "schedule", tuple(self.schedule))  # JSON has lists
        object.__setattr__(self, "lesson_options", tuple(self.lesson_options))
        require(self.steps >= 0, "steps", self.steps, "a number of updates, 0 or more", "--steps 10000")
        require(self.batch >= 1, "batch", self.batch, "at least one episode an update", "--batch 10")
        require(
            self.log_every >= 1,
            "log_every",
            self.log_every,
            "at least one update a record",
            "--log-every 100",
        )
        require(
            self.truncate is None or self.truncate >= 1,
            "truncate",
            self.truncate,
            "a positive number of steps, or none",
            "--truncate 20",
        )
        require(self.patience is None or self.patience >= 1, "patience", self.patience, "1 or more", "--patience 5")
        checked_precision(self.precision)
        self.make_optimizer()
        if self.lessons is not None:
            self.make_lessons()
        self.cell_options_in(1)
        if self.objective not in OBJECTIVES:
            raise unknown("objective", str(self.objective), OBJECTIVES)
        self.make_schedules()
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
        size = self.input_layer_size or self.embedding_size or task.input_size
        options = fit_size(self.cell, budget, size, task.output_size, **self.cell_options)
        return dataclasses.replace(self, cell_options=options)

    def make_task(self) -> AbstractTask:
        """The task."""
        return make_task(self.task, **self.task_options)

    def make_validation(self) -> AbstractTask | None:
        """The task that decides which model is kept: the validation split of a data set, or fresh episodes."""
        if self.patience is None:
            return None
        split = {"split": "valid"} if "split" in task_options(self.task) else {}
        return make_task(self.task, **{**self.task_options, **split})

    def make_lessons(self) -> Lessons:
        """The lessons, where there are any: examined at each record, by so many episodes as validation has."""
        episodes = {} if self.validation_episodes is None else {"episodes": self.validation_episodes}
        task = task_class(self.task)
        return graph_lessons(task, last=self.lessons, options=self.task_options, check_every=self.log_every, **episodes)

    def cell_options_in(self, lesson: int) -> dict[str, Any]:
        """What `lesson_options` say of the cell in a lesson."""
        found: dict[str, Any] = {}
        for text in self.lesson_options:
            match = _LESSON_OPTION.fullmatch(text)
            if match is None or self.lessons is None:
                wanted = "LESSON:NAME=NUMBER, of a run with lessons"
                raise BadValue(f"lesson_options={text!r} cannot work: wanted {wanted}, e.g. 9:memory_slots=128")
            first, name, value = match.groups()
            known = cell_options(cell_entry(self.cell))
            if name not in known:
                raise unknown(f"option of {self.cell}", name, known)
            if int(first) <= lesson:
                found[name] = json.loads(value)
        return found

    def make_optimizer(self) -> optax.GradientTransformation:
        """The optimiser."""
        return make_optimizer(self.optimizer, self.lr, self.clip, schedule=self.lr_schedule, steps=self.steps)

    def make_objective(self, task: AbstractTask) -> AbstractObjective:
        """What is minimised."""
        return OBJECTIVES[str(self.objective)](task, self.truncate)

    def make_schedules(self) -> list[Schedule]:
        """What changes as training goes on."""
        return [Schedule.parse(text) for text in self.schedule]

    def make_model(self) -> Model:
        """The untrained model."""
        key = jax.random.fold_in(jax.random.key(self.seed), 0x1417)
        names = ("embedding_size", "embedding_scale", "input_layer_size", "output_layer_size")
        layers = {name: getattr(self, name) for name in names}
        task, precision = self.make_task(), checked_precision(self.precision)
        model = make_model(task, self.cell, **layers, precision=precision, key=key, **self.cell_options)
        return set_scheduled(model, self.make_schedules(), 0, key)


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
        step, state = self.load_state(report)
        return step, kept_model(state)

    def load_state(self, report: Callable[[str], None] = print) -> tuple[int, TrainState]:
        """The newest sound checkpoint: number of updates, and all that training knows."""
        config, task = self.config, self.config.make_task()
        objective = config.make_objective(task)
        like = init_state(config.make_model(), task, config.make_optimizer(), objective, config.batch, config.seed)
        like = like if config.patience is None else start_validation(like)
        with Checkpoints(self.folder / "checkpoints") as checkpoints:
            if config.lessons is None:
                restored = checkpoints.restore(like, report)
            else:
                progress = checkpoints.restore(Progress(like, jnp.asarray(0)), report)
                restored = None if progress is None else (progress[0], progress[1].state)
        if restored is None:
            raise MnemonError(f"{self.folder} holds no sound checkpoint; train it first with `mnemon train --resume`")
        return restored


def open_run(folder: Path) -> Run:
    """A run that exists."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise MnemonError(
            f"{folder} is not a run: it has no {CONFIG_FILE}; e.g. `mnemon train copying nru --out {folder}`"
        )
    return Run(folder, _read_config(path, RunConfig))


def train_run(
    config: RunConfig,
    folder: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    save_seconds: float = 30.0,
    **options: Any,
) -> FitResult:
    """Train a configuration in a folder, or go on with what the folder holds.

    A folder that holds another run is refused unless `overwrite`; one that holds this run is refused unless `resume`
    or `overwrite`. Nothing is written before the configuration has been found to work.
    """
    task, model = config.make_task(), config.make_model()
    objective = config.make_objective(task)
    eqx.filter_eval_shape(lambda model: objective.init_carry(model, task, config.batch), model)
    in_lessons = {tuple(config.cell_options_in(lesson).items()) for lesson in range(1, 1 + (config.lessons or 0))}
    for changed in in_lessons:
        with_cell_options(model, config, dict(changed))  # refused now, not when that lesson begins
    # Unless its learning rate depends on it, a run may go on to another end; its rule for stopping may always change.
    free = ("steps", "stop_when_solved") if config.lr_schedule == "constant" else ("stop_when_solved",)
    claim_folder(folder, config, count_parameters(model), resume=resume, overwrite=overwrite, free=free)
    common: dict[str, Any] = {
        "updates": config.steps,
        "batch": config.batch,
        "optimizer": config.make_optimizer(),
        "objective": config.make_objective(task),
        "seed": config.seed,
        "folder": folder,
        **options,
    }
    if config.lessons is not None:
        common["in_lesson"] = lambda model, lesson: with_cell_options(model, config, config.cell_options_in(lesson))
        result = train_curriculum(model, config.make_lessons(), **common)
    else:
        result = fit(
            model,
            task,
            log_every=config.log_every,
            stop_when_solved=config.stop_when_solved,
            schedules=config.make_schedules(),
            validation=config.make_validation(),
            validation_episodes=config.validation_episodes,
            patience=config.patience,
            save_seconds=save_seconds,
            **common,
        )
    export_weights(result.model, folder / WEIGHTS_FILE)
    return result


def with_cell_options(model: Model, config: RunConfig, options: Mapping[str, Any]) -> Model:
    """A network trained as `config` says, its cell with other options: a DNC with more slots than it was trained with.

    Only options that no parameter's shape depends on can change.
    """
    if not options:
        return model
    other = dataclasses.replace(config, cell_options={**config.cell_options, **options}).make_model()
    trained, wanted = eqx.filter(model, eqx.is_array), eqx.filter(other, eqx.is_array)
    shapes = [
        {jax.tree_util.keystr(path).lstrip("."): leaf.shape for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
        for tree in (trained, wanted)
    ]
    changed = sorted(name for name in shapes[0].keys() | shapes[1] if shapes[0].get(name) != shapes[1].get(name))
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    require(
        not changed,
        "cell options",
        given,
        f"options that leave the trained parameters as they are; {', '.join(changed)} would have other shapes",
        "--memory-slots 256 for a DNC",
    )
    arrays = jax.tree.unflatten(jax.tree.structure(wanted), jax.tree.leaves(trained))
    return eqx.combine(arrays, other)


def claim_folder(
    folder: Path, config: Any, parameters: int, *, resume: bool, overwrite: bool, free: tuple[str, ...] = ()
) -> None:
    """Write what a run is (`config`, a dataclass) into its folder, or find that the folder holds this very run.

    The fields named in `free` may differ from those of the run that is resumed.
    """
    path = folder / CONFIG_FILE
    wanted = dataclasses.asdict(config)
    if path.exists() and not overwrite:
        existing = dataclasses.asdict(_read_config(path, type(config)))
        if not resume:
            raise MnemonError(
                f"{folder} holds a run already: `--resume` goes on, `--overwrite` starts anew; or choose an `--out`"
            )
        changed = ", ".join(
            f"{name} {existing[name]!r} not {value!r}"
            for name, value in wanted.items()
            if existing[name] != value and name not in free
        )
        if changed:
            raise MnemonError(f"{folder} holds another run ({changed}): give another `--out`, or `--overwrite`")
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


def _read_config(path: Path, kind: type[Config]) -> Config:
    try:
        return kind(**json.loads(path.read_text())["config"])
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
    return Path("runs") / f"{plain_name(config.task)}-{plain_name(config.cell)}-seed{config.seed}-{stamp}"
