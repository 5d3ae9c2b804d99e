"""Sequential and permuted MNIST (Le et al. 2015; thesis 4.3.4)."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt

from ..data import find
from ..data._read import BadFile, read_idx
from ._contract import Episode
from ._examples import AbstractExamples, Split
from ._symbols import AbstractClasses, best_guess

CLASSES = 10
SIDE = 28
_VALID = 10_000
_SHADES = " .:-=+*#%@"


class PermutedMNIST(AbstractExamples, AbstractClasses):
    """Name a handwritten digit whose pixels come one at a time, in a fixed random order.

    ```
    digit 7, its 196 pixels read in the order 0, 1, 2, 3, 4, ...
       :-.
       **%%%%%+
          ...++
            .@.
            *=
           .%.
           #=
          =#
         .@.
         *@.
         -:
    ```

    A step reads one pixel in [0, 1]; after the last pixel comes one step with input 0, at which the digit is wanted.

    **Options:**

    - `permuted`: whether the pixels come in a fixed random order; row by row without it.
    - `pooled`: whether means of 2 x 2 pixels are read: 196 steps instead of 784, for small budgets.
    - `split`: the part of the data: train, valid or test.
    - `order_seed`: seed of the order, and of the split into training and validation images.
    - `data`: folder that holds the files; `MNEMON_DATA`, else the download cache, without it.

    **Notes.** Order and split are those of the thesis's code: with NumPy's `RandomState(50)`, first a permutation of
    the 60,000 training images, of which the last 10,000 validate, then a permutation of the pixels. The pooled
    variant is not in the literature; its order is the permutation of 196 that follows. An accuracy above 91 %, a
    tenth of the error of guessing, counts as solved.
    """

    measures: ClassVar[str] = "classifying from 784 scattered pieces"
    needs: ClassVar[str | None] = "mnist"
    pixels: UInt[Array, "examples steps"]  # in the order in which they are read, times `scale`
    labels: UInt[Array, " examples"]
    order: Int[Array, " steps"]
    permuted: bool = eqx.field(static=True)
    scale: int = eqx.field(static=True)
    split: Split = eqx.field(static=True)

    def __init__(
        self,
        permuted: bool = True,
        pooled: bool = False,
        split: Split = "train",
        order_seed: int = 50,
        data: str | None = None,
    ):
        part = "test" if split == "test" else "train"
        images, labels = _read(find("mnist", f"{part}-images", data), find("mnist", f"{part}-labels", data))
        shuffle, order = _orders(order_seed, SIDE * SIDE // (4 if pooled else 1))
        if split != "test":
            chosen = shuffle[shuffle < len(images)]
            valid = min(_VALID, len(images) // 6)
            chosen = chosen[-valid:] if split == "valid" else chosen[:-valid]
            images, labels = images[chosen], labels[chosen]
        order = order if permuted else np.arange(len(order))
        self.order = jnp.asarray(order)
        self.pixels = jnp.asarray((_pooled(images) if pooled else _flat(images))[:, order])
        self.labels = jnp.asarray(labels)
        self.permuted, self.split, self.scale = permuted, split, 255 * (4 if pooled else 1)

    @property
    def input_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return CLASSES

    @property
    def symbolic(self) -> bool:
        return False

    @property
    def horizon(self) -> int:
        return self.pixels.shape[1] + 1

    @property
    def scored_steps(self) -> int:
        return 1

    @property
    def examples(self) -> int:
        return self.pixels.shape[0]

    @property
    def chance(self) -> dict[str, float]:
        return best_guess(np.bincount(np.asarray(self.labels), minlength=CLASSES))

    def example(self, index: Int[Array, ""]) -> Episode:
        pixels = self.pixels[index].astype(jnp.float32) / self.scale
        inputs = jnp.append(pixels, 0.0)[:, None]
        last = jnp.arange(self.horizon) == self.horizon - 1
        targets = jnp.where(last, self.labels[index].astype(jnp.int32), 0)
        return Episode(inputs, targets, last, jnp.asarray(self.horizon))

    def solved(self, metrics: Mapping[str, float]) -> bool:
        return 1.0 - metrics["accuracy"] < 0.1 * (1.0 - self.chance["accuracy"])

    def show(self, episode: Episode) -> str:
        pixels = np.zeros(self.horizon - 1)
        pixels[np.asarray(self.order)] = np.asarray(episode.inputs)[:-1, 0]
        image = pixels.reshape(int(np.sqrt(len(pixels))), -1)
        rows = ["".join(_SHADES[round(9 * float(shade))] for shade in row).rstrip() for row in image]
        first = ", ".join(str(int(place)) for place in self.order[:5])
        title = f"digit {int(episode.targets[-1])}, its {len(pixels)} pixels read in the order {first}, ..."
        return "\n".join([title, *(row for row in rows if row)])


@lru_cache(maxsize=2)
def _read(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    pictures, names = read_idx(images), read_idx(labels)
    if pictures.shape != (len(names), SIDE, SIDE):
        raise BadFile(images, None, f"holds images of shape {pictures.shape}, wanted {(len(names), SIDE, SIDE)}")
    return pictures, names


def _orders(seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The shuffle of the training images and the order of the pixels, drawn one after the other."""
    random = np.random.RandomState(seed)
    return random.permutation(60_000), random.permutation(steps)


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)


def _pooled(images: np.ndarray) -> np.ndarray:
    """Sums of 2 x 2 pixels."""
    half = images.shape[1] // 2
    return images.reshape(-1, half, 2, half, 2).sum(axis=(2, 4), dtype=np.uint16).reshape(len(images), -1)
