"""Pages that the site has beside those in this folder, and what Markdown does not do by itself (a hook of mkdocs)."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from mnemon.cells import CELLS
from mnemon.data import DATASETS
from mnemon.experiments import EXPERIMENTS
from mnemon.tasks import TASKS

ROOT = Path(__file__).parent.parent
# Packages whose public names have a page, and what the page is called.
PACKAGES = {
    "mnemon": "The library",
    "mnemon.cells": "The contract of a cell",
    "mnemon.memory": "Parts of memories",
    "mnemon.tasks": "The contract of a task",
    "mnemon.training": "Training",
    "mnemon.lifelong": "Lifelong learning",
    "mnemon.lens": "The lens",
    "mnemon.conformance": "Checks of cells",
}
# Where a link of a file of the repository leads to on the site.
_MOVED = (
    (r"\]\((?:\.\./)?mnemon/(cells|tasks)/(\w+)\.py\)", r"](\1/\2.md)"),
    (r"\]\((?:\.\./)?docs/", r"]("),
    (r"\]\(\.\./(results/)", r"](\1"),
)
_DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$|>>> ).*\n?)*)+", re.MULTILINE)
_MATH = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.DOTALL)


class Docstrings(griffe.Extension):
    """What docstrings lack as Markdown: `>>>` would be a quotation of a quotation, and fields have comments instead."""

    def on_instance(self, *, obj: griffe.Object, **others: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **others: Any) -> None:
        if attr.docstring is None and attr.lineno is not None and isinstance(attr.filepath, Path):
            _, _, comment = attr.lines_collection[attr.filepath][attr.lineno - 1].partition("  # ")
            if comment:
                attr.docstring = griffe.Docstring(comment, parent=attr)


def fence_examples(docstring: str) -> str:
    """A docstring with its examples in fences."""
    return _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring)


def as_mathml(latex: str, display: str) -> str:
    """An equation that browsers draw by themselves."""
    latex = latex.replace("{aligned}", "{align*}")
    # A line may begin with a bracket, which LaTeX's line break would take as its argument.
    latex = re.sub(r"(\\begin\{align\*\}|\\\\)(\s*)\[", r"\1\2{}[", latex)
    return convert(latex, display=display)


def on_config(config: MkDocsConfig) -> None:
    """What the reader finds where."""
    families: dict[str, list[str]] = {}
    for entry in CELLS.values():
        page = f"cells/{_stem(entry.cell)}.md"
        if page not in (pages := families.setdefault(entry.family, [])):
            pages.append(page)
    shown = [name for name in EXPERIMENTS if (ROOT / "results" / name / "laptop.md").exists()]
    config.nav = [
        {"mnemon": "index.md"},
        {"Cells": [{family: pages} for family, pages in families.items()]},
        {"Tasks": [f"tasks/{_stem(task)}.md" for task in TASKS.values()]},
        {"Data": "data.md"},
        {"Library": [f"api/{package.removeprefix('mnemon.')}.md" for package in PACKAGES]},
        {"Tables and figures": ["experiments.md", *({name: f"results/{name}/laptop.md"} for name in shown)]},
        {"Findings": "findings.md"},
        {"Design": ["design.md", "engine.md", {"Speed": "results/bench/suite.md"}]},
        {"Contributing": ["CONTRIBUTING.md", "CHANGELOG.md"]},
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is in other folders, and a page for each module of cells and tasks and for each package."""
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        files.append(File.generated(config, "index.md" if name == "README.md" else name, content=text))
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in (".md", ".svg"):
            where = path.relative_to(ROOT)
            files.append(File(str(where), str(ROOT), config.site_dir, config.use_directory_urls))
    for place, text in _pages():
        files.append(File.generated(config, place, content=text))
    return files


