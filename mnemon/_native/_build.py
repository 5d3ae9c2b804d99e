"""C source to a function that XLA calls: compiled once, kept in a folder of the user's, loaded once a process."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax

_FOLDER = Path(__file__).parent
# The first two can be others, by the environment variable `MNEMON_NATIVE_FLAGS`.
_OPTIMISATION = "-O3 -march=native"
_FLAGS = ("-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-std=gnu11", "-fPIC", "-shared")


@functools.cache
def _compiler() -> str | None:
    """The C compiler of this machine: that of the environment variable `CC`, or the usual names."""
    names = [os.environ["CC"]] if "CC" in os.environ else ["cc", "gcc", "clang"]
    return next((found for found in map(shutil.which, names) if found), None)


@functools.cache
def available() -> bool:
    """Whether loops can be compiled here: on a CPU, by a C compiler that takes our flags and finds XLA's header."""
    if jax.default_backend() != "cpu" or _compiler() is None:
        return False
    try:
        _library('#include "kernels.h"\nstatic void run(void *const *in, void *const *out) {}\n')
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def wanted() -> bool:
    """Whether loops are to be compiled where the caller does not say: where they can, unless `MNEMON_NATIVE` is 0."""
    return os.environ.get("MNEMON_NATIVE", "1") != "0" and available()


def _flags() -> list[str]:
    return [*os.environ.get("MNEMON_NATIVE_FLAGS", _OPTIMISATION).split(), *_FLAGS]


@functools.cache
def register(source: str) -> str:
    """The name under which XLA knows the loop of this source."""
    name = f"mnemon_loop_{_digest(source)}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(_library(source).loop), platform="cpu")
    return name


def _digest(source: str) -> str:
    parts = (source, (_FOLDER / "kernels.h").read_text(), " ".join(_flags()), _processor(), jax.__version__)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@functools.cache
def _processor() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("flags")), "")


def _cache() -> Path:
    base = os.environ.get("MNEMON_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mnemon" / "loops"


def _library(source: str) -> ctypes.CDLL:
    folder, digest = _cache(), _digest(source)
    library = folder / f"{digest}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            written, made = Path(scratch) / "loop.c", Path(scratch) / "loop.so"
            written.write_text(source)
            includes = [f"-I{_FOLDER}", f"-I{jax.ffi.include_dir()}"]
            command = [_compiler() or "cc", *_flags(), *includes, "-o", str(made), str(written)]
            subprocess.run(command, check=True, capture_output=True)
            os.replace(made, library)
    return ctypes.CDLL(str(library))
