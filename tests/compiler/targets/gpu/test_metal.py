"""Kernels in Metal's language.  No compiler for it is here: C++ with Metal's words and functions
checks their types, and computes kernels without barriers.
"""

import ctypes
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.cli.export.folder import METAL_FILES, write_metal
from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.targets.gpu.target import METAL
from dovetail.runtime.gpu.part import GpuPart, KernelEntry, Launch
from dovetail.runtime.gpu.run import Prepared, ReadyPart

Array = NDArray[Any]
COMPILER = shutil.which("c++") or shutil.which("g++")
WORDS = """\
#include <cmath>
#include <cstring>
typedef unsigned char uchar; typedef unsigned short ushort;
typedef unsigned int uint; typedef unsigned long ulong;
#define kernel extern "C"
#define device
#define threadgroup static
#define thread this is a word of its own
#define constant this is one too
namespace metal {
using std::isnan; using std::isinf; using std::fma; using std::exp; using std::rint;
using std::sqrt; using std::fabs; using std::floor;
enum class mem_flags { mem_device = 1, mem_threadgroup = 2 };
inline mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
inline void threadgroup_barrier(mem_flags) {}
template <class T, class S> T as_type(S a) {
  static_assert(sizeof(T) == sizeof(S)); T r; std::memcpy(&r, &a, sizeof r); return r;
}
}
"""
"""Words of Metal that C++ lacks; its attributes and pragmas are unknown ones to C++."""


def compiled(source: str, folder: Path, only_check: bool = False) -> Path:
    """The library of a source."""
    assert source.startswith("#include <metal_stdlib>\n")
    path = folder / "kernels.cpp"
    path.write_text(source.replace("#include <metal_stdlib>\n", WORDS, 1))
    known = ["-Wall", "-Wextra", "-Werror"]
    known += [
        f"-Wno-{each}"
        for each in ("attributes", "unknown-pragmas", "unused-parameter", "unused-variable")
    ]
    kind = ["-fsyntax-only"] if only_check else ["-O0", "-shared", "-fPIC"]
    library = folder / "kernels.so"
    command = [str(COMPILER), "-std=c++17", *known, *kind, str(path), "-o", str(library)]
    subprocess.run(command, check=True, timeout=60)
    return library


class CppMachine:
    """See ``Machine``: blocks and threads one after the other, so that none may wait."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def compile(self, part: GpuPart) -> list[Any]:
        source = bytes(part.source).decode()
        assert "threadgroup_barrier" not in source
        library = ctypes.CDLL(str(compiled(source, self.folder)))
        return [getattr(library, each.name) for each in part.kernels]

    def allocate(self, size: int) -> Array:
        return np.zeros(size, np.uint8)

    def write(self, memory: Array, offset: int, array: Array) -> None:
        memory[offset : offset + array.size] = array

    def read(self, memory: Array, offset: int, array: Array) -> None:
        array[:] = memory[offset : offset + array.size]

    def launch(self, kernel: Any, entry: KernelEntry, places: Sequence[tuple[Array, int]]) -> None:
        given = [ctypes.c_void_p(memory.ctypes.data + offset) for memory, offset in places]
        for block in range(entry.blocks):
            for thread in range(entry.threads):
                kernel(*given, ctypes.c_uint(block), ctypes.c_uint(thread))

    def gather(self, launches: Sequence[Prepared]) -> None:
        pass


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_kernels_compute_what_numpy_does_in_floats_and_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((12, 5)).astype(np.float32)
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["f"], ["g"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["g", "w"], ["a"]),
        helper.make_node("Exp", ["a"], ["y"]),
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["q"]),
    ]
    constants = [
        numpy_helper.from_array(np.asarray(each), name)
        for name, each in (("w", weights), ("s", np.float32(0.5)), ("z", np.int8(-9)))
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [7, 12])],
        [value("y", TensorProto.FLOAT, [7, 5]), value("q", TensorProto.INT8, [7, 5])],
        constants,
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (part,) = compile(model, METAL).parts
    assert isinstance(part, GpuPart)
    x = rng.standard_normal((7, 12)).astype(np.float32)
    found = ReadyPart("metal", CppMachine(tmp_path), part).run({"x": x}).outputs
    want = np.exp(x.astype(np.float16).astype(float) @ weights)
    np.testing.assert_allclose(found["y"], want, rtol=1e-5)
    quantised = np.clip(np.rint(found["y"] / np.float32(0.5)) - 9, -128, 127)
    np.testing.assert_array_equal(found["q"], quantised)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_a_product_in_shared_memory_is_typed_and_waits(tmp_path: Path) -> None:
    names, shape = ("x", "w", "y"), (64, 64)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", ends[:2], ends[2:])
    opsets = [helper.make_opsetid("", 17)]
    module = compile(helper.make_model(graph, opset_imports=opsets, ir_version=8), METAL)
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    write_metal(part, tmp_path / "metal", "product")
    assert {each.name for each in (tmp_path / "metal").iterdir()} == set(METAL_FILES)
    source = (tmp_path / "metal" / "model.metal").read_text()
    compiled(source, tmp_path, only_check=True)
    assert source.count("  threadgroup float ") == 2
    assert "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);" in source
    manifest = json.loads((tmp_path / "metal" / "manifest.json").read_text())
    (entry,) = part.kernels
    assert manifest["kernels"] == [
        {"name": entry.name, "blocks": entry.blocks, "threads": entry.threads}
    ]
    (step,) = manifest["steps"]
    assert isinstance(part.steps[0], Launch)
    inputs, outputs = (
        {each["name"]: each["at"] for each in manifest[kind]} for kind in ("inputs", "outputs")
    )
    assert [each["at"] for each in step["places"]] == [inputs["x"], inputs["w"], outputs["y"]]


def test_float64_is_refused_by_the_nodes_name() -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [8]) for name in "xy"]
    node = helper.make_node("Relu", ["x"], ["y"], name="half")
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(UnsupportedOperatorError, match=r"'half'.*needs float64, which metal has"):
        compile(model, METAL)
