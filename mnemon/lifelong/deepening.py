"""Net2Deeper (Chen et al. 2016): a network with one more layer and the same outputs."""

import operator

import equinox as eqx

from .._errors import BadValue, require
from ..cells import AbstractCell, Stack
from ..model import Model


def deepen(model: Model, layer: AbstractCell, *, scale: float = 0.01, gate_bias: float = 8.0) -> Model:
    r"""Net2Deeper: the same network with `layer` on top, its parameters set so that it passes its input on.

    Exact for an [`RNN`][mnemon.cells.RNN] with the identity, and with ReLU (or an NRU) if the layer below is never
    negative. A tanh layer is used where it is nearly linear, at `scale` times its input, and gates are held open or
    closed by `gate_bias`; the readout makes up for the scale. The outputs then differ by about
    \(\frac{1}{3} \text{scale}^2\) (tanh, GRU) or twice that (LSTM) of their size plus, for the gated ones,
    \(e^{-\text{gate bias}}\) for each step that is remembered; [`largest_difference`][] measures it (with the default
    options, on an LSTM of 6 units over 30 steps: 1e-6 for tanh, 1e-4 for GRU and LSTM). A larger
    `gate_bias` is more exact and slower to learn from.

    **Arguments:**

    - `model`: the teacher; left as it is.
    - `layer`: a new cell whose input and output sizes are the output size of the model's cell.
    - `scale`: of the input of a saturating layer.
    - `gate_bias`: magnitude of the biases of gates.
    """
    require(scale > 0, "scale", scale, "a positive factor", "scale=0.01")
    width = model.cell.output_size
    require(
        layer.input_size == layer.output_size == width,
        "layer",
        f"{type(layer).__name__}({layer.input_size}, {layer.output_size})",
        f"a layer from and to the {width} outputs of the network",
        f"GRU({width}, {width}, key=key)",
    )
    found = layer.as_identity(scale, gate_bias)
    if found is None:
        raise BadValue(
            f"layer={type(layer).__name__!r} cannot work: wanted a layer that can pass on its input, "
            f"e.g. LSTM({width}, {width}, key=key)"
        )
    identity, factor = found
    after = "readout_weights" if model.output_layer is None else "output_layer.weights"
    weights = operator.attrgetter(after)
    return eqx.tree_at(lambda m: (m.cell, weights(m)), model, (Stack(model.cell, identity), weights(model) / factor))
