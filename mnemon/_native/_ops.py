"""Which operations are known in C, and what kind of loop each is."""

from collections.abc import Sequence

from ._graph import Op
from ._layout import C_TYPES, View, c_type

# An entry of the result from entries of the operands.
POINTWISE = {
    "add": "{0} + {1}",
    "add_any": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "sign": "sign_of({0})",
    "max": "{0} > {1} || {0} != {0} ? {0} : {1}",
    "min": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "abs": "__builtin_fabsf({0})",
    "exp": "fast_exp({0})",
    "log": "fast_log({0})",
    "log1p": "fast_log1p({0})",
    "tanh": "fast_tanh({0})",
    "logistic": "fast_sigmoid({0})",
    "sqrt": "__builtin_sqrtf({0})",
    "rsqrt": "1.0f / __builtin_sqrtf({0})",
    "square": "{0} * {0}",
    "floor": "__builtin_floorf({0})",
    "pow": "fast_pow({0}, {1})",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "select_n": "{0} ? {2} : {1}",
    "clamp": "{1} < {0} ? {0} : ({1} > {2} ? {2} : {1})",
    "convert_element_type": "",
    "integer_pow": "",
    "not": "",
    "is_finite": "",
}
_ONLY_FLOAT = {"abs", "sign", "exp", "log", "log1p", "tanh", "logistic", "sqrt", "rsqrt", "floor", "pow", "is_finite"}
# Other names for entries of an array that is there.
VIEWS = {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "slice", "split", "unstack", "rev"}
# What to begin with, how to combine two entries (what is no number stays so), and the name of that in OpenMP.
REDUCTIONS = {
    "reduce_sum": ("0", "{0} + {1}", "+"),
    "reduce_max": ("-__builtin_inff()", "{0} > {1} || {0} != {0} ? {0} : {1}", "largest"),
    "reduce_min": ("__builtin_inff()", "{0} < {1} || {0} != {0} ? {0} : {1}", "smallest"),
    "reduce_or": ("0", "{0} | {1}", "|"),
    "reduce_and": ("1", "{0} & {1}", "&"),
}
CUMULATIVE = {"cumsum": "{0} + {1}", "cumprod": "{0} * {1}", "cummax": "{0} > {1} || {0} != {0} ? {0} : {1}"}
_OTHERS = {"dot_general", "concatenate", "stack", "pad", "argmax", "argmin"}


def supported(op: Op) -> bool:
    """Whether this operation can be in a loop in C."""
    values = (*op.inputs, *op.outputs)
    if any(str(value.dtype) not in C_TYPES for value in values):
        return False
    of_floats = all(str(value.dtype) == "float32" for value in op.inputs)
    if op.name in _ONLY_FLOAT | {"dot_general", "reduce_max", "reduce_min", "argmax", "argmin"} | set(CUMULATIVE):
        return of_floats
    if op.name == "select_n":
        return len(op.inputs) == 3 and str(op.inputs[0].dtype) == "bool"
    if op.name == "pad":
        return all(inner == 0 for _, _, inner in op.params["padding_config"])
    if op.name == "not":
        return str(op.inputs[0].dtype) == "bool"
    if op.name == "reshape":
        return op.params.get("dimensions") is None
    if op.name == "reduce_sum":
        return str(op.inputs[0].dtype) != "bool"
    return op.name in POINTWISE or op.name in VIEWS or op.name in REDUCTIONS or op.name in _OTHERS


def expression(op: Op, operands: list[str]) -> str:
    """An entry of what a pointwise operation gives."""
    of = str(op.inputs[0].dtype)
    if op.name == "convert_element_type":
        if str(op.outputs[0].dtype) == "bool":
            return f"{operands[0]} != 0"
        return f"({c_type(op.outputs[0])}){operands[0]}"
    if op.name == "integer_pow":
        power = op.params["y"]
        product = " * ".join([operands[0]] * abs(power)) or "1.0f"
        return product if power >= 0 else f"1.0f / ({product})"
    if op.name == "not":
        return f"!{operands[0]}"
    if op.name == "is_finite":
        return f"({operands[0]} - {operands[0]}) == 0.0f"
    if op.name in ("max", "min") and of != "float32":
        return f"{operands[0]} {'>' if op.name == 'max' else '<'} {operands[1]} ? {operands[0]} : {operands[1]}"
    return POINTWISE[op.name].format(*operands)


def is_by_example(op: Op, rows: int) -> bool:
    """Whether an operation is one for each of so many examples, which are along the first axes."""
    out, params = op.outputs[0].shape, op.params
    if not out or out[0] != rows:
        return False
    if op.name in POINTWISE:
        return True
    if op.name == "dot_general":
        _, (left, right) = params["dimension_numbers"]
        return tuple(left[:1]) == tuple(right[:1]) == (0,)
    if op.name == "pad":
        return tuple(params["padding_config"][0]) == (0, 0, 0)
    if op.name in ("concatenate", "stack"):
        return bool(params["dimension" if op.name == "concatenate" else "axis"] > 0)
    if op.name in CUMULATIVE:
        return bool(params["axis"] > 0)
    same = bool(op.inputs[0].shape) and op.inputs[0].shape[0] == rows
    return same and 0 not in params.get("axes", ())


def factors(op: Op, left: View, right: View, drop: bool = False) -> tuple:
    """The operands of a product, and sizes and strides of its axes: of the batch, rows, columns and the sum.

    The views may lack the first axis, which is then of the batch.
    """
    (left_sum, right_sum), (left_batch, right_batch) = op.params["dimension_numbers"]
    if drop:
        left_batch, right_batch = left_batch[1:], right_batch[1:]
        dims = (left_sum, right_sum, left_batch, right_batch)
        left_sum, right_sum, left_batch, right_batch = ([d - 1 for d in part] for part in dims)

    def axes(view: View, dims: Sequence[int]) -> list[tuple[int, int]]:
        return [(view.shape[d], view.strides[d]) for d in dims]

    def both(left_dims: Sequence[int], right_dims: Sequence[int]) -> list[tuple[int, int, int]]:
        return [(n, s, r) for (n, s), (_, r) in zip(axes(left, left_dims), axes(right, right_dims), strict=True)]

    rows = axes(left, [d for d in range(len(left.shape)) if d not in (*left_sum, *left_batch)])
    columns = axes(right, [d for d in range(len(right.shape)) if d not in (*right_sum, *right_batch)])
    return left, right, both(left_batch, right_batch), rows, columns, both(left_sum, right_sum)
