"""Errors that name the argument, its value, what is wanted, and an example that works."""

import difflib
from collections.abc import Iterable


class MnemonError(Exception):
    """Base of the errors that a user can mend; the command line prints them without a traceback."""


class BadValue(MnemonError, ValueError):
    """A value that cannot work."""


class UnknownName(MnemonError, KeyError):
    """A name that is not registered."""

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0])


def require(condition: bool, argument: str, value: object, wanted: str, example: str) -> None:
    """Raise [`BadValue`][] unless `condition` holds.

    >>> require(-1 > 0, "delay", -1, "a positive number of steps", "delay=100")
    Traceback (most recent call last):
    mnemon._errors.BadValue: delay=-1 cannot work: wanted a positive number of steps, e.g. delay=100
    """
    if not condition:
        raise BadValue(f"{argument}={value!r} cannot work: wanted {wanted}, e.g. {example}")


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """An error for an unregistered `name` that names the nearest registered ones."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known) or 'none'}"
    return UnknownName(f"unknown {kind} {name!r}: {hint}")
