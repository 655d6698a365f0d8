"""Parallel convolutions of one tensor, added -> one convolution.

Networks such as RepVGG, MobileOne and FastViT are trained with several branches a layer: kernels of
different sizes, a normalisation, and the tensor itself.  Their sum is one convolution (X. Ding et
al., "RepVGG: Making VGG-style ConvNets Great Again", 2021), with no more products than the largest
branch, and it is rounded to int8 once.
"""

from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from ..node import OnnxNode
from .kernel import Kernel
from .model import FloatModel

__all__ = ["MergeBranches"]


@frozen
class Term:
    """A tensor that is added or, where ``sign`` is -1, subtracted."""

    sign: int
    name: str


@frozen
class MergeBranches:
    """Sums and differences of several tensors are taken as a whole.

    shapes: of every tensor.
    """

    shapes: dict[str, tuple[int, ...]]
    name: str = "merge_branches"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes: list[OnnxNode] = []
        constants: dict[str, Array] = {}
        dropped: set[str] = set()
        for node in model.nodes:
            reader = model.only_reader(node.outputs[0])
            if not self._adds(model, node) or (reader and self._adds(model, reader)):
                nodes.append(node)
                continue
            terms, inner = self._terms(model, node, 1)
            left, kernels, merged = self._merged(model, terms)
            if not kernels:
                nodes.append(node)
                continue
            dropped |= merged | inner
            whole = len(kernels) == 1 and not left
            results = [
                node.outputs[0] if whole else f"{node.outputs[0]}/branches{number}"
                for number in range(len(kernels))
            ]
            nodes += [_convolution(*each, constants) for each in zip(kernels, results, strict=True)]
            nodes += _sum([*(Term(1, name) for name in results), *left], node)
        nodes = [node for node in nodes if node.outputs[0] not in dropped]
        return model.with_nodes(nodes, constants) if constants else model

    def _adds(self, model: FloatModel, node: OnnxNode) -> bool:
        """True if ``node`` adds or subtracts tensors of one shape, neither of them constant."""
        shape = self.shapes.get(node.outputs[0], ())
        return (
            node.kind in ("Add", "Sub")
            and len(shape) > 2
            and all(self.shapes.get(name) == shape for name in node.inputs)
            and not any(name in model.constants for name in node.inputs)
        )

    def _terms(self, model: FloatModel, node: OnnxNode, sign: int) -> tuple[list[Term], set[str]]:
        """The terms of a sum, through sums that nothing else reads, and the names of those."""
        terms, inner = [], set()
        signs = sign, sign if node.kind == "Add" else -sign
        for name, each in zip(node.inputs, signs, strict=True):
            before = model.producers.get(name)
            if before and model.only_reader(name) and self._adds(model, before):
                more, deeper = self._terms(model, before, each)
                terms += more
                inner |= {name} | deeper
            else:
                terms.append(Term(each, name))
        return terms, inner

    def _merged(
        self, model: FloatModel, terms: list[Term]
    ) -> tuple[list[Term], list[Kernel], set[str]]:
        """Terms that stay, kernels in place of the others, and convolutions that these replace."""
        branches = [(term, self._kernel(model, term)) for term in terms]
        branches.sort(key=lambda branch: branch[1].room, reverse=True)
        stay, kernels, replaced = [], [], set()
        while branches:
            (first, kernel), *others = branches
            branches, merged = [], [first]
            for term, other in others:
                joined = kernel.joined(other)
                if joined is None:
                    branches.append((term, other))
                else:
                    kernel = joined
                    merged.append(term)
            if len(merged) == 1:
                stay.append(first)
            else:
                kernels.append(kernel)
                replaced |= {term.name for term in merged} - {kernel.x}
        return stay, kernels, replaced

    def _kernel(self, model: FloatModel, term: Term) -> Kernel:
        """The convolution that computes ``term``, if nothing else reads it; or 1 times it."""
        node = model.producers.get(term.name)
        if (
            node is None
            or node.kind != "Conv"
            or model.only_reader(term.name) is None
            or node.text("auto_pad", "NOTSET") != "NOTSET"
            or any(name not in model.constants for name in node.inputs[1:] if name)
        ):
            shape = self.shapes[term.name]
            ones = np.full((shape[1], *(1,) * (len(shape) - 1)), float(term.sign))
            return Kernel(term.name, ones, np.zeros(shape[1]), shape[1], None)
        weights = model.constants[node.inputs[1]].astype(np.float64)
        bias = model.constants[node.inputs[2]] if node.has(2) else np.zeros(len(weights))
        groups = node.integer("group", 1)
        return Kernel(node.inputs[0], weights * term.sign, bias * term.sign, groups, node)


def _convolution(kernel: Kernel, result: str, constants: dict[str, Array]) -> OnnxNode:
    """The Conv of ``kernel``; its weights and bias are added to ``constants``."""
    assert kernel.node is not None
    names = f"{result}/weights", f"{result}/bias"
    constants[names[0]] = kernel.weights.astype(np.float32)
    constants[names[1]] = kernel.bias.astype(np.float32)
    return replace(kernel.node, inputs=(kernel.x, *names), outputs=(result,))


def _sum(terms: list[Term], node: OnnxNode) -> list[OnnxNode]:
    """Nodes that add ``terms``, the first of which is not subtracted, in place of ``node``."""
    nodes: list[OnnxNode] = []
    total = terms[0].name
    for number, term in enumerate(terms[1:], start=2):
        result = node.outputs[0] if number == len(terms) else f"{node.outputs[0]}/sum{number}"
        kind = "Add" if term.sign > 0 else "Sub"
        nodes.append(OnnxNode(kind, node.name, (total, term.name), (result,), {}))
        total = result
    return nodes
