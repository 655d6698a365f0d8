"""Layers to kernels, in the accelerator's blocked layout: which kernel an operator becomes."""

from ..errors import UnsupportedOperatorError
from ..graph.fuse import Layer
from ..graph.ir import Graph
from ..graph.ops import Add, AveragePool2d, Conv2d, Lookup, MaxPool2d, Upsample2d
from ..graph.split_groups import is_depthwise
from .activation import Activation
from .contraction import lower_conv, lower_depthwise
from .ir import Fold, Kernel, Stage, var
from .pointwise import lower_add, lower_average, lower_upsample, with_sum, with_table
from .stages import LoweredLayer, outer_loops, window_of, windowed

__all__ = ["lower"]


def lower(graph: Graph, layer: Layer, activations: dict[str, Activation]) -> LoweredLayer:
    """The kernel of ``layer``.

    Raises UnsupportedOperatorError when the accelerator cannot run its operator.
    """
    inputs = tuple(activations[name] for name in layer.inputs)
    output = activations[layer.output]
    match layer.nodes[0].operator:
        case Conv2d() as conv if is_depthwise(conv, _weights_shape(graph, layer)):
            lowered = lower_depthwise(graph, layer, inputs[0], output)
        case Conv2d():
            lowered = lower_conv(graph, layer, inputs[0], output)
        case Add() as add:
            lowered = lower_add(layer, add, (inputs[0], inputs[1]), output)
        case MaxPool2d() as pool:
            value = window_of(inputs[0], pool.strides, (pool.pads[0], pool.pads[1]))
            lowered = windowed(layer, inputs[0], output, pool.kernel, Fold.MAX, value, None, {})
        case Upsample2d(factors=factors):
            lowered = lower_upsample(layer, factors, inputs[0], output)
        case AveragePool2d() as average:
            lowered = lower_average(layer, average, inputs[0], output)
        case Lookup():
            loops, reduction = outer_loops(output), frozenset[str]()
            place = (var("c"), var("y"), var("x"), var("l"))
            stage = Stage(
                "finish", loops, reduction, output.at(*place), Fold.NONE, inputs[0].at(*place)
            )
            lowered = LoweredLayer(Kernel(layer.name, (stage,)), {}, inputs, output)
        case other:
            raise UnsupportedOperatorError(
                f"node {layer.name!r}: {type(other).__name__} has no kernel for the accelerator"
            )
    return with_table(graph, layer, with_sum(layer, inputs, lowered))


def _weights_shape(graph: Graph, layer: Layer) -> tuple[int, ...]:
    return graph.types[layer.nodes[0].inputs[1]].shape
