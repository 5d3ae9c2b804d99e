"""Strict mode for all tests, and small files in the formats of the real data."""

import gc
import os
import warnings
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiling is most of the time of these tests, and XLA's older emitters compile about twice as fast.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

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


# A process may hold about 65,000 memory mappings; each compiled program takes some, and XLA crashes at the limit.
_MAPS, _MANY_MAPS = Path("/proc/self/maps"), 20_000


@pytest.fixture(autouse=True)
def _free_programs():
    """Forget compiled programs before there are too many."""
    yield
    if _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MANY_MAPS:
        jax.clear_caches()
        gc.collect()


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
