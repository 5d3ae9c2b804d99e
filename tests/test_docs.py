"""The site: it is built without a warning, and has every cell and task, drawn equations and fenced examples."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mnemon.cells import CELLS
from mnemon.data import DATASETS
from mnemon.tasks import TASKS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder


def _page(site: Path, folder: str, cls: type) -> str:
    return (site / folder / cls.__module__.rpartition(".")[2] / "index.html").read_text()


def test_every_cell_and_task_has_a_page(site):
    for name, entry in CELLS.items():
        assert f"<code>{name}</code>" in _page(site, "cells", entry.cell)
    for name, task in TASKS.items():
        assert f"<code>{name}</code>" in _page(site, "tasks", task)


def test_every_data_set_is_listed_with_how_to_get_it(site):
    page = (site / "data" / "index.html").read_text()
    for name, data in DATASETS.items():
        assert f"<code>{name}</code>" in page
        assert data.licence in page
    assert "<code>mnemon data get mnist-strokes</code>" in page


def test_equations_are_drawn_and_examples_are_code(site):
    for entry in CELLS.values():
        page = _page(site, "cells", entry.cell)
        assert "<math" in page, entry.name
        assert "&gt;&gt;&gt; </span>" in page, entry.name
    for path in site.rglob("index.html"):
        page = path.read_text()
        assert not re.search(r'class="arithmatex"|<blockquote>\s*<blockquote>', page), path
        assert r"\begin{" not in re.sub(r"<(details|pre).*?</\1>", "", page, flags=re.DOTALL), path


def test_fields_have_the_symbols_of_their_comments(site):
    page = _page(site, "cells", CELLS["nru"].cell)
    assert re.search(r'id="mnemon.cells.nru.NRUState.memory".*?<p>m_t</p>', page, re.DOTALL)


def test_tables_and_figures_are_there(site):
    page = (site / "experiments" / "index.html").read_text()
    assert 'href="../results/th-fig-4.1/laptop/"' in page
    assert (site / "results" / "th-fig-4.1" / "laptop.svg").exists()
