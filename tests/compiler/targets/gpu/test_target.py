"""Models that the targets of GPUs take, and reasons for refusing the rest."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.compiler import compile
from dovetail.compiler.errors import ModelError, TargetError, UnsupportedOperatorError
from dovetail.runtime.device import Device
from dovetail.runtime.errors import DeviceError, ModuleError
from dovetail.runtime.gpu.part import GpuPart, Launch, Place, Space
from dovetail.runtime.session import Session


def model(*shape: int | str) -> onnx.ModelProto:
    """The absolute values of its input."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_an_open_batch_is_1_and_other_sizes_are_bound() -> None:
    (part,) = compile(model("batch", 4), "opencl").parts
    assert part.inputs[0].shape == (1, 4)
    with pytest.raises(ModelError, match=re.escape("opencl compiles for fixed sizes: bind them")):
        compile(model(1, "length"), "opencl")
    (part,) = compile(model(1, "length"), "opencl", dims={"length": 7}).parts
    assert part.inputs[0].shape == (1, 7)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("opencl:intel", "no target is called 'opencl:intel'; required opencl, or"),
        ("webgpu:intel", "no target is called 'webgpu:intel'; required webgpu"),
        ("cuda:sm_20", "no architecture is called 'sm_20'; there are: sm_80, sm_90a, sm_120a"),
    ],
)
def test_a_target_that_there_is_not_is_named(target: str, message: str) -> None:
    with pytest.raises(TargetError, match=re.escape(message)):
        compile(model(1, 4), target)


def test_what_wgsl_has_not_is_refused_by_the_name_of_its_node() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [4]) for name in ("x", "y")]
    node = helper.make_node("Abs", ["x"], ["y"], name="size")
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    message = "node 'size' (Unary) needs float64, which webgpu has not; compile for cpu"
    with pytest.raises(UnsupportedOperatorError, match=re.escape(message)):
        compile(made, "webgpu")


def test_a_shape_that_depends_on_data_is_compiled_as_it_runs() -> None:
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
        helper.make_tensor_value_info("y", TensorProto.INT64, None),
    ]
    nodes = [helper.make_node("NonZero", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    module = compile(made, "opencl")
    assert [part.target for part in module.parts] == ["cpu"]
    (found,) = Session(module).run(None, np.array([0, 2, 3], np.float32))
    np.testing.assert_array_equal(found, [[1, 2]])


def part_of(target: str = "opencl") -> GpuPart:
    (part,) = compile(model(1, 4), target).parts
    assert isinstance(part, GpuPart)
    return part


def test_a_device_runs_what_was_compiled_for_it(opencl: Device) -> None:
    with pytest.raises(DeviceError, match="'opencl' cannot run what was compiled for 'cuda'"):
        opencl.prepare(part_of("cuda"))
    with pytest.raises(DeviceError, match="no OpenCL device is called 'abacus'; there are: "):
        type(opencl)("abacus")  # type: ignore[call-arg]


def damaged(**changes: object) -> GpuPart:
    part = part_of()
    given = {name: getattr(part, name) for name in GpuPart.__slots__} | changes
    return GpuPart(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": (Launch(1, ()),)}, "a launch of kernel 1 of 1"),
        ({"steps": (Launch(0, (Place(Space.INPUT, 1, 0, ()),)),)}, "a place in input 1"),
        ({"memory_bytes": -1}, "kernels with -1 bytes"),
    ],
)
def test_a_damaged_part_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        damaged(**changes)
