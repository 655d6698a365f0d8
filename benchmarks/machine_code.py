"""Speed of generated code on one core: a register-blocked matrix kernel, elementary functions.

``python benchmarks/machine_code.py [--level LEVEL]``: GFLOP/s, nanoseconds an element, and
milliseconds to compile; the best of several runs.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import (
    BinaryFunction,
    Buffer,
    Constant,
    Scope,
    Unary,
    UnaryFunction,
    Variable,
    as_index,
)
from dovetail.compiler.loops.ir import (
    Allocate,
    For,
    Function,
    LoopKind,
    Stmt,
    Store,
    Update,
    block,
    loops,
)
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions

F = DType.FLOAT32
TILES, DEPTH = 100, 512
ELEMENTS = 1 << 16


def matrix_kernel(rows: int, vectors: int, lanes: int) -> Function:
    """``c[t] = a.T @ b`` for every t: ``rows * vectors`` accumulators in registers."""
    columns = vectors * lanes
    a, b = Buffer("a", (DEPTH, rows), F), Buffer("b", (DEPTH, columns), F)
    c = Buffer("c", (TILES, rows, columns), F)
    total = Buffer("total", (rows, columns), F, Scope.REGISTER)
    t, r, v, lane, k = (Variable(name) for name in ("t", "r", "v", "lane", "k"))
    column = v * lanes + lane

    def tile(statement: Stmt) -> Stmt:
        inner = For("lane", as_index(lanes), LoopKind.VECTOR, statement)
        return loops((("r", rows), ("v", vectors)), inner, LoopKind.UNROLLED)

    step = Update(total, (r, column), BinaryFunction.ADD, a[k, r] * b[k, column])
    body = block(
        tile(Store(total, (r, column), Constant(0.0, F))),
        For("k", as_index(DEPTH), LoopKind.SERIAL, tile(step)),
        tile(Store(c, (t, r, column), total[r, column])),
    )
    outer = For("t", as_index(TILES), LoopKind.SERIAL, Allocate(total, body))
    return Function("kernel", (a, b), (c,), outer)


def elementary(function: UnaryFunction, dtype: DType) -> Function:
    """``y[i] = function(x[i])``."""
    x, y = Buffer("x", (ELEMENTS,), dtype), Buffer("y", (ELEMENTS,), dtype)
    i = Variable("i")
    store = Store(y, (i,), Unary(function, x[i]))
    return Function("map", (x,), (y,), For("i", as_index(ELEMENTS), LoopKind.VECTOR, store))


def best(run: Callable[[], object], repeats: int = 200) -> float:
    """Seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="native")
    options = LlvmOptions(parser.parse_args().level)
    generator = np.random.default_rng(0)
    for rows, vectors, lanes in ((14, 2, 16), (9, 3, 16), (6, 2, 8), (4, 2, 4)):
        function = matrix_kernel(rows, vectors, lanes)
        start = time.perf_counter()
        module = compile_functions([function], options)
        compiled = time.perf_counter() - start
        given = [generator.standard_normal(b.shape, np.float32) for b in function.inputs]
        out = [np.empty(function.outputs[0].shape, np.float32)]
        seconds = best(lambda m=module, g=given, o=out: m.run("kernel", g, o), 30)
        speed = 2 * out[0].size * DEPTH / seconds / 1e9
        print(f"matrix {rows} x {vectors * lanes}: {speed:.0f} GFLOP/s, {compiled * 1e3:.0f} ms")
    for dtype in (DType.FLOAT32, DType.FLOAT64):
        for name in ("exp", "log", "tanh", "erf", "sin", "atan"):
            module = compile_functions([elementary(UnaryFunction(name), dtype)], options)
            x = [generator.uniform(0.1, 0.9, ELEMENTS).astype(dtype.numpy)]
            out = [np.empty(ELEMENTS, dtype.numpy)]
            seconds = best(lambda m=module, g=x, o=out: m.run("map", g, o))
            print(f"{name} of {dtype}: {seconds / ELEMENTS * 1e9:.2f} ns")


if __name__ == "__main__":
    main()
