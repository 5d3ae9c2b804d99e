"""Products that are better written as other operations."""

from collections.abc import Sequence
from typing import NamedTuple

from ._graph import FIXED, Op, Value, used_for


class _Outer(NamedTuple):
    """A product without a sum: its factors, and which axes of it theirs are."""

    left: Value
    left_axes: list[int]
    right: Value
    right_axes: list[int]


def rewrite_products(ops: Sequence[Op], outputs: Sequence[Value]) -> list[Op]:
    """The same operations, with products as multiplications, sums, and products in another order.

    A product without a sum is a multiplication, and one of a matrix that changes and a vector is a multiplication and
    a sum: these can share one pass over the matrix with all else that is done to it. A product that is transposed is
    the product of its factors in the other order.
    """
    rewriting = _Rewriting()
    for op in ops:
        rewriting.add(op)
    return used_for(outputs, rewriting.ops)


class _Rewriting:
    def __init__(self):
        self.ops: list[Op] = []
        self.outer: dict[Value, _Outer] = {}
        self.products: dict[Value, Op] = {}

    def add(self, op: Op) -> None:
        if op.name == "transpose" and op.inputs[0] in self.outer:
            outer, moved = self.outer[op.inputs[0]], {old: new for new, old in enumerate(op.params["permutation"])}
            left_axes, right_axes = ([moved[d] for d in axes] for axes in (outer.left_axes, outer.right_axes))
            self._multiply(op.outputs[0], outer._replace(left_axes=left_axes, right_axes=right_axes))
        elif op.name == "transpose" and op.inputs[0] in self.products:
            self._transpose(op)
        elif op.name == "dot_general" and not op.params["dimension_numbers"][0][0]:
            self._multiply(op.outputs[0], _as_outer(op))
        elif op.name == "dot_general" and FIXED not in (value.level for value in op.inputs):
            self._sum(op)
        else:
            self.ops.append(op)

    def _multiply(self, product: Value, outer: _Outer) -> None:
        left = self._spread(outer.left, product.shape, outer.left_axes)
        right = self._spread(outer.right, product.shape, outer.right_axes)
        self.ops.append(Op("mul", {}, (left, right), (product,)))
        self.outer[product] = outer

    def _transpose(self, op: Op) -> None:
        """A transposed product as that of the factors in the other order, if that is what it is."""
        product = self.products[op.inputs[0]]
        (left_sum, right_sum), (left_batch, right_batch) = product.params["dimension_numbers"]
        left, right = product.inputs
        ahead = len(left_batch)
        rows, columns = len(left.shape) - len(left_sum) - ahead, len(right.shape) - len(right_sum) - ahead
        swapped = (*range(ahead), *range(ahead + rows, ahead + rows + columns), *range(ahead, ahead + rows))
        if tuple(op.params["permutation"]) != swapped:
            self.ops.append(op)
            return
        dimensions = ((right_sum, left_sum), (right_batch, left_batch))
        self.ops.append(Op("dot_general", {"dimension_numbers": dimensions}, (right, left), op.outputs))

    def _sum(self, op: Op) -> None:
        """A product of matrices and vectors, whose sum goes along one axis, as a multiplication and a sum."""
        (left_sum, right_sum), (left_batch, right_batch) = op.params["dimension_numbers"]
        sides = [(op.inputs[0], left_sum, left_batch), (op.inputs[1], right_sum, right_batch)]
        (vector, vector_sum, vector_batch), (matrix, matrix_sum, matrix_batch) = sorted(sides, key=lambda s: s[0].size)
        free = len(matrix.shape) - len(matrix_sum) - len(matrix_batch)
        alone = len(vector.shape) == len(vector_sum) + len(vector_batch)
        if not alone or free == 0 or len(matrix_sum) != 1 or tuple(matrix_batch) != tuple(range(len(matrix_batch))):
            self.products[op.outputs[0]] = op
            self.ops.append(op)
            return
        places = dict(zip((*vector_batch, *vector_sum), (*matrix_batch, *matrix_sum), strict=True))
        wide = self._spread(vector, matrix.shape, [places[d] for d in range(len(vector.shape))])
        terms = Value(matrix.shape, matrix.dtype, level=max(vector.level, matrix.level))
        self.ops.append(Op("mul", {}, (wide, matrix), (terms,)))
        self.ops.append(Op("reduce_sum", {"axes": tuple(matrix_sum), "product": op}, (terms,), op.outputs))

    def _spread(self, value: Value, shape: tuple[int, ...], axes: Sequence[int]) -> Value:
        """A value over a shape of which its axes are these."""
        if value.constant is not None:
            return Value(shape, value.dtype, value.constant)
        order = sorted(range(len(axes)), key=lambda d: axes[d])
        turned = Value(tuple(value.shape[d] for d in order), value.dtype, level=value.level)
        self.ops.append(Op("transpose", {"permutation": tuple(order)}, (value,), (turned,)))
        wide = Value(shape, value.dtype, level=value.level)
        self.ops.append(Op("broadcast_in_dim", {"broadcast_dimensions": tuple(sorted(axes))}, (turned,), (wide,)))
        return wide


def _as_outer(op: Op) -> _Outer:
    left, right = op.inputs
    _, (left_batch, right_batch) = op.params["dimension_numbers"]
    left_free = iter(range(len(left_batch), len(left.shape)))
    right_free = iter(range(len(left.shape), len(left.shape) + len(right.shape)))
    left_axes = [left_batch.index(d) if d in left_batch else next(left_free) for d in range(len(left.shape))]
    right_axes = [right_batch.index(d) if d in right_batch else next(right_free) for d in range(len(right.shape))]
    return _Outer(left, left_axes, right, right_axes)
