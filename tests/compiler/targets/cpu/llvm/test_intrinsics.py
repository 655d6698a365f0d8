"""Dot products equal their declared meaning at every level of CPU, and become instructions."""

import re
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.expressions import Buffer, Constant, Scope, Variable, as_index
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import (
    Allocate,
    For,
    Function,
    Invoke,
    LoopKind,
    Region,
    Store,
    block,
    loops,
)
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.emitter import ModuleText
from dovetail.compiler.targets.cpu.llvm.functions import write_function
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS
from dovetail.compiler.targets.cpu.llvm.optimize import to_assembly
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget

from .kernels import require, values_of

LEVELS = ("x86-64", "avx2", "avx512", "avx512vnni", "native")
STEPS = 9


def product(name: str, *, spread: bool = False, register: bool = True) -> Function:
    """The sum of ``STEPS`` dot products; spread: b's elements lie apart."""
    a, b, c = INTRINSICS[name].parameters
    lanes, count = b.shape
    x = Buffer("x", (STEPS, *a.shape), a.dtype)
    y = Buffer("y", (STEPS, lanes, count + spread), b.dtype)
    z = Buffer("z", (lanes,), c.dtype)
    total = Buffer("total", (lanes,), c.dtype, Scope.REGISTER) if register else z
    s, i = Variable("s"), Variable("i")
    none = as_index(0)
    regions = (
        Region(x, (s, *(none for _ in a.shape)), (1, *a.shape)),
        Region(y, (s, none, none), (1, lanes, count)),
        Region(total, (none,), (lanes,)),
    )
    start = loops((("i", lanes),), Store(total, (i,), Constant(0, c.dtype)), LoopKind.VECTOR)
    sums = For("s", as_index(STEPS), LoopKind.SERIAL, Invoke(name, regions))
    if not register:
        return Function("product", (x, y), (z,), block(start, sums))
    end = loops((("i", lanes),), Store(z, (i,), total[i]), LoopKind.VECTOR)
    return Function("product", (x, y), (z,), Allocate(total, block(start, sums, end)))


def operands(function: Function) -> dict[str, np.ndarray]:
    arrays = {}
    for seed, buffer in enumerate(function.inputs):
        values = values_of(buffer.dtype, buffer.elements, seed)
        if buffer.dtype.is_float:
            values = (np.arange(buffer.elements) % 23 - 11).astype(buffer.dtype.numpy)
        arrays[buffer.name] = values.reshape(buffer.shape)
    return arrays


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "name", [name for name in sorted(INTRINSICS) if name.startswith(("dot", "columns"))]
)
def test_a_dot_product_equals_its_meaning(name: str, level: str) -> None:
    require(level)
    for function in (product(name), product(name, register=False), product(name, spread=True)):
        arrays = operands(function)
        expected = interpret(function, arrays, intrinsics=INTRINSICS)["z"]
        found = compile_functions([function], LlvmOptions(level)).run("product", arrays)[0]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize("count", [3, 4])
def test_columns_become_rows(level: str, apart: int, count: int) -> None:
    require(level)
    *columns, rows = INTRINSICS[f"interleave_uint8_16x{count}"].parameters
    y = Buffer("y", (rows.shape[0] + 1, rows.shape[1] + apart), rows.dtype)
    none = as_index(0)
    regions = [Region(each, (none,), each.shape) for each in columns]
    regions.append(Region(y, (as_index(1), none), rows.shape))
    i, j = Variable("i"), Variable("j")
    body = block(
        loops((("i", y.shape[0]), ("j", y.shape[1])), Store(y, (i, j), Constant(9, y.dtype))),
        Invoke(f"interleave_uint8_16x{count}", tuple(regions)),
    )
    function = Function("rows", tuple(columns), (y,), body)
    given = [values_of(each.dtype, each.elements, n) for n, each in enumerate(columns)]
    (found,) = compile_functions([function], LlvmOptions(level)).run("rows", given)
    np.testing.assert_array_equal(found[1:, :count], np.stack(given, 1))
    assert np.all(found[0] == 9)
    assert np.all(found[:, count:] == 9)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("apart", [False, True])
