"""What tests and examples in docstrings share: programs are compiled fast, and not kept for ever."""

import gc
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiling is most of the time of these tests, and XLA's older emitters compile about twice as fast.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

import jax
import pytest

# Tracing makes many objects and little rubbish.
gc.set_threshold(200_000, 20, 100)

# A process may hold about 65,000 memory mappings; each compiled program takes some, and XLA crashes at the limit.
_MAPS, _MANY_MAPS = Path("/proc/self/maps"), 20_000


@pytest.fixture(autouse=True)
def _free_programs():
    """Forget compiled programs before there are too many."""
    yield
    if _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MANY_MAPS:
        jax.clear_caches()
        gc.collect()
