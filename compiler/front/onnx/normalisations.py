"""Converters of normalisations, softmax and losses: formulas over means, sums and maxima."""

import numpy as np

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term, standardized, widened
from ...graph.operators.quantization import DequantizeLinear
from ...graph.operators.rows import SoftmaxRows
from ...graph.operators.windows import WindowFunction, WindowReduce
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode

__all__ = ["NORMALISATIONS"]


def _by_channel(value: Term, rank: int, dtype: DType) -> Term:
    return value.cast(dtype).reshape(-1, *(1,) * (rank - 2))


def convert_batch_normalization(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``(x - mean) * scale / sqrt(variance + epsilon) + bias`` of each channel."""
    given, *rest = (term(context, node, inputs, place) for place in range(5))
    x = widened(given)
    scale, bias, mean, variance = (_by_channel(value, max(x.rank, 2), x.dtype) for value in rest)
    epsilon, momentum = node.real("epsilon", 1e-5), node.real("momentum", 0.9)
    running = None
    if node.integer("training_mode", 0):
        axes = [axis for axis in range(x.rank) if axis != 1]
        running = (mean, variance)
        mean = x.mean(*axes, keep=True).reshape(*scale.shape)
        centred = x - mean
        variance = (centred * centred).mean(*axes, keep=True).reshape(*scale.shape)
    # As ONNX Runtime: the inverse is rounded before the product.
    factor = scale * (1.0 / (variance + epsilon).sqrt())
    y = (x * factor + (bias - mean * factor)) if running is None else (x - mean) * factor + bias
    results = [y.cast(given.dtype).tensor]
    if running is not None:
        for value, old, kept in zip((mean, variance), running, rest[2:], strict=True):
            mixed = old * momentum + value * (1 - momentum)
            results.append(mixed.reshape(-1).cast(kept.dtype).tensor)
    return tuple(results)


def convert_instance_normalization(
    context: ImportContext, node: OnnxNode, inputs: Inputs
) -> Inputs:
    """Standardised over the spatial dimensions."""
    given, scale, bias = (term(context, node, inputs, place) for place in range(3))
    x = widened(given)
    y, _, _ = standardized(x, tuple(range(2, x.rank)), node.real("epsilon", 1e-5))
    scale, bias = (_by_channel(value, x.rank, x.dtype) for value in (scale, bias))
    return ((y * scale + bias).cast(given.dtype).tensor,)


def convert_layer_normalization(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Standardised over the last dimensions, from ``axis`` on."""
    given, scale = (term(context, node, inputs, place) for place in range(2))
    bias = optional_term(context, inputs, 2)
    x = widened(given)
    axes = tuple(range(node.integer("axis", -1) % x.rank, x.rank))
    y, mean, inverse = standardized(x, axes, node.real("epsilon", 1e-5))
    y = y.cast(given.dtype) * scale
    if bias is not None:
        y = y + bias
    return y.tensor, mean.tensor, inverse.tensor


def convert_rms_normalization(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``x / sqrt(mean(x * x) + epsilon) * scale``."""
    given, scale = (term(context, node, inputs, place) for place in range(2))
    x = widened(given)
    axes = tuple(range(node.integer("axis", -1) % x.rank, x.rank))
    power = (x * x).mean(*axes, keep=True)
    y = x / (power + node.real("epsilon", 1e-5)).sqrt()
    return ((y.cast(scale.dtype) * scale).cast(given.dtype).tensor,)


def convert_group_normalization(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Standardised over groups of channels and the spatial dimensions."""
    given, scale, bias = (term(context, node, inputs, place) for place in range(3))
    x, groups = widened(given), node.integer("num_groups", 1)
    channels = x.shape[1]
    if groups < 1 or channels % groups:
        raise ModelError(f"{node}: {groups} groups of {channels} channels")
    grouped = x.reshape(x.shape[0], groups, -1)
    y, _, _ = standardized(grouped, (2,), node.real("epsilon", 1e-5))
    if scale.shape == (groups,) and context.opset < 21:
        y = y * scale.cast(x.dtype).reshape(groups, 1) + bias.cast(x.dtype).reshape(groups, 1)
        return (y.reshape(*x.shape).cast(given.dtype).tensor,)
    scale, bias = (_by_channel(value, x.rank, x.dtype) for value in (scale, bias))
    return ((y.reshape(*x.shape) * scale + bias).cast(given.dtype).tensor,)


def convert_lp_normalization(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``x / norm``; 0 where the norm is 0."""
    x, axis = term(context, node, inputs, 0), node.integer("axis", -1)
    size = x.abs() if node.integer("p", 2) == 1 else x * x
    norm = size.sum(axis, keep=True)
    norm = norm if node.integer("p", 2) == 1 else norm.sqrt()
    quotient = x / norm.equal(0.0).where(1.0, norm, x.dtype)
    return (quotient.tensor,)


def convert_mean_variance_normalization(
    context: ImportContext, node: OnnxNode, inputs: Inputs
) -> Inputs:
    """``(x - mean) / sqrt(mean(x * x) - mean ** 2)``."""
    x = term(context, node, inputs, 0)
    axes = tuple(axis % x.rank for axis in node.integers("axes", (0, 2, 3)))
    mean = x.mean(*axes, keep=True)
    centred = x - mean
    variance = (centred * centred).mean(*axes, keep=True)
    return ((centred / (variance.sqrt() + 1e-9)).tensor,)


def convert_lrn(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``x / (bias + alpha / size * sum(x * x)) ** beta``, the sum over neighbouring channels."""
    x, size = term(context, node, inputs, 0), node.integer("size", 1)
    pads = (((size - 1) // 2, size - 1 - (size - 1) // 2),)
    operator = WindowReduce((1,), (size,), (1,), (1,), pads, WindowFunction.ADD)
    sums = Term(context, context.emit(operator, (x * x).tensor))
    base = sums * (node.real("alpha", 1e-4) / size) + node.real("bias", 1.0)
    return ((x / base.power(node.real("beta", 0.75))).tensor,)


def _softmax_axes(context: ImportContext, node: OnnxNode, x: Term) -> tuple[Term, int]:
    """Before opset 13 the dimensions from ``axis`` on are one."""
    if context.opset >= 13:
        return x, node.integer("axis", -1) % max(x.rank, 1)
    axis = node.integer("axis", 1) % max(x.rank, 1)
    return x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))), 1


def convert_softmax(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``exp(x - max)`` over its sum.

    Of dequantised rows that are in another dimension than the last, these are brought there: so it
    stays one operator, which has an integer form.
    """
    given = term(context, node, inputs, 0)
    x, axis = _softmax_axes(context, node, widened(given))
    if axis < x.rank - 1 and _is_dequantised(context, x):
        order = [*(each for each in range(x.rank) if each != axis), axis]
        back = [order.index(each) for each in range(x.rank)]
        return (x.transpose(*order).softmax(-1).transpose(*back).tensor,)
    return (x.softmax(axis).reshape(*given.shape).cast(given.dtype).tensor,)


def _is_dequantised(context: ImportContext, x: Term) -> bool:
    """True if DequantizeLinear made ``x``."""
    name = x.tensor.name
    made = (node for node in reversed(context.builder.nodes) if name in node.outputs)
    return any(isinstance(node.operator, DequantizeLinear) for node in made)


def convert_log_softmax(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The logarithm of softmax."""
    given = term(context, node, inputs, 0)
    x, axis = _softmax_axes(context, node, widened(given))
    return (log_softmax(x, axis).reshape(*given.shape).cast(given.dtype).tensor,)


def log_softmax(x: Term, axis: int) -> Term:
    """``x - max - log(sum(exp(x - max)))``."""
    if axis % x.rank == x.rank - 1 and x.dtype.bytes >= 4 and x.shape[-1]:
        return Term(x.context, x.context.emit(SoftmaxRows(logarithm=True), x.tensor))
    shifted = x - x.max(axis, keep=True)
    return shifted - shifted.exp().sum(axis, keep=True).log()


def convert_negative_log_likelihood(
    context: ImportContext, node: OnnxNode, inputs: Inputs
) -> Inputs:
    """``-weight[target] * x[n, target, ...]``, reduced."""
    x, target = (term(context, node, inputs, place) for place in range(2))
    weight = optional_term(context, inputs, 2)
    return (_likelihood_loss(node, x, target, weight).tensor,)


def convert_cross_entropy(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The loss of ``log_softmax(x)``, and the latter."""
    x, target = (term(context, node, inputs, place) for place in range(2))
    logarithm = log_softmax(x, 1)
    loss = _likelihood_loss(node, logarithm, target, optional_term(context, inputs, 2))
    return loss.tensor, logarithm.tensor


def _likelihood_loss(node: OnnxNode, x: Term, target: Term, weight: Term | None) -> Term:
    classes = x.shape[1]
    shape = [1] * x.rank
    shape[1] = classes
    places = target.constant(np.arange(classes).reshape(shape), target.dtype)
    chosen = places.equal(target.unsqueeze(1))
    ignored = node.attributes.get("ignore_index")
    if ignored is not None:
        chosen = chosen & ~target.equal(node.integer("ignore_index", 0)).unsqueeze(1)
    factor = x.constant(1.0, x.dtype) if weight is None else weight.reshape(*shape)
    losses = chosen.where(-x * factor, 0.0, x.dtype).sum(1)
    match node.text("reduction", "mean"):
        case "none":
            return losses
        case "sum":
            return losses.sum(*range(losses.rank))
        case "mean" if weight is None and ignored is None:
            return losses.mean(*range(losses.rank))
        case "mean":
            weights = chosen.where(factor.expand(*shape), 0.0, x.dtype)
            axes = range(x.rank)
            return losses.sum(*range(losses.rank)) / weights.sum(*axes)
        case reduction:
            raise UnsupportedOperatorError(f"{node}: reduction {reduction!r}")


NORMALISATIONS: dict[str, Converter] = {
    "BatchNormalization": convert_batch_normalization,
    "GroupNormalization": convert_group_normalization,
    "InstanceNormalization": convert_instance_normalization,
    "LRN": convert_lrn,
    "LayerNormalization": convert_layer_normalization,
    "LogSoftmax": convert_log_softmax,
    "LpNormalization": convert_lp_normalization,
    "MeanVarianceNormalization": convert_mean_variance_normalization,
    "NegativeLogLikelihoodLoss": convert_negative_log_likelihood,
    "RMSNormalization": convert_rms_normalization,
    "Softmax": convert_softmax,
    "SoftmaxCrossEntropyLoss": convert_cross_entropy,
}
