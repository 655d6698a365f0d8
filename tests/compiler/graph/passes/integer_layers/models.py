"""Small quantised ONNX models, and ONNX Runtime's results for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from dovetail.compiler.front import integer
from dovetail.compiler.front.onnx.source import ModelSource
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.passes.simplify import simplify
from dovetail.compiler.graph.verify import verify

Array = NDArray[Any]
F32 = np.float32
ELEMENT_TYPES = {
    name: helper.np_dtype_to_tensor_dtype(np.dtype(name))
    for name in ("int8", "uint8", "int32", "float32")
}


@dataclass
class ModelBuilder:
    """Collects nodes and constants; tensors are float between ``dequantize`` and ``quantize``."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    count: int = 0

    def name(self, stem: str) -> str:
        """A fresh name."""
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, value: Any, stem: str = "c") -> str:
        """An initializer."""
        name = self.name(stem)
        self.constants[name] = np.asarray(value)
        return name

    def node(self, kind: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        """A node; its output and its own name are alike."""
        output = self.name(kind.lower())
        self.nodes.append(
            helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes)
        )
        return output

    def dequantize(self, x: str, scale: Any, zero_point: Any, **attributes: Any) -> str:
        """DequantizeLinear."""
        inputs = [x, self.constant(np.asarray(scale, F32)), self.constant(zero_point)]
        return self.node("DequantizeLinear", inputs, **attributes)

    def quantize(self, x: str, scale: Any, zero_point: Any) -> str:
        """QuantizeLinear."""
        inputs = [x, self.constant(np.asarray(scale, F32)), self.constant(zero_point)]
        return self.node("QuantizeLinear", inputs)

    def build(
        self,
        inputs: Mapping[str, tuple[str, Sequence[int | str]]],
        output: str,
        dtype: str = "int8",
        opset: int = 13,
    ) -> onnx.ModelProto:
        """The model.  inputs: element type and shape by name."""
        graph = helper.make_graph(
            self.nodes,
            "test",
            [
                helper.make_tensor_value_info(name, ELEMENT_TYPES[kind], shape)
                for name, (kind, shape) in inputs.items()
            ],
            [helper.make_tensor_value_info(output, ELEMENT_TYPES[dtype], None)],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 8
        return model


def integer_graph(model: ModelSource) -> Graph:
    """The integer layers that a model consists of."""
    return integer.integer_graph(open_model(model))


def reference(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> Array:
    """ONNX Runtime's first output."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(inputs))[0]


def check(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> Array:
    """Hold the imported and the simplified graph to ONNX Runtime; return the output."""
    wanted = reference(model, inputs)
    graph = integer_graph(model)
    known = {name for each in model.graph.node for name in (each.name, *each.output)}
    known |= {each.name for each in model.graph.input}
    for each in (graph, simplify(graph)):
        verify(each)
        assert {node.origin for node in each.nodes} <= known, "messages name what the model has"
        result = run(each, inputs)[each.outputs[0]]
        assert each.outputs == tuple(output.name for output in model.graph.output)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)
    return wanted
