"""The page in a real browser, and its pictures and tables as files."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from mnemon.lens import Trace
from mnemon.report.charts import change_of_state, heat_map, jacobian_decay, read_arcs
from mnemon.report.page import Page, write_report
from mnemon.training.runs import RunConfig, open_run, train_run

# Chromium asks these by itself, for updates and spelling dictionaries, whatever page is open.
_BROWSERS_OWN = (".google.com", ".googleapis.com", ".gvt1.com")


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("report")
    config = RunConfig("copying", "lstm", {"delay": 3, "length": 2}, {"hidden_size": 4}, steps=4, log_every=2)
    train_run(config, folder / "run", report=lambda message: None)
    runs = [open_run(folder / "run")]
    return write_report(runs, folder / "page.html", files=folder / "page-files", report=lambda message: None)


def _charts(page: str) -> dict:
    (text,) = re.findall(r"^const charts = (.*);$", page, re.MULTILINE)
    return json.loads(text.replace("<\\/", "</"))


def test_the_page_requests_nothing(report):
    page = report[0].read_text()
    markup = page.partition("<script")[0]
    assert not re.search(r"""(?:src|href|action)\s*=|@import|url\(|https?:""", markup)
    assert re.findall(r"<script[^>]*>", page)[0] == '<script type="module">'
    assert "default-src 'none'" in markup, "the browser itself refuses every request"
    charts = json.dumps(_charts(page))
    assert "http" not in charts
    assert "$schema" not in charts


def test_the_page_has_the_pictures_of_the_lens(report):
    names = [re.sub(r"^chart-\d+-", "", name) for name in _charts(report[0].read_text())]
    assert names == ["curves-copying-delay-3-length-2", "lstm-change", "lstm-hidden", "lstm-cell", "lstm-jacobian"]


def test_a_browser_draws_every_picture(report, tmp_path):
    """Where no browser is found the page is checked as text by the tests above, and the specs by drawing them here."""
    page, browser = report[0], shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    count = len(_charts(page.read_text()))
    if browser is None:
        print("no chromium or chrome on the PATH: the page was not opened, only its pictures were drawn by vl-convert")
        drawn = [path for path in report if path.suffix == ".svg"]
        assert len(drawn) == count
        assert all("mark-" in path.read_text() for path in drawn)
        return
    log = tmp_path / "network.json"
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += ["--disable-component-update", "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}"]
    command += [f"--log-net-log={log}", "--virtual-time-budget=8000", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    body = done.stdout.partition("<body>")[2].partition("<script")[0]
    drawn = re.split(r'<div class="chart[^"]*" id="', body)[1:]
    assert len(drawn) == count
    for chart in drawn:
        assert "<svg" in chart, chart[:200]
        assert re.search(r'class="mark-(?:rect|line|symbol)[^>]*>\s*<path[^>]* d="[^"]+"', chart), chart[:200]
    asked = {urlsplit(url).hostname for url in re.findall(r'"url":"(https?://[^"]+)"', log.read_text())}
    assert not {host for host in asked if host and not host.endswith(_BROWSERS_OWN)}


def test_pictures_and_tables_are_files_too(report):
    files = report[1:]
    endings = sorted({path.suffix for path in files})
    assert endings == [".csv", ".md", ".pdf", ".png", ".svg"]
    assert all(path.stat().st_size > 0 for path in files)
    (table,) = [path for path in files if path.suffix == ".csv"]
    (row,) = csv.DictReader(table.read_text().splitlines())
    assert (row["cell"], row["updates"]) == ("lstm", "4")
    assert table.with_suffix(".md").read_text().startswith("| cell | task |")
    assert next(path for path in files if path.suffix == ".pdf").read_bytes().startswith(b"%PDF")


def test_arcs_show_the_shortest_path():
    chart = read_arcs(np.array([-1, -1, -1, 0, -1, -1]), list("abcdef"))
    spec = chart.to_dict()
    (data,) = spec["datasets"].values()
    strong = {row["arc"] for row in data if row["shortest path"]}
    assert strong == {"0-3", "3-4", "4-5"}
    assert "3 connections" in spec["title"]


def test_arcs_without_a_read_and_states_of_one_number_can_be_drawn():
    read_arcs(np.array([-1, -1]), ["a", "b"]).to_dict()
    trace = Trace(np.zeros(3, int), np.zeros(3, int), np.ones(3, bool), np.zeros((3, 2)), {"count": np.arange(3)})
    change_of_state(trace, ["a", "b", "c"]).to_dict()
    heat_map(trace.state["count"], ["a", "b", "c"], "count").to_dict()


def test_a_flow_that_vanishes_at_once_can_be_drawn():
    from mnemon.lens import Flow

    values = np.array([[0.0, 0.0], [1.0, 1.0]])
    jacobian_decay(Flow(1, np.arange(2), {"hidden": values}, 0.5)).to_dict()


def test_text_is_escaped(tmp_path):
    page = Page("<title> & more")
    page.table([{"<b>": "</script>"}], "t")
    text = page.write(tmp_path / "page.html").read_text()
    assert "&lt;title&gt; &amp; more" in text
    assert "</script>" not in text.partition("<script")[0]
