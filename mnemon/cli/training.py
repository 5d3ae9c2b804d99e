"""`mnemon train | evaluate | sample`."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import tyro

from .._errors import MnemonError, require
from .._mixed import Precision
from ._output import ERR, OUT, print_table, say


@dataclasses.dataclass(kw_only=True)
class _Training:
    """Options of the trainer; those of the task and of the cell are added to them."""

    steps: int = 10_000
    """Number of updates."""
    batch: int = 10
    """Episodes an update."""
    seed: int = 0
    """Seed of the initial parameters and of the data."""
    lr: float = 1e-3
    """Learning rate."""
    optimizer: str = "adam"
    """Any Optax optimiser by name."""
    clip: float | None = 1.0
    """Largest norm of the gradient; None for no clipping."""
    objective: str | None = None
    """What is minimised: supervised, synthetic-gradients, or for cells that choose reinforce, reinforce-auxiliary.
    Without it, what the name of the cell stands for."""
    truncate: int | None = None
    """Stop gradients through the state every so many steps; none: never inside an episode."""
    schedule: tuple[str, ...] = ()
    """Values that change with the update: NAME=FUNCTION(NUMBERS), as soft_probability=inverse_sqrt(0.0015); with ~ in
    place of = a 0 or 1 drawn once an update. Functions: constant, linear, exponential, inverse_sqrt."""
    budget: int | None = None
    """Choose the cell's size for this number of parameters."""
    embedding_size: int | None = None
    """Size of trained embeddings of the symbols; one-hot vectors without it."""
    embedding_scale: float = 1.0
    """Standard deviation of the entries of these embeddings at first."""
    input_layer_size: int | None = None
    """Units of a rectified layer before the cell."""
    output_layer_size: int | None = None
    """Units of a rectified layer between the cell and the readout."""
    lr_schedule: str = "constant"
    """How the learning rate goes over the steps: constant, linear, cosine, warmup-cosine."""
    patience: int | None = None
    """Validate at each record, keep the best network, and stop after so many records without a better one."""
    validation_episodes: int | None = None
    """Episodes of a validation, or of an examination after a lesson."""
    lessons: int | None = None
    """Teach lesson after lesson up to this one, each until it is passed (graph tasks); examined at each record."""
    lesson_options: tuple[str, ...] = ()
    """Options that the cell has from a lesson on, where no parameter depends on them: 9:memory_slots=128."""
    precision: Precision = "float32"
    """Of matrix products; parameters, states and sums are float32 always."""
    log_every: int = 100
    """Updates a record."""
    stop_when_solved: bool = False
    """Stop at the first record that counts as a solution."""
    out: Path | None = None
    """Folder of the run; a new one under runs/ without it."""
    resume: bool = False
    """Go on with the run in the folder."""
    overwrite: bool = False
    """Replace the run in the folder."""
    save_seconds: float = 30.0
    """Time between checkpoints."""
    json: bool = False
    """Print records and, last, the result as JSON lines."""


def train(arguments: list[str]) -> None:
    """Train a cell on a task: `mnemon train TASK CELL [options]`."""
    from .._options import changed_options, option_fields, parse_options
    from ..cells import CELLS, cell_entry, cell_options, count_parameters
    from ..report.progress import Progress
    from ..tasks import TASKS, task_class, task_options
    from ..training.runs import RunConfig, default_folder, train_run

    if len(arguments) < 2 or arguments[0].startswith("-") or arguments[1].startswith("-"):
        OUT.print("usage: mnemon train TASK CELL [options]     (options: mnemon train TASK CELL --help)\n")
        OUT.print(f"tasks: {', '.join(TASKS)}\ncells: {', '.join(CELLS)}")
        OUT.print("of your own: FILE.py:CLASS or MODULE:CLASS, as my_cell.py:MyCell")
        sys.exit(0 if "--help" in arguments or "-h" in arguments else 2)
    task_name, cell_name, rest = arguments[0], arguments[1], arguments[2:]
    task_parameters, entry = task_options(task_name), cell_entry(cell_name)
    cell_parameters = cell_options(entry)
    fields = option_fields(task_class(task_name), task_parameters) + option_fields(entry.cell, cell_parameters)
    options = parse_options(
        f"mnemon train {task_name} {cell_name}", f"Train {cell_name} on {task_name}.", _Training, fields, rest
    )
    config = RunConfig(
        task=task_name,
        cell=cell_name,
        task_options=changed_options(options, task_parameters),
        cell_options=changed_options(options, cell_parameters),
        **{name: getattr(options, name) for name in _shared_names(RunConfig, _Training)},
    )
    if options.budget is not None:
        config = config.with_budget(options.budget)
    folder = options.out or default_folder(config)
    task, parameters = config.make_task(), count_parameters(config.make_model())
    baseline = task.chance["loss"]
    progress = Progress(f"{task_name} {cell_name}", config.steps, options.json, ERR)
    progress.say(
        f"{cell_name} with {parameters:,} parameters on {task_name} in {folder}; without a memory: {baseline:.4f}"
    )
    from ..training import Interrupted

    try:
        with progress:
            result = train_run(
                config,
                folder,
                resume=options.resume,
                overwrite=options.overwrite,
                save_seconds=options.save_seconds,
                on_record=progress.record,
                on_progress=progress.update,
                report=progress.say,
            )
    except Interrupted as interruption:
        words = [word for word in arguments if word not in ("--resume", "--overwrite")]
        if options.out is None:
            words += ["--out", str(folder)]
        raise Interrupted(f"{interruption}\ngo on with: mnemon train {' '.join(words)} --resume") from None
    last = result.records[-1] if result.records else {}
    summary = {
        "step": result.update,
        "loss": last.get("loss"),
        "metrics": {name: value for name, value in last.items() if name != "step"},
        "baseline": baseline,
        "solved": result.solved,
        "parameters": parameters,
        "seconds": round(result.seconds, 3),
        "steps_per_second": round(result.updates_per_second, 3),
        "out": str(folder),
    }
    if options.json:
        print(json.dumps(summary))
    else:
        loss = "no update was made" if not last else f"loss {last['loss']:.4f} (without a memory {baseline:.4f})"
        OUT.print(
            f"{loss}{', solved' if result.solved else ''}; {result.seconds:.1f} s; {folder}",
            highlight=False,
            soft_wrap=True,
        )