def _pages() -> Iterator[tuple[str, str]]:
    cells: dict[str, list[str]] = {}
    for entry in CELLS.values():
        options = ", ".join(f"{name}={value!r}" for name, value in entry.options.items())
        row = f"| `{entry.name}` | {entry.family} | {entry.paper} | `{options}` |"
        cells.setdefault(entry.cell.__module__, []).append(row)
    for module, rows in cells.items():
        table = ["| name | family | paper | stands for |", "| --- | --- | --- | --- |", *rows]
        yield _module_page("cells", module, table)
    tasks: dict[str, list[str]] = {}
    for name, task in TASKS.items():
        needs = f"; needs the data `{task.needs}`" if task.needs else ""
        tasks.setdefault(task.__module__, []).append(f"`{name}`: {task.measures}{needs}.")
    for module, lines in tasks.items():
        yield _module_page("tasks", module, lines)
    rows = ["| name | what | bytes | licence | how to get it |", "| --- | --- | --- | --- | --- |"]
    for data in DATASETS.values():
        size = sum(file.forms[0].size for file in data.files)
        how = f"`{data.how}`" if data.how.startswith("mnemon ") else data.how
        rows.append(f"| `{data.name}` | {data.what} | {size:,} | {data.licence} | {how} |")
    about = "Files are checked whenever they are read. `MNEMON_DATA` or `--data` names a folder that has them."
    yield "data.md", "\n".join(["# Data", "", about, "", *rows, ""])
    for package, title in PACKAGES.items():
        # Also under the path that they are imported from.
        names = [f"[](){{#{public}}}\n\n::: {path}" for public, path in _documented(package)]
        yield f"api/{package.removeprefix('mnemon.')}.md", f"# {title}\n\n" + "\n\n".join(names) + "\n"
    rows = ["| id | source | shows | results |", "| --- | --- | --- | --- |"]
    for name, experiment in EXPERIMENTS.items():
        found = sorted((ROOT / "results" / name).glob("*.md"))
        links = ", ".join(f"[{path.stem}](results/{name}/{path.name})" for path in found)
        rows.append(f"| `{name}` | {experiment.source} | {experiment.shows} | {links or 'none yet'} |")
    about = "Each is one command: `mnemon reproduce ID --preset smoke|laptop|paper`, then `mnemon report ID`."
    yield "experiments.md", "\n".join(["# Tables and figures", "", about, "", *rows, ""])


def _stem(cls: type) -> str:
    return cls.__module__.rpartition(".")[2]


def _module_page(folder: str, module: str, about: list[str]) -> tuple[str, str]:
    """A page for a file of cells or tasks."""
    stem = module.rpartition(".")[2]
    exported = vars(import_module(f"mnemon.{folder}")).items()
    names = [name for name, value in exported if getattr(value, "__module__", None) == module]
    anchors = "".join(f"[](){{#mnemon.{folder}.{name}}}" for name in names)
    reference = f"::: {module}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false"
    return f"{folder}/{stem}.md", "\n".join([f"# {stem}", "", anchors, "", *about, "", reference, ""])


def _documented(package: str) -> Iterator[tuple[str, str]]:
    """Public names that have no page of their own: the path to import them from, and that of their definition."""
    own_pages = {entry.cell.__module__ for entry in CELLS.values()} | {task.__module__ for task in TASKS.values()}
    home = import_module(package)
    for name, value in vars(home).items():
        module = getattr(value, "__module__", None)
        if name.startswith("_") or module is None or module in own_pages:
            continue
        if not hasattr(home, "__path__") and module != package:  # what a module imports is not its own
            continue
        if package == "mnemon" or name not in vars(import_module("mnemon")):
            yield f"{package}.{name}", f"{module}.{name}"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links lead to pages of the site."""
    del config, files
    if page.file.src_uri.startswith("results/"):
        return markdown
    for before, after in _MOVED:
        markdown = re.sub(before, after, markdown)
    return markdown


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Equations become MathML."""
    del page, config, files

    def equation(found: re.Match[str]) -> str:
        latex = found[2].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
        return as_mathml(latex, "block" if found[1] == "div" else "inline")

    return _MATH.sub(equation, html)
