"""From the traced body of a loop to a call of its compiled form."""

from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core as jex
from jaxtyping import Array, ArrayLike

from ._build import register
from ._emit import emit
from ._graph import BY_STEP, CARRIED, FIXED, Op, Value, flatten, used_for
from ._layout import C_TYPES
from ._ops import supported
from ._products import rewrite_products
from ._schedule import Loop


class Unsupported(Exception):
    """The body of a loop has an operation, named here, that is not known in C."""


class NativeLoop:
    """A loop whose body is a jaxpr; `levels` says what each of its inputs is.

    `FIXED` inputs are the same in all steps, `BY_STEP` ones have a slice for each of them. The first outputs are what
    the `CARRIED` inputs are in the next step, the others are stacked. What does not depend on what is carried and
    cannot be done in C, as drawing random numbers, is done for all steps before the loop; what does not depend on the
    step at all is done once.
    """

    def __init__(self, closed: jex.ClosedJaxpr, levels: Sequence[int]):
        self.graph = flatten(closed, levels)
        before = {op for op in self.graph.ops if op.outputs[0].level == FIXED}
        wanted: set[Value] = set()
        for op in reversed(self.graph.ops):
            if op.outputs[0].level == BY_STEP and (not supported(op) or wanted & set(op.outputs)):
                wanted |= set(op.inputs)
                before.add(op)
        self.before = [op for op in self.graph.ops if op in before]
        self.inside = [op for op in self.graph.ops if op not in before]
        for op in self.inside:
            if not supported(op):
                raise Unsupported(op.name)
        self.inside = rewrite_products(self.inside, self.graph.outputs)
        self.carried = [value for value in self.graph.inputs if value.level == CARRIED]
        for value in (*self.carried, *self.graph.outputs):
            if value.level == CARRIED and (str(value.dtype) not in C_TYPES or value.size == 0):
                raise Unsupported(f"an array of type {value.dtype}")

    def level(self, output: int) -> int:
        """What an output depends on; a stacked one that is `FIXED` or an input `BY_STEP` need not be stacked."""
        return self.graph.outputs[output].level

    def run(
        self,
        inputs: Sequence[Any],
        *,
        steps: ArrayLike,
        length: int,
        reverse: bool = False,
        unwanted: Collection[int] = (),
    ) -> tuple[list[Any], list[Any], list[bool]]:
        """What is carried after the last step, what was stacked, and which of these are the same in all steps.

        Only the first `steps` of them are run, at least one; of the others all that is stacked is zero.
        So are the stacked outputs whose numbers are `unwanted`, which are not made.
        """
        given = dict(zip(self.graph.inputs, inputs, strict=True))
        known = {v: array for v, array in given.items() if v.level == FIXED} | self.graph.arrays
        by_step = {v: array for v, array in given.items() if v.level == BY_STEP}
        self._evaluate_before(known, by_step)
        count = len(self.carried)
        ends, stacked = self.graph.outputs[:count], self.graph.outputs[count:]
        asked = [value for number, value in enumerate(stacked) if number not in unwanted]
        ops = used_for([*ends, *asked], self.inside)
        inside = {value for op in ops for value in op.outputs} | set(self.carried)
        made = list(dict.fromkeys(value for value in asked if value in inside))
        used = {value for op in ops for value in op.inputs} | set(ends)
        loop = Loop(
            ops,
            [value for value in known if value in used and value.constant is None],
            [value for value in by_step if value in used],
            self.carried,
            ends,
            made,
            length,
            reverse,
        )
        results = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in self.carried]
        results += [jax.ShapeDtypeStruct((length, *value.shape), value.dtype) for value in made]
        arguments = (
            [known[v] for v in loop.fixed] + [given[v] for v in loop.carried] + [by_step[v] for v in loop.stepped]
        )
        call = jax.ffi.ffi_call(register(emit(loop)), results, vmap_method="sequential")
        outputs = list(call(jnp.asarray(steps, jnp.int32), *arguments))
        found = dict(zip(made, outputs[count:], strict=True))

        def stack(number: int, value: Value) -> tuple[Any, bool]:
            if number in unwanted:
                return jnp.zeros(value.shape, value.dtype), True
            if value in found:
                return found[value], False
            if value in by_step:
                return by_step[value], False
            if value.constant is not None:
                return jnp.full(value.shape, value.constant, value.dtype), True
            return known[value], True

        pairs = [stack(number, value) for number, value in enumerate(stacked)]
        return outputs[:count], [array for array, _ in pairs], [same for _, same in pairs]

    def _evaluate_before(self, known: dict[Value, Any], by_step: dict[Value, Any]) -> None:
        """Do what need not be in the loop."""

        def read(value: Value) -> Any:
            return known[value] if value.constant is None else jnp.full(value.shape, value.constant, value.dtype)

        each: list[Op] = []
        for op in self.before:
            if op.outputs[0].level == FIXED:
                known |= dict(zip(op.outputs, op.evaluate([read(value) for value in op.inputs]), strict=True))
            else:
                each.append(op)
        if not each:
            return
        later = {v for op in self.inside for v in op.inputs} | set(self.graph.outputs)
        wanted = [value for op in each for value in op.outputs if value in later]

        def one_step(slices: list[Any]) -> list[Any]:
            values = dict(zip(by_step, slices, strict=True))
            for op in each:
                operands = [values[v] if v in values else read(v) for v in op.inputs]
                values |= dict(zip(op.outputs, op.evaluate(operands), strict=True))
            return [values[value] for value in wanted]

        by_step |= dict(zip(wanted, jax.vmap(one_step)(list(by_step.values())), strict=True))


def sum_of_outer_products(left: Array, right: Array, rows: ArrayLike) -> Array:
    """`left.T @ right` of the first `rows` rows of float32 matrices that have many."""
    k, n = left.shape[1], right.shape[1]
    body = f"sum_of_outer_products(in[1], in[2], out[0], *(const int32_t *)in[0], {k}L, {n}L);"
    source = f'#define TURNED\n#include "kernels.h"\nstatic void run(void *const *in, void *const *out) {{ {body} }}\n'
    result = jax.ShapeDtypeStruct((k, n), left.dtype)
    call = jax.ffi.ffi_call(register(source), result, vmap_method="sequential")
    return call(jnp.asarray(rows, jnp.int32), left, right)
