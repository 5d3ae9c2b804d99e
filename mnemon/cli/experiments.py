"""`mnemon experiments | reproduce | report | demo`."""

import dataclasses
import difflib
import json
from pathlib import Path
from typing import Annotated, Any

import tyro

from .._errors import require, unknown
from ._output import ERR, print_table, say


@dataclasses.dataclass(kw_only=True)
class _Experiments:
    ids: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Of which experiments; of all without it."""
    results: Path = Path("results")
    """Where the results of experiments are."""
    json: bool = False
    """Print JSON."""


def experiments(arguments: list[str]) -> None:
    """The tables and figures of the literature, with their presets and the state of the results here."""
    options = tyro.cli(_Experiments, prog="mnemon experiments", description=experiments.__doc__, args=arguments)
    from ..report.listings import experiment_rows

    print_table(experiment_rows(options.results, options.ids), options.json, "Experiments")


@dataclasses.dataclass(kw_only=True)
class _Reproduction:
    id: Annotated[str, tyro.conf.Positional]
    """Id of the experiment, see `mnemon experiments`."""
    preset: str = "smoke"
    """smoke, laptop or paper."""
    seeds: int | None = None
    """How many seeds; those of the preset without it."""
    jobs: int = 1
    """Processes at a time."""
    only: tuple[str, ...] = ()
    """Only the arms of these names, or that have one of these in their names."""
    on: str = "processes"
    """processes of this machine, ray (a cluster that is started here), or ray://ADDRESS."""
    missing: bool = False
    """Leave out runs that the results have already, made elsewhere with the same settings."""
    beside: tuple[str, ...] = ()
    """Cells to put among those of the experiment, of mnemon or your own as my_cell.py:MyCell; these alone are run."""
    like: str = "lstm"
    """The network that they are trained like, with as many parameters."""
    estimate: bool = False
    """Only say how long it would take here, from a few seconds of each network."""
    runs: Path = Path("runs")
    """Where the runs work; what is there is gone on with."""
    results: Path = Path("results")
    """Where the results go."""
    json: bool = False
    """Print JSON."""


def reproduce(arguments: list[str]) -> None:
    """Run an experiment, or go on with it: `mnemon reproduce ID --preset smoke|laptop|paper`."""
    options = tyro.cli(_Reproduction, prog="mnemon reproduce", description=reproduce.__doc__, args=arguments)
    from ..experiments import estimate
    from ..experiments import reproduce as run

    common: dict[str, Any] = {
        "seeds": options.seeds,
        "only": options.only,
        "results": options.results,
        "report": say,
    }
    if options.estimate:
        require(not options.beside, "beside", options.beside, "no --estimate with it", "--estimate alone")
        kind, path = "costs", estimate(options.id, options.preset, **common)
    else:
        how = {"jobs": options.jobs, "on": options.on, "missing": options.missing, "runs": options.runs}
        path = run(options.id, options.preset, beside=options.beside, like=options.like, **how, **common)
        kind = "results"
    print(json.dumps({kind: str(path)}) if options.json else path)


@dataclasses.dataclass(kw_only=True)
class _Report:
    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Folders of runs, or ids of experiments."""
    out: Path = Path("report.html")
    """The page to write about runs."""
    files: bool = True
    """Also write each picture (SVG, PNG, PDF) and table (CSV, Markdown) of the page to a folder beside it."""
    results: Path = Path("results")
    """Where the results of experiments are."""
    json: bool = False
    """Print JSON."""


def report(arguments: list[str]) -> None:
    """A page about runs, or table and figure of experiments: `mnemon report RUN ...` or `mnemon report ID ...`."""
    options = tyro.cli(_Report, prog="mnemon report", description=report.__doc__, args=arguments)
    require(len(options.runs) >= 1, "runs", options.runs, "a run or an experiment", "mnemon report runs/demo/nru")
    from ..experiments import EXPERIMENTS
    from ..experiments._report import write_report as write_experiment
    from ..report.page import write_report
    from ..training.runs import open_run

    ids = [name for name in options.runs if name in EXPERIMENTS]
    folders = [Path(name) for name in options.runs if name not in EXPERIMENTS]
    for name, folder in zip([n for n in options.runs if n not in EXPERIMENTS], folders, strict=True):
        if not folder.exists() and difflib.get_close_matches(name, EXPERIMENTS, cutoff=0.6):
            raise unknown("experiment", name, EXPERIMENTS)
    written = [path for name in ids for path in write_experiment(name, options.results)]
    if folders:
        files = options.out.with_name(f"{options.out.stem}-files") if options.files else None
        written += write_report([open_run(folder) for folder in folders], options.out, files=files, report=say)
    if options.json:
        print(json.dumps({"files": [str(path) for path in written]}))
    else:
        print("\n".join(map(str, written)))


@dataclasses.dataclass(kw_only=True)
class _Demo:
    out: Path = Path("runs/demo")
    """Folder for the two runs and the page."""
    steps: int = 10_000
    """Updates of each network."""
    delay: int = 30
    """Steps over which the symbols are kept."""
    json: bool = False
    """Print JSON."""


def demo(arguments: list[str]) -> None:
    """Train NRU and LSTM side by side on copying, and write a page that shows what happened."""
    options = tyro.cli(_Demo, prog="mnemon demo", description=demo.__doc__, args=arguments)
    from ..report.demo import run_demo

    page = run_demo(options.out, options.steps, options.delay, ERR)
    print(json.dumps({"page": str(page)}) if options.json else f"The page is {page}")
