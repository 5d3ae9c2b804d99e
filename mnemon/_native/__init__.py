"""Loops over time compiled to C.

XLA runs the body of a loop as a sequence of operations, each of which costs about a microsecond on a CPU however small
it is, and multiplies few rows with a matrix far below the rate of the machine. Here the traced body of a loop, forwards
or backwards, becomes C source in which pointwise operations share loops, values stay in cache, and matrices that are
the same in all steps are packed once; the C compiler of the machine makes a function of it that XLA calls. It is made
from the traced body, so cells know nothing of it. A body with an operation that is not known here is left to XLA.

- `_graph.py`: a jaxpr as a flat list of operations;
- `_layout.py`: where the entries of arrays are, and loops over them in C;
- `_ops.py`: which operations are known;
- `_products.py`: products as other operations;
- `_schedule.py`: which of them share loops, which go example by example;
- `_places.py`: where values are in memory;
- `_sums.py`, `_loose.py`: loops with sums, and products of matrices that change;
- `_emit.py`: kernels and the file as C, with `kernels.h`;
- `_build.py`: C as a function that XLA can call;
- `_loop.py`: what is done before the loop, and the call;
- `_scan.py`: a loop with its gradient, as `mnemon/_deferred.py` uses it.
"""

from ._build import available, wanted
from ._loop import NativeLoop, Unsupported, sum_of_outer_products
from ._scan import NativeScan, ScanGradient, Step, native_is_possible

__all__ = [
    "NativeLoop",
    "NativeScan",
    "ScanGradient",
    "Step",
    "Unsupported",
    "available",
    "native_is_possible",
    "sum_of_outer_products",
    "wanted",
]
