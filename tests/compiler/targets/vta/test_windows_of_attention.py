"""Attention in shifted windows, as in Swin: rolls, windows, biases of heads, masks of windows."""

from collections import Counter

import numpy as np
import onnx
import onnxruntime
from networks.rows import RowBuilder
from onnx import TensorProto, helper

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d
from dovetail.compiler.graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.move_pixels import MovePixels
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import AcceleratorPart
from tests.kept_costs import check_costs

from .test_parts import assert_exact, compiled

SIDE, WINDOW, WIDTH, HEADS = 4, 2, 8, 1
COUNT, ROWS = (SIDE // WINDOW) ** 2, WINDOW**2


class SwinBuilder(RowBuilder):
    """Layers of images with their channels last."""

    def shaped(self, x: str, *shape: int) -> str:
        """Reshape."""
        return self.node("Reshape", x, self.constant(np.array(shape)))

    def part(self, x: str, axis: int, start: int, end: int) -> str:
        """Slice along one axis."""
        limits = (self.constant(np.array([number])) for number in (start, end, axis))
        return self.node("Slice", x, *limits)

    def rolled(self, x: str, by: int) -> str:
        """Pixels from ``by`` on, and then those before, along rows and columns."""
        for axis in (1, 2):
            parts = self.part(x, axis, by, 1 << 30), self.part(x, axis, 0, by)
            x = self.node("Concat", *parts, axis=axis)
        return x

    def windows(self, x: str) -> str:
        """[COUNT, ROWS, WIDTH]."""
        each = SIDE // WINDOW
        x = self.shaped(x, 1, each, WINDOW, each, WINDOW, WIDTH)
        return self.shaped(self.node("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), -1, ROWS, WIDTH)

    def image(self, x: str) -> str:
        """Windows back where they were."""
        each = SIDE // WINDOW
        x = self.shaped(x, 1, each, each, WINDOW, WINDOW, WIDTH)
        x = self.node("Transpose", x, perm=[0, 1, 3, 2, 4, 5])
        return self.shaped(x, 1, SIDE, SIDE, WIDTH)

    def scored(self, x: str) -> str:
        """Attention with a bias for each head, and a mask for each window."""
        x = self.shaped(self.dense(x, WIDTH, 3 * WIDTH), COUNT, ROWS, 3, HEADS, WIDTH // HEADS)
        x = self.node("Transpose", x, perm=[2, 0, 3, 1, 4])
        q, k, v = (self.node("Gather", x, self.constant(np.array(n)), axis=0) for n in range(3))
        q = self.node("Mul", q, self.scalar((WIDTH / HEADS) ** -0.5))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Add", scores, self.constant(self.normal(0.5, 1, HEADS, ROWS, ROWS)))
        far = np.arange(COUNT)[:, None, None] * np.eye(ROWS) > 1
        mask = self.constant(np.where(far, -20, 0).astype(np.float32)[None, :, None])
        scores = self.node("Add", self.shaped(scores, 1, COUNT, HEADS, ROWS, ROWS), mask)
        shares = self.node("Softmax", self.shaped(scores, COUNT, HEADS, ROWS, ROWS), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", shares, v), perm=[0, 2, 1, 3])
        return self.dense(self.shaped(mixed, COUNT, ROWS, WIDTH), WIDTH, WIDTH)


def swin_block() -> onnx.ModelProto:
    """Patches of 2x2, one block of shifted windows, and what it was added to."""
    net = SwinBuilder(ROWS, WIDTH, HEADS, 0, 1e-5)
    patches = net.node("Conv", "x", net.constant(net.normal(0.3, WIDTH, 3, 2, 2)), strides=[2, 2])
    image = net.node("Transpose", patches, perm=[0, 2, 3, 1])
    windows = net.windows(net.rolled(net.normalized(image), 1))
    found = net.node("Add", image, net.rolled(net.image(net.scored(windows)), SIDE - 1))
    result = net.dense(net.node("ReduceMean", found, axes=[1, 2], keepdims=0), WIDTH, 4)
    kinds = [("x", (1, 3, 2 * SIDE, 2 * SIDE)), ("y", (1, 4))]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in kinds)
    return net.model("swin", [x], [result], [y])


def test_a_block_of_shifted_windows_is_one_launch() -> None:
    rng = np.random.default_rng(1)
    samples = [{"x": rng.normal(size=(1, 3, 8, 8)).astype(np.float32)} for _ in range(4)]
    model = quantize_model(swin_block(), samples).model
    module = compile(model, "vta:tiny")
    assert [part.target for part in module.parts] == ["vta:tiny"]
    (part,) = module.parts
    assert isinstance(part, AcceleratorPart)
    kinds = Counter(layer.kind for layer in part.layers)
    # All windows have one softmax and one table, and what is multiplied is read where it lies.
    assert (kinds["RowSoftmax"], kinds["Lookup"]) == (1, 1)
    check_costs(module.parts)
    own, simulated = (
        run(each, samples[0], device).outputs["y"]
        for each, device in ((compile(model, "cpu"), "cpu"), (module, "sim"))
    )
    np.testing.assert_array_equal(own, simulated)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, samples[0])
    assert np.abs(own - wanted).max() <= 0.05 * np.abs(wanted).max()


def test_a_roll_and_windows_are_one_movement() -> None:
    """Each pixel is copied once."""
    by = 3
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 4, 4, 8), "int8"))
    x = builder.node(MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0)), (x,), "x", "x")
    for axis in (1, 2):
        parts = []
        for start, count in ((by, 4 - by), (0, by)):
            starts, shape = [0] * 4, [1, 4, 4, 8]
            starts[axis], shape[axis] = start, count
            cut = Slice(tuple(starts), (1, 1, 1, 1), tuple(shape))
            parts.append(builder.node(cut, (x,), "part", "roll"))
        x = builder.node(Concatenate(axis), tuple(parts), "rolled", "roll")
    x = builder.node(Reshape((1, 2, 2, 2, 2, 8)), (x,), "split", "windows")
    x = builder.node(Transpose((0, 1, 3, 2, 4, 5)), (x,), "turned", "windows")
    x = builder.node(Reshape((1, 1, 16, 8)), (x,), "rows", "windows")
    x = builder.node(MaxPool2d((1, 2), (1, 2), (0, 0, 0, 0)), (x,), "y", "pool")
    graph = builder.build((x,))
    moved = MovePixels().run(graph)
    copies = [moved.types[n.output] for n in moved.nodes if isinstance(n.operator, AveragePool2d)]
    assert sum(kind.elements for kind in copies) == 4 * 4 * 8
    assert_exact(graph, compiled(graph, "tiny"), "sim")
