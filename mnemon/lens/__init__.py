"""Instruments on any cell."""

from .trace import Trace as Trace
from .trace import named_arrays as named_arrays
from .trace import trace as trace
