"""Files that are there as a whole or not at all."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a text file under its name only once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)
