"""Rows of tables of bytes, by indices that are computed: embeddings."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.indexing import Gather
from dovetail.compiler.graph.passes.integer_layers.recognition import recognise

from .models import F32, ModelBuilder, reference

TOKENS = np.array([[3, 0, -1, 6, 3]])


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("scales", [1, 2])
def test_the_table_stays_bytes(kind: type, scales: int) -> None:
    limits = np.iinfo(kind)
    table = np.random.default_rng(1).integers(limits.min, limits.max + 1, (7, 4), kind)
    b = ModelBuilder()
    scale, zero = np.array([0.5, 0.25, 1, 2][:4], F32), np.zeros(4, kind)
    if scales == 1:
        scale, zero = F32(0.5), kind(3)
    stored = b.dequantize(b.constant(table), scale, zero, axis=1)
    words = b.quantize(b.node("Gather", [stored, "ids"], axis=0), 0.5, kind(3))
    model = b.build({"x": ("int8", (1, 1))}, words, np.dtype(kind).name)
    model.graph.input[0].CopyFrom(
        helper.make_tensor_value_info("ids", TensorProto.INT64, TOKENS.shape)
    )
    graph = recognise(SourceModel.of(model).to_graph(batch=1).graph).graph
    given = {"ids": TOKENS}
    np.testing.assert_array_equal(run(graph, given)[words], reference(model, given))
    picked = [node for node in graph.nodes if isinstance(node.operator, Gather)]
    stored_as = {graph.types[node.inputs[0]].dtype for node in picked}
    assert stored_as == {"int8" if scales == 1 else "float32"}