def test_vectors_are_packed_within_the_limits_of_bytes(level: str, apart: bool) -> None:
    require(level)
    *vectors, rows = INTRINSICS["pack_uint8_16"].parameters
    shape = (5, 3, 16) if apart else (6, 16)
    y, none = Buffer("y", shape, rows.dtype), as_index(0)
    regions = [Region(each, (none,), each.shape) for each in vectors]
    start = (as_index(1), as_index(2), none) if apart else (as_index(1), none)
    regions.append(Region(y, start, (4, 1, 16) if apart else (4, 16)))
    names = tuple((f"i{n}", size) for n, size in enumerate(shape))
    fill = loops(names, Store(y, tuple(Variable(name) for name, _ in names), Constant(9, y.dtype)))
    body = block(fill, Invoke("pack_uint8_16", tuple(regions)))
    function = Function("rows", tuple(vectors), (y,), body)
    edges = np.array([-(2**31), -32769, -1, 0, 1, 127, 128, 255, 256, 32767, 32768, 2**31 - 1])
    given = [np.resize(np.roll(edges, n), 16).astype(np.int32) for n in range(4)]
    (found,) = compile_functions([function], LlvmOptions(level)).run("rows", given)
    inside = found[1:5, 2] if apart else found[1:5]
    np.testing.assert_array_equal(inside, np.clip(np.stack(given), 0, 255))
    assert np.count_nonzero(found == 9) >= found.size - 64


@pytest.mark.parametrize(
    ("name", "level", "instruction"),
    [
        ("dot_uint8_int8_16", "avx512vnni", "vpdpbusd"),
        ("dot_uint8_int8_8", "avx512vnni", "vpdpbusd"),
        ("dot_int8_int8_16", "avx512vnni", "vpdpbusd"),
        ("dot_uint8_int8_16", "avx512", "vpmaddwd"),
        ("dot_uint8_int8_16", "avx2", "vpmaddwd"),
        ("columns_uint8_int8_16", "avx512vnni", "vpdpbusd"),
        ("columns_uint8_int8_16", "avx512", "vpmaddwd"),
        ("dot_int16_int16_16", "avx512vnni", "vpdpwssd"),
        ("dot_int16_int16_8", "avx2", "vpmaddwd"),
        ("dot_int16_int16_8", "x86-64", "pmaddwd"),
        ("dot_uint8_int8_8", "avx2+avxvnni", "{vex} vpdpbusd"),
        ("dot_bfloat16_bfloat16_16", "avx512+avx512bf16", "vdpbf16ps"),
        ("dot_bfloat16_bfloat16_8", "avx2", "vfmadd"),
    ],
)
def test_a_dot_product_is_the_cpus_instruction(name: str, level: str, instruction: str) -> None:
    base, *more = level.split("+")
    target = CpuTarget.at_level(base)
    target = replace(target, features=target.features | set(more))
    module = ModuleText(target)
    signature = write_function(module, product(name), "kernel")
    text = to_assembly(module.text(), target, signature.effort)
    assert instruction in re.sub(r"\s+", " ", text)


def test_an_unknown_intrinsic_and_wrong_operands_are_refused() -> None:
    z = Buffer("z", (16,), DType.INT32)
    region = Region(z, (as_index(0),), (16,))
    with pytest.raises(GraphError, match="no intrinsic matmul; known are dot_uint8_int8_4"):
        compile_functions([Function("f", (), (z,), Invoke("matmul", (region,)))])
    with pytest.raises(GraphError, match="found 1 operands; required 3"):
        compile_functions([Function("f", (), (z,), Invoke("dot_int8_int8_16", (region,)))])
