"""Any Optax optimiser by name, with clipping of the gradient norm."""

import functools
import inspect

import optax

from .._errors import require, unknown


@functools.cache
def optimizer_names() -> tuple[str, ...]:
    """The Optax optimisers that need no more than a learning rate."""
    names = []
    for name in dir(optax):
        function = getattr(optax, name)
        if name.startswith("_") or not (inspect.isfunction(function) or isinstance(function, functools.partial)):
            continue
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].name != "learning_rate":
            continue
        if all(p.default is not p.empty or p.kind == p.VAR_KEYWORD for p in parameters[1:]):
            names.append(name)
    return tuple(names)


SCHEDULES = {
    "constant": lambda lr, steps: lr,
    "linear": lambda lr, steps: optax.linear_schedule(lr, 0.0, steps),
    "cosine": lambda lr, steps: optax.cosine_decay_schedule(lr, steps),
    "warmup-cosine": lambda lr, steps: optax.warmup_cosine_decay_schedule(0.0, lr, max(steps // 50, 1), steps + 1),
}


def make_optimizer(
    name: str = "adam", lr: float = 1e-3, clip: float | None = 1.0, *, schedule: str = "constant", steps: int = 1
) -> optax.GradientTransformation:
    """An optimiser by its Optax name.

    **Arguments:**

    - `name`: `adam`, `amsgrad`, `nadam`, `rmsprop`, `sgd`, ...
    - `lr`: learning rate, at first.
    - `clip`: largest norm of the gradient; `None` for no clipping.
    - `schedule`: whether the learning rate is constant or falls to 0 over the `steps` (linear, cosine; with
      warmup-cosine it first rises from 0, for a fiftieth of them).

    >>> make_optimizer("adom")
    Traceback (most recent call last):
    mnemon._errors.UnknownName: unknown optimizer 'adom': did you mean 'adam' or 'radam' or 'nadam'?
    """
    require(lr > 0, "lr", lr, "a positive learning rate", "lr=0.001")
    require(clip is None or clip > 0, "clip", clip, "a positive norm, or none", "clip=1.0")
    known = optimizer_names()
    if name not in known:
        raise unknown("optimizer", name, known)
    if schedule not in SCHEDULES:
        raise unknown("schedule", schedule, SCHEDULES)
    optimizer = getattr(optax, name)(SCHEDULES[schedule](lr, max(steps, 1)))
    return optimizer if clip is None else optax.chain(optax.clip_by_global_norm(clip), optimizer)
