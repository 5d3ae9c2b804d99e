"""Where a number comes from."""

import functools
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import optax

from ._version import __version__


def provenance() -> dict[str, Any]:
    """Where a number comes from: command, commit, machine, versions, time."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return {
        "command": " ".join(words).replace("__main__.py", "mnemon"),
        "commit": commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": {
            "python": platform.python_version(),
            "mnemon": __version__,
            "jax": jax.__version__,
            "equinox": eqx.__version__,
            "optax": optax.__version__,
        },
        "date": time.strftime("%Y-%m-%d"),
    }


@functools.cache
def commit() -> str:
    """The commit when this process first asked: later changes are not those of the code that it runs.

    Changes are those of the package; results that are being written are none.
    """
    return _git("rev-parse", "HEAD") + (" with changes" if _git("status", "--porcelain", "-uno", ".") else "")


def in_words(source: Mapping[str, Any]) -> str:
    """A sentence that says where a number comes from."""
    versions = ", ".join(f"{name} {version}" for name, version in source["versions"].items())
    return (
        f"Made by `{source['command']}` at commit `{source['commit']}` on {source['machine']}, "
        f"{versions}, {source['date']}."
    )


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
