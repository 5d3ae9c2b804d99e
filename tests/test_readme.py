"""What the README shows runs as it stands there."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_runs_as_pasted():
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(compile(example, str(README), "exec"), {})


def test_the_tables_name_every_cell_and_task():
    from mnemon.cells import CELLS
    from mnemon.tasks import TASKS

    text = README.read_text()
    for name in [*CELLS, *TASKS]:
        assert f"`{name}`" in text, f"{name} is not in the README"


def test_the_tree_is_true():
    root = README.parent
    (tree,) = re.findall(r"```\nmnemon/\n(.*?)```", README.read_text(), re.DOTALL)
    for line in tree.splitlines():
        name = line.split()[0]
        path = root / "mnemon" / name if line.startswith("  ") else root / name
        assert path.exists(), name
