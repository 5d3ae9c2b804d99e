"""Cells and tasks of a user's own file, by `FILE.py:CLASS`."""

import json
from pathlib import Path

import jax
import pytest

from mnemon import make_cell, make_task
from mnemon._errors import BadValue
from mnemon.cells import GRU
from mnemon.cli import main

OWN = '''
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mnemon import AbstractCell, Copying


class LeakyState(NamedTuple):
    hidden: Float[Array, " hidden"]


class Leaky(AbstractCell):
    """A sum that forgets.

    - `leak`: how much of it stays.
    """

    weights: Float[Array, "input hidden"]
    leak: float
    input_size: int
    output_size: int

    def __init__(self, input_size: int, hidden_size: int, *, leak: float = 0.5, key: PRNGKeyArray):
        self.weights = jax.random.normal(key, (input_size, hidden_size))
        self.leak, self.input_size, self.output_size = leak, input_size, hidden_size

    def init_state(self):
        return LeakyState(jnp.zeros(self.output_size))

    def drive(self, x):
        return x @ self.weights

    def step(self, state, drive, *, key=None):
        hidden = self.leak * state.hidden + jnp.tanh(drive)
        return LeakyState(hidden), hidden


class Wide(Leaky):
    def __init__(self, input_size: int, width: int, *, key: PRNGKeyArray):
        super().__init__(input_size, width, key=key)


class Unfinished(AbstractCell):
    def init_state(self):
        return LeakyState(jnp.zeros(3))


class Backwards(Copying):
    measures: ClassVar[str] = "keeping symbols and turning them round"
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch) -> str:
    """The name of the file, in the folder where the command is given."""
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return "own.py"


def _refusal(capsys, *words: str) -> str:
    with pytest.raises(SystemExit):
        main(list(words))
    return capsys.readouterr().err


def test_a_cell_of_ones_own_is_trained_scored_and_shown(capsys, own):
    cell, task = f"{own}:Leaky", f"{own}:Backwards"
    sizes = ["--delay", "3", "--length", "2", "--batch", "4", "--log-every", "5"]
    main(["train", task, cell, *sizes, "--steps", "10", "--leak", "0.25", "--json"])
    trained = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert trained["parameters"] == 10 * 64 + 65 * 9
    assert Path(trained["out"]).name.startswith("Backwards-Leaky-seed0-")
    main(["evaluate", trained["out"], "--episodes", "8", "--json"])
    assert json.loads(capsys.readouterr().out)["cell_options"] == {"leak": 0.25}
    main(["report", trained["out"], "--json"])
    files = [Path(name).name for name in json.loads(capsys.readouterr().out)["files"]]
    assert "chart-1-leaky-change.svg" in files
    main(["lens", "jacobian", cell, "--steps", "4", "--json"])
    flow = json.loads(capsys.readouterr().out)
    assert flow["top"]["hidden"] == pytest.approx([0.5**n for n in (4, 3, 2, 1, 0)])


def test_classes_of_a_module_and_their_budget(capsys, tmp_path):
    assert isinstance(make_cell("mnemon.cells:GRU", 3, hidden_size=2, key=jax.random.key(0)), GRU)
    assert make_task("mnemon.tasks:Copying", delay=7).horizon == make_task("copying", delay=7).horizon
    words = ["train", "copying", "mnemon.cells:GRU", "--budget", "5000", "--steps", "0", "--out", str(tmp_path / "run")]
    main([*words, "--json"])
    assert abs(json.loads(capsys.readouterr().out.splitlines()[-1])["parameters"] - 5000) < 200


def test_what_is_not_there_is_named(capsys, own):
    assert "there is no such file" in _refusal(capsys, "train", "copying", "other.py:Leaky")
    assert "no AbstractCell 'Leeky' in own.py; it has Leaky, Wide" in _refusal(
        capsys, "train", "copying", f"{own}:Leeky"
    )
    assert "no AbstractCell 'Backwards'" in _refusal(capsys, "train", "copying", f"{own}:Backwards")
    assert "No module named 'nowhere'" in _refusal(capsys, "train", "nowhere:Task", "gru")
    assert "Unfinished has no drive, step; it has Leaky, Wide" in _refusal(
        capsys, "train", "copying", f"{own}:Unfinished"
    )
    Path("broken.py").write_text("x = 1\ny = x / 0\n")
    assert "broken.py cannot be imported: line 2: ZeroDivisionError" in _refusal(
        capsys, "train", "copying", "broken.py:Leaky"
    )
    with pytest.raises(BadValue, match=r"mnemon\.cells:Stack.*wanted a class with __init__\(self, input_size"):
        make_cell("mnemon.cells:Stack", 3, key=jax.random.key(0))
    with pytest.raises(BadValue, match=r"wants a value for width, e\.g\. width=32"):
        make_cell(f"{own}:Wide", 3, key=jax.random.key(0))
