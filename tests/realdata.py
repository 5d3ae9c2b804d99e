"""Where the real data are, for the tests that need them: `MNEMON_DATA`, else `../shared/data` beside the repository."""

import os
from pathlib import Path

_BESIDE = Path(__file__).parents[1].parent / "shared" / "data"
FOLDER = Path(os.environ.get("MNEMON_DATA") or _BESIDE)
PRESENT = FOLDER.is_dir()
