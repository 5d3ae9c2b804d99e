"""Strict mode for all tests, and small files in the formats of the real data."""

import warnings

import jax
import pytest

from mnemon.data import _store
from tests import realdata, synthetic

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 2)  # so that batches can be shared
warnings.filterwarnings("error")

# Tests of real data need real data; a run without them says so in its last lines.
collect_ignore_glob = [] if realdata.PRESENT else ["*test_real_*.py"]


def pytest_terminal_summary(terminalreporter) -> None:
    if not realdata.PRESENT:
        terminalreporter.write_line(f"NO real data in {realdata.FOLDER}: test_real_*.py were left out; set MNEMON_DATA")


@pytest.fixture(scope="session")
def _synthetic_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return folder, synthetic.write(folder)


@pytest.fixture
def synthetic_data(_synthetic_files, monkeypatch):
    """A folder of small files in the formats of the real data, known to the catalogue."""
    folder, catalogue = _synthetic_files
    for name, dataset in catalogue.items():
        monkeypatch.setitem(_store.DATASETS, name, dataset)
    monkeypatch.setenv("MNEMON_DATA", str(folder))
    return folder
