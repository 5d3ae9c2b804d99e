"""What tests and examples in docstrings share: programs are compiled fast, and not kept for ever."""

import gc
import os
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiling is most of the time of these tests: XLA's older emitters compile about twice as fast, and so does LLVM
# without its optimisations. Programs run slower, which matters to few tests.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1",
)
# Programs that were compiled before are read from a folder: that of `make test` for all its parts, or one of this run.
# Processes write to it as they like; half a program is not read but compiled again (a warning that pyproject ignores).
_OWN_CACHE = None if "MNEMON_TEST_CACHE" in os.environ else tempfile.TemporaryDirectory(prefix="mnemon-tests-")
_CACHE = os.environ["MNEMON_TEST_CACHE"] if _OWN_CACHE is None else _OWN_CACHE.name
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ["MNEMON_TEST_CACHE"] = _CACHE
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# Loops in C are compiled where a test asks for them, as fast as can be.
os.environ["MNEMON_NATIVE"], os.environ["MNEMON_NATIVE_FLAGS"], os.environ["MNEMON_CACHE"] = "0", "-O1", _CACHE
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax  # noqa: E402
import pytest  # noqa: E402

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
