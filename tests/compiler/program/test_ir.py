"""Programs: in this process, and as a shared library called from C."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import CompilerError, GraphError
from dovetail.compiler.loops.expressions import (
    BinaryFunction,
    Buffer,
    Constant,
    Variable,
    as_index,
)
from dovetail.compiler.loops.ir import For, Function, LoopKind, Store, Update, block, loops
from dovetail.compiler.program.ir import Call, Operand, Origin, Place, Program
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_program
from dovetail.compiler.targets.cpu.llvm.library import header_text, write_library

M, K, N = 5, 7, 6
F = DType.FLOAT32


def matmul() -> Function:
    a, b, c = Buffer("a", (M, K), F), Buffer("b", (K, N), F), Buffer("c", (M, N), F)
    i, j, k = (Variable(name) for name in "ijk")
    total = loops((("j", N), ("k", K)), Update(c, (i, j), BinaryFunction.ADD, a[i, k] * b[k, j]))
    zero = loops((("j", N),), Store(c, (i, j), Constant(0.0, F)))
    body = For("i", as_index(M), LoopKind.PARALLEL, block(zero, total))
    return Function("matmul", (a, b), (c,), body)


def relu() -> Function:
    x, y = Buffer("x", (M, N), F), Buffer("y", (M, N), F)
    at = (Variable("i"), Variable("j"))
    value = Store(y, at, x[at] * 2.0)
    return Function("double", (x,), (y,), loops((("i", M), ("j", N)), value))


def program() -> Program:
    """``out = 4 (x @ w)``: through memory, through an output read back."""
    weights = np.arange(K * N, dtype=np.float32).reshape(K, N)
    x, w = Operand("x", Place(Origin.INPUT)), Operand("w", Place(Origin.CONSTANT))
    product = Operand("product", Place(Origin.MEMORY, 0, 64))
    half, out = (Operand(name, Place(Origin.OUTPUT, n)) for n, name in enumerate(("half", "out")))
    calls = (
        Call("matmul", (x, w, product), ("node",)),
        Call("double", (product, half)),
        Call("double", (half, out)),
    )
    outputs = (Buffer("half", (M, N), F), Buffer("out", (M, N), F))
    return Program(
        (matmul(), relu()),
        calls,
        (Buffer("x", (M, K), F),),
        outputs,
        {"w": weights},
        64 + M * N * 4,
    )


def example() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(2).integers(-3, 4, (M, K)).astype(np.float32)
    return x, 4 * (x @ np.arange(K * N, dtype=np.float32).reshape(K, N))


@pytest.mark.parametrize("threads", [1, 3])
def test_calls_run_in_order(threads: int) -> None:
    x, expected = example()
    code = compile_program(program(), LlvmOptions(threads=threads))
    for _ in range(5):
        half, out = code.run({"x": x})
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(half, expected / 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_shared_library_runs_from_c(tmp_path: Path, threads: int) -> None:
    x, expected = example()
    library, header = write_library(program(), tmp_path / "libnet.so", LlvmOptions(threads=threads))
    source = tmp_path / "main.c"
    source.write_text(
        f'#include "{header.name}"\n#include <stdio.h>\n'
        "static float x[35], half[30], out[30];\n"
        "int main(void) {\n"
        "  const void *in[] = {x}; void *o[] = {half, out};\n"
        "  if (fread(x, 4, 35, stdin) != 35) return 2;\n"
        "  if (net_memory_bytes() < 64) return 3;\n"
        "  int error = net_run(0, in, o);\n"
        "  fwrite(out, 4, 30, stdout); return error;\n}\n"
    )
    command = ["gcc", "-Wall", "-Werror", str(source), str(library), "-o", str(tmp_path / "main")]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [tmp_path / "main"],
        input=x.tobytes(),
        capture_output=True,
        check=True,
        env={"LD_LIBRARY_PATH": str(tmp_path)},
    )
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.float32).reshape(M, N), expected)


def test_a_shared_library_takes_memory_from_its_caller(tmp_path: Path) -> None:
    x, expected = example()
    library = ctypes.CDLL(str(write_library(program(), tmp_path / "net.so")[0]))
    library.net_memory_bytes.restype = ctypes.c_int64
    memory = np.zeros(library.net_memory_bytes() + 64, np.uint8)
    start = -memory.ctypes.data % 64
    results = [np.empty((M, N), np.float32) for _ in range(2)]
    pointers = (ctypes.c_void_p * 2)(*[array.ctypes.data for array in results])
    given = (ctypes.c_void_p * 1)(x.ctypes.data)
    assert library.net_run(ctypes.c_void_p(memory.ctypes.data + start), given, pointers) == 0
    np.testing.assert_array_equal(results[1], expected)


def test_the_header_names_what_goes_in_and_out() -> None:
    text = header_text(program(), "net")
    assert "0: x, float32 [5, 7]" in text
    assert "1: out, float32 [5, 6]" in text


def test_a_library_is_called_by_a_name_of_c(tmp_path: Path) -> None:
    with pytest.raises(CompilerError, match="required letters, digits and underscores"):
        write_library(program(), tmp_path / "my-net.so")


def test_a_call_must_be_of_the_programs_functions_and_places() -> None:
    good = program()
    with pytest.raises(GraphError, match="call of other; the program has"):
        Program(good.functions, (Call("other", ()),), good.inputs, good.outputs, {}, 0)
    short = (Call("double", (Operand("x", Place(Origin.INPUT)),)),)
    with pytest.raises(GraphError, match="1 arguments; required 2"):
        Program(good.functions, short, good.inputs, good.outputs, {}, 0)
    out = Operand("out", Place(Origin.OUTPUT))
    absent = (Call("double", (Operand("b", Place(Origin.INPUT, 1)), out)),)
    with pytest.raises(GraphError, match="b is in input 1; the program has 1"):
        Program(good.functions, absent, good.inputs, good.outputs, {}, 0)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no such target >&2; exit 1", "could not link net.so:\nno such target"),
        ("kill -9 $$", "could not link net.so"),
        (None, "a shared library needs a C compiler to link; found no cc, gcc or clang"),
    ],
)
def test_a_c_compiler_that_fails_leaves_no_library(
    script: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    if script is not None:
        (tmp_path / "bin" / "cc").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(CompilerError, match=message):
        write_library(program(), tmp_path / "net.so")
    assert [each.name for each in tmp_path.iterdir()] == ["bin"]
