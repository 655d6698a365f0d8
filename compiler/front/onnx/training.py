"""Converters of optimiser steps."""

from collections.abc import Sequence

from ...graph.formulas import Term
from .context import Converter, ImportContext
from .inputs import Inputs, term
from .node import OnnxNode

__all__ = ["TRAINING"]


def _groups(
    context: ImportContext, node: OnnxNode, inputs: Inputs, count: int
) -> tuple[Term, Term, list[tuple[Term, ...]]]:
    """The rate, the step number, and for each tensor its ``count`` inputs."""
    rate, step = (term(context, node, inputs, place) for place in range(2))
    tensors = (len(inputs) - 2) // count
    groups = [
        tuple(term(context, node, inputs, 2 + k * tensors + i) for k in range(count))
        for i in range(tensors)
    ]
    return rate, step, groups


def _results(groups: Sequence[tuple[Term, ...]]) -> Inputs:
    """First results of all tensors, then the second ones, ..."""
    return tuple(each.tensor for column in zip(*groups, strict=True) for each in column)


def convert_adagrad(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Steps divided by the root of the sum of squared gradients so far."""
    rate, step, groups = _groups(context, node, inputs, 3)
    decayed = rate / (step.cast(rate.dtype) * node.real("decay_factor", 0.0) + 1.0)
    results = []
    for x, gradient, squares in groups:
        gradient = gradient + x * node.real("norm_coefficient", 0.0)
        squares = squares + gradient * gradient
        divisor = squares.sqrt() + node.real("epsilon", 1e-6)
        results.append((x - decayed * gradient / divisor, squares))
    return _results(results)


def convert_adam(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Steps from running means of gradients and of their squares."""
    rate, step, groups = _groups(context, node, inputs, 4)
    alpha, beta = node.real("alpha", 0.9), node.real("beta", 0.999)
    count = step.cast(rate.dtype)
    corrected = rate * (1.0 - count.lift(beta).power(count)).sqrt()
    corrected = corrected / (1.0 - count.lift(alpha).power(count))
    rate = step.equal(0).where(rate, corrected, rate.dtype)
    results = []
    for x, gradient, first, second in groups:
        gradient = gradient + x * node.real("norm_coefficient", 0.0)
        first = first * alpha + gradient * (1 - alpha)
        second = second * beta + gradient * gradient * (1 - beta)
        moved = x - rate * first / (second.sqrt() + node.real("epsilon", 1e-6))
        results.append((moved * (1 - node.real("norm_coefficient_post", 0.0)), first, second))
    return _results(results)


def convert_momentum(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Steps along a decaying sum of gradients."""
    rate, step, groups = _groups(context, node, inputs, 3)
    alpha, beta = node.real("alpha", 0.9), node.real("beta", 0.1)
    factor = step.equal(0).where(1.0, beta, rate.dtype)
    nesterov = node.text("mode", "standard") == "nesterov"
    results = []
    for x, gradient, velocity in groups:
        gradient = gradient + x * node.real("norm_coefficient", 0.0)
        velocity = velocity * alpha + gradient * factor
        direction = gradient + velocity * alpha if nesterov else velocity
        results.append((x - rate * direction, velocity))
    return _results(results)


TRAINING: dict[str, Converter] = {
    "ai.onnx.preview.training.Adagrad": convert_adagrad,
    "ai.onnx.preview.training.Adam": convert_adam,
    "ai.onnx.preview.training.Momentum": convert_momentum,
}
