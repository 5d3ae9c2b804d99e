"""The lifelong benchmark (thesis 5.3.4): one entry on one distribution, in a folder of its own.

```
run.json         what was entered where, with which options
accuracies.json  accuracy on every level, before training and after each level
level-NN-size-S/ records and checkpoints of a level with a network of S units
lifelong.json    the result with its provenance, once the run has ended
model.safetensors  the trained arrays by name
```
"""

import dataclasses
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._errors import require, unknown
from .._files import write_atomically
from .._provenance import provenance
from ..cells import cell_entry, cell_options, count_parameters
from ..model import Model, make_model
from ..training.objectives import AbstractObjective, default_objective
from ..training.optimizers import make_optimizer
from ..training.runs import WEIGHTS_FILE, claim_folder, export_weights
from . import metrics
from .distributions import LEVELS, distribution
from .entries import METHODS, MethodOptions, entry, make_method
from .levels import Curriculum, Watch, learn

RESULT_FILE = "lifelong.json"


@dataclasses.dataclass(frozen=True)
class LifelongConfig(MethodOptions):
    """What defines a run of the benchmark; the defaults are those of the thesis.

    **Options:**

    - `method`: what is done against forgetting: none, gem, a-gem or ewc.
    - `sizes`: hidden sizes to grow to, one at each failure.
    - `levels`: how many levels, from the first.
    - `updates`: updates a level; twice as many after growing.
    - `threshold`: accuracy that passes a level; that of the distribution without it.
    - `batch`: episodes an update.
    - `window`: updates over which the accuracy that passes a level is averaged.
    - `episodes`: fresh episodes of each level on which the network is examined after each level.
    - `seed`: seed of the initial parameters and of the data.
    - `lr`: learning rate of Adam.
    - `clip`: largest norm of the gradient; None for no clipping.
    - `slots`: GEM, A-GEM: examples of each task in the memory.
    - `capacity`: GEM, A-GEM: examples of all tasks together, in equal shares, instead of a number for each.
    - `margin`: GEM: how much the earlier tasks are favoured.
    - `strength`: EWC: how strongly parameters are held.

    **Notes.** The thesis clips no gradient that it tells of; here the norm is clipped at 1, which also keeps the sum of
    gradients that GEM's margin makes in bounds.

    >>> LifelongConfig.enter("copy", "small-lstm-gem-net2net", levels=5).sizes
    (256,)
    >>> LifelongConfig.enter("copy", "gru", method="ewc").cell_options
    {}
    """

    distribution: str
    cell: str
    cell_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    method: str = "none"
    sizes: Sequence[int] = ()
    levels: int = LEVELS
    updates: int = 10_000
    threshold: float | None = None
    batch: int = 10
    window: int = 100
    episodes: int = 100
    seed: int = 0
    lr: float = 1e-3
    clip: float | None = 1.0

    def __post_init__(self):
        found = distribution(self.distribution)
        require(
            1 <= self.levels <= LEVELS, "levels", self.levels, f"1 to {LEVELS} levels of {found.name}", "--levels 5"
        )
        require(self.batch >= 1, "batch", self.batch, "at least one episode an update", "--batch 10")
        require(self.episodes >= 1, "episodes", self.episodes, "at least one episode", "--episodes 100")
        make_optimizer("adam", self.lr, self.clip)
        # The memory holds all levels but the one being learned, which takes its share as well.
        self.memory().share(self.levels)
        if self.method not in METHODS:
            raise unknown("method", self.method, METHODS)
        object.__setattr__(self, "sizes", tuple(self.sizes))  # JSON has lists
        # An option given at its default is the same run as one not given.
        known = cell_options(cell_entry(self.cell))
        changed = {k: v for k, v in self.cell_options.items() if k not in known or known[k].default != v}
        object.__setattr__(self, "cell_options", changed)

    @classmethod
    def enter(cls, where: str, name: str, **changes: Any) -> "LifelongConfig":
        """A named entry, or any cell, on a distribution; `changes` replace fields, options of the cell among them."""
        found = entry(name)
        options = {**found.options, **changes.pop("cell_options", {})}
        return cls(where, found.cell, options, **{"method": found.method, "sizes": found.sizes, **changes})

    @property
    def pass_mark(self) -> float:
        """The accuracy that passes a level."""
        return distribution(self.distribution).threshold if self.threshold is None else self.threshold

    def make_model(self) -> Model:
        """The untrained network. Its horizon, for cells that want to know it, is that of the last level."""
        task = distribution(self.distribution).task(self.levels)
        key = jax.random.fold_in(jax.random.key(self.seed), 0x1417)
        return make_model(task, self.cell, key=key, **self.cell_options)

    def make_objective(self) -> AbstractObjective:
        """What is minimised at the first level."""
        return make_method(self.method, default_objective(distribution(self.distribution).task(1)), self)


def run_lifelong(
    config: LifelongConfig,
    folder: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    save_seconds: float = 30.0,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Run the benchmark in a folder, or go on with what the folder holds; the result is plain JSON.

    A run that was interrupted, also in the middle of a level, ends with exactly the metrics of an undisturbed one.
    """
    found, model = distribution(config.distribution), config.make_model()
    claim_folder(folder, config, count_parameters(model), resume=resume, overwrite=overwrite)
    started = time.perf_counter()
    curriculum = learn(
        model,
        [found.task(level) for level in range(1, config.levels + 1)],
        threshold=config.pass_mark,
        accuracy=found.accuracy,
        objective=config.make_objective(),
        updates=config.updates,
        batch=config.batch,
        window=config.window,
        sizes=config.sizes,
        optimizer=make_optimizer("adam", config.lr, config.clip),
        episodes=config.episodes,
        seed=config.seed,
        folder=folder,
        save_seconds=save_seconds,
        watch=watch,
    )
    export_weights(curriculum.model, folder / WEIGHTS_FILE)
    result = {
        "config": dataclasses.asdict(config),
        **summary(curriculum),
        "threshold": config.pass_mark,
        "unit": found.unit,
        "lengths": [found.length(level) for level in range(1, config.levels + 1)],
        "parameters": {"first": count_parameters(model), "last": count_parameters(curriculum.model)},
        "seconds": round(time.perf_counter() - started, 1),  # of this call
        "provenance": provenance(),
    }
    write_atomically(folder / RESULT_FILE, json.dumps(result, indent=1) + "\n")
    return result


def summary(curriculum: Curriculum) -> dict[str, Any]:
    """All metrics of a run. The lists go by level; what is the mean of nothing is null."""
    matrix = curriculum.matrix
    previous, future = metrics.previous_accuracy(matrix), metrics.future_accuracy(matrix)
    return {
        "cleared": curriculum.cleared,
        "current": [level.current for level in curriculum.levels],
        "expanded": {str(level): sizes for level, sizes in curriculum.expanded.items()},
        "attempts": [[dataclasses.asdict(attempt) for attempt in level.attempts] for level in curriculum.levels],
        "previous_by_level": [_or_none(value) for value in previous],
        "previous": _or_none(previous[-1]),
        "future_by_level": [_or_none(value) for value in future],
        "future": _or_none(future[-1]),
        "ACC": metrics.average_accuracy(matrix),
        "BWT": metrics.backward_transfer(matrix),
        "FWT": metrics.forward_transfer(matrix, np.array(curriculum.untrained)),
        "matrix": matrix.tolist(),
        "untrained": curriculum.untrained,
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
