"""Models that show bugs found by mutants."""

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import CompilerError, ModelError, UnsupportedOperatorError
from dovetail.compiler.targets.cpu.executor.executor import Executor

NO_TYPE = 86


def test_an_element_type_that_there_is_not_is_refused() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[1, 2] x, float s, uint8 z) '
        "=> (uint8[1, 2] y) { y = QuantizeLinear (x, s, z) }"
    )
    model.graph.input[0].type.tensor_type.elem_type = NO_TYPE
    for target in ("cpu", "vta:tiny"):
        with pytest.raises(UnsupportedOperatorError, match="input 'x' has elements of type 86"):
            compile(model, target)


def test_an_output_of_no_type_is_refused() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[n] x) => (float[n] y) { y = Abs (x) }'
    )
    model.graph.output[0].type.tensor_type.elem_type = NO_TYPE
    with pytest.raises(ModelError, match="output 'y' has elements of type 86"):
        compile(model, "cpu")


def test_nothing_joined_with_nothing_is_nothing() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[2, 0] x, float[2, 0] y) => (float[k] z) '
        "{ a = Concat <axis = 1> (x, y) b = Transpose (a) z = ReduceSum <keepdims = 0> (b) }"
    )
    empty = np.zeros((2, 0), np.float32)
    assert Executor(model).run({"x": empty, "y": empty})["z"] == 0


def test_a_scan_of_more_inputs_than_it_has_is_refused() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[2] h, float[3, 2] x) => (float[2] y) '
        "{ y = Scan <num_scan_inputs = 2147483648, body = b (float[2] s, float[2] t) "
        "=> (float[2] u) { u = Add (s, t) }> (h, x) }"
    )
    with pytest.raises(ModelError, match="num_scan_inputs is 2147483648; required 1 to 2"):
        compile(model, "cpu")


def test_a_graph_may_be_called_what_is_no_text() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> name (float[2, 2] x) => (int64[2, n] y) '
        "{ a = Relu (x) y = NonZero (a) }"
    )
    model.ParseFromString(model.SerializeToString().replace(b"name", b"n\xfeme"))
    with pytest.raises(CompilerError, match="compile it for cpu"):
        compile(model, "vta:tiny")


def test_a_tensor_larger_than_memory_takes_none() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> name (uint8[2] x) => (uint8[n] y) '
        "{ k = Constant <value = int64[1] {17179869184}> () y = Tile (x, k) }"
    )
    with pytest.raises(CompilerError, match="compile it for cpu"):
        compile(model, "vta:tiny")


@pytest.mark.parametrize("shape", ["0", "1, 0", "1, 0, 4, 4", "1, 3, 0, 2"])
def test_the_accelerator_refuses_what_has_no_elements(shape: str) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 18]> m (int64[{shape}] x) => (int64[n] y) '
        "{ y = ReduceSum (x) }"
    )
    with pytest.raises(CompilerError, match="compile it for cpu"):
        compile(model, "vta:tiny")
