"""Matrix products by constant matrices: first all are Gemm, so that what follows folds into them;
then they are the operators that ONNX has for each rank.
"""

from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from ..node import OnnxNode
from .model import FloatModel

__all__ = ["LowerDense", "MergeTransposes", "NormalizeDense"]

TO_IMAGE, FROM_IMAGE = [0, 3, 1, 2], [0, 2, 3, 1]


@frozen
class NormalizeDense:
    """MatMul by a constant matrix -> Gemm; every Gemm -> transB 1, alpha 1, beta 1.

    A Gemm of more than two dimensions is none of ONNX's: ``LowerDense`` must follow.
    ``shapes``: of every tensor.
    """

    shapes: dict[str, tuple[int, ...]]
    name: str = "normalize_dense"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        constants: dict[str, Array] = {}
        nodes = []
        for node in model.nodes:
            rewritten = self._dense(model, node)
            if rewritten is None:
                nodes.append(node)
            else:
                nodes.append(rewritten[0])
                constants |= rewritten[1]
        return model.with_nodes(nodes, constants) if constants else model

    def _dense(self, model: FloatModel, node: OnnxNode) -> tuple[OnnxNode, dict[str, Array]] | None:
        if node.kind not in ("Gemm", "MatMul") or node.integer("transA", 0):
            return None
        weights = model.constants.get(node.inputs[1])
        if weights is None or weights.ndim != 2 or len(self.shapes[node.inputs[0]]) < 2:
            return None
        if node.inputs[0] in model.constants:
            return None
        alpha, beta = (np.float32(node.real(each, 1.0)) for each in ("alpha", "beta"))
        transposed = node.integer("transB", 0)
        if node.kind == "Gemm" and transposed and alpha == beta == 1:
            return None
        name = f"{node.outputs[0]}/weights"
        constants = {name: np.ascontiguousarray(weights if transposed else weights.T) * alpha}
        inputs = [node.inputs[0], name]
        if node.has(2):
            bias = model.constants.get(node.inputs[2])
            if bias is None:
                return None
            constants[f"{node.outputs[0]}/bias"] = bias * beta
            inputs.append(f"{node.outputs[0]}/bias")
        gemm = OnnxNode("Gemm", node.name, tuple(inputs), node.outputs, {"transB": 1})
        return gemm, constants


@frozen
class LowerDense:
    """Gemm of four dimensions -> 1x1 Conv between two Transposes, which neighbours may undo;
    of three or more than four -> Reshape, Gemm, Reshape.

    ``shapes``: of every tensor.
    """

    shapes: dict[str, tuple[int, ...]]
    name: str = "lower_dense"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        nodes: list[OnnxNode] = []
        constants: dict[str, Array] = {}
        for node in model.nodes:
            rank = len(self.shapes[node.inputs[0]]) if node.kind == "Gemm" else 2
            if rank == 2:
                nodes.append(node)
                continue
            lower = self._convolution if rank == 4 else self._flattened
            more, added = lower(model, node)
            nodes += more
            constants |= added
        return model.with_nodes(nodes, constants) if constants else model

    def _convolution(
        self, model: FloatModel, node: OnnxNode
    ) -> tuple[list[OnnxNode], dict[str, Array]]:
        out = node.outputs[0]
        image, sums, weights = (f"{out}/{each}" for each in ("image", "sums", "kernel"))
        matrix = model.constants[node.inputs[1]]
        constants = {weights: matrix[:, :, None, None]}
        names = [image, weights]
        if node.has(2):
            given = model.constants[node.inputs[2]].reshape(-1)
            names.append(f"{out}/shift")
            constants[names[-1]] = np.broadcast_to(given, len(matrix)).copy()
        conv = OnnxNode("Conv", node.name, tuple(names), (sums,), {"kernel_shape": [1, 1]})
        before = _transpose(node.inputs[0], image, TO_IMAGE)
        return [before, conv, _transpose(sums, out, FROM_IMAGE)], constants

    def _flattened(
        self, model: FloatModel, node: OnnxNode
    ) -> tuple[list[OnnxNode], dict[str, Array]]:
        x, out = node.inputs[0], node.outputs[0]
        rows, sums = f"{out}/rows", f"{out}/sums"
        shape = self.shapes[x]
        count = model.constants[node.inputs[1]].shape[0]
        constants = {
            f"{rows}/shape": np.array([-1, shape[-1]]),
            f"{sums}/shape": np.array([*shape[:-1], count]),
        }
        gemm = replace(node, inputs=(rows, *node.inputs[1:]), outputs=(sums,))
        return [_reshape(x, rows, f"{rows}/shape"), gemm, _reshape(sums, out, f"{sums}/shape")], (
            constants
        )


@frozen
class MergeTransposes:
    """Transpose of a Transpose -> one, or Identity."""

    name: str = "merge_transposes"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        current = dict(model.producers)
        nodes = []
        for node in model.nodes:
            before = current.get(node.inputs[0]) if node.kind == "Transpose" else None
            if before is not None and before.kind == "Transpose":
                first = before.integers("perm", ())
                order = [first[axis] for axis in node.integers("perm", ())]
                kind = "Transpose" if order != sorted(order) else "Identity"
                attributes = {"perm": order} if kind == "Transpose" else {}
                node = replace(node, kind=kind, inputs=before.inputs, attributes=attributes)
                current[node.outputs[0]] = node
            nodes.append(node)
        return model if nodes == list(model.nodes) else model.with_nodes(nodes)


def _transpose(x: str, out: str, order: list[int]) -> OnnxNode:
    return OnnxNode("Transpose", f"{out}:Transpose", (x,), (out,), {"perm": order})


def _reshape(x: str, out: str, shape: str) -> OnnxNode:
    return OnnxNode("Reshape", f"{out}:Reshape", (x, shape), (out,), {})