def _shared_names(*classes: type) -> list[str]:
    names = [{field.name for field in dataclasses.fields(cls)} for cls in classes]
    return sorted(set.intersection(*names))


@dataclasses.dataclass(kw_only=True)
class _Evaluation:
    """Options of an evaluation; those of the run's task and cell are added to them."""

    episodes: int | None = None
    """How many fresh episodes; without it all of a data set's split, or 1000."""
    batch: int = 100
    """Episodes at a time."""
    seed: int = 0
    """Seed of the data."""
    json: bool = False
    """Print JSON."""


def evaluate(arguments: list[str]) -> None:
    """Score a trained run on fresh data, at other lengths, with more slots: `mnemon evaluate RUN [options]`.

    Of the cell's options, those can change that no trained parameter depends on, as the slots of a DNC.
    """
    from .._options import changed_options, option_fields, parse_options
    from ..cells import cell_entry, cell_options
    from ..tasks import make_task, task_class, task_options
    from ..training import evaluate as evaluate_model
    from ..training.fit import kept_model
    from ..training.runs import open_run, with_cell_options

    if not arguments or arguments[0].startswith("-"):
        OUT.print("usage: mnemon evaluate RUN [options]     (options: mnemon evaluate RUN --help)")
        sys.exit(0 if arguments else 2)
    run = open_run(Path(arguments[0]))
    config = run.config
    entry = cell_entry(config.cell)
    parameters, cell_parameters = (
        {name: p.replace(default=given.get(name, p.default)) for name, p in known.items()}
        for known, given in (
            (task_options(config.task), config.task_options),
            (cell_options(entry), config.cell_options),
        )
    )
    fields = option_fields(task_class(config.task), parameters) + option_fields(entry.cell, cell_parameters)
    options = parse_options(f"mnemon evaluate {run.folder}", evaluate.__doc__ or "", _Evaluation, fields, arguments[1:])
    trained = config.make_task()
    task = make_task(config.task, **{**config.task_options, **changed_options(options, parameters)})
    for size in ("input_size", "output_size"):
        require(
            getattr(task, size) == getattr(trained, size),
            size,
            getattr(task, size),
            f"the {getattr(trained, size)} that the run was trained with",
            f"mnemon evaluate {run.folder} --delay 200",
        )
    if task.symbol_names != trained.symbol_names:
        raise MnemonError("this task has other symbols than the one the run was trained on")
    step, state = run.load_state(report=say)
    changed_cell = changed_options(options, cell_parameters)
    model = with_cell_options(kept_model(state), config, changed_cell)
    settings = {name: getattr(options, name) for name in ("episodes", "batch", "seed")}
    metrics = evaluate_model(model, task, **settings)
    parts = {name: evaluate_model(model, part, **settings) for name, part in task.parts.items()}
    views = {
        name: evaluate_model(model, task, objective=view, **settings)
        for name, view in config.make_objective(task).views(state.carry).items()
    }
    result = {
        "run": str(run.folder),
        "step": step,
        "loss": metrics["loss"],
        "metrics": metrics,
        "baseline": task.chance["loss"],
        "solved": task.solved(metrics),
        "episodes": options.episodes,
        "parts": parts,
        "views": views,
        "failed": [name for name, part in task.parts.items() if not part.solved(parts[name])],
        "task_options": {**config.task_options, **changed_options(options, parameters)},
        "cell_options": {**config.cell_options, **changed_cell},
    }
    if options.json:
        print(json.dumps(result))
        return
    scores = [
        {
            "metric": name,
            "measured": value,
            **{view: scored[name] for view, scored in views.items()},
            "without a memory": task.chance.get(name, float("nan")),
            "perfect": task.perfect.get(name, float("nan")),
        }
        for name, value in metrics.items()
    ]
    print_table(scores, False, f"{config.cell} on {config.task} after {step:,} updates")
    if parts:
        rows = [{"part": name, **values} for name, values in parts.items()]
        print_table(rows, False, f"its parts; {len(result['failed'])} of {len(parts)} not solved")


@dataclasses.dataclass(kw_only=True)
class _Sample:
    run: Annotated[Path, tyro.conf.Positional]
    """Folder of a run of char-lm."""
    length: int = 500
    """How many characters."""
    prompt: str = "\n"
    """The text to go on from."""
    temperature: float = 1.0
    """Below 1 for likelier, above 1 for rarer characters; 0 for the likeliest always."""
    seed: int = 0
    """Seed of the draws."""
    json: bool = False
    """Print JSON."""


def sample(arguments: list[str]) -> None:
    """Text from a trained language model: `mnemon sample RUN [--prompt "The "]`."""
    options = tyro.cli(_Sample, prog="mnemon sample", description=sample.__doc__, args=arguments)
    from ..sampling import require_language_model, sample_text
    from ..training.runs import open_run

    run = open_run(options.run)
    task = require_language_model(run.config.make_task())
    settings = {name: getattr(options, name) for name in ("length", "prompt", "temperature", "seed")}
    step, model = run.load(report=say)
    text = sample_text(model, task, **settings)
    print(json.dumps({"run": str(run.folder), "step": step, **settings, "text": text}) if options.json else text)
