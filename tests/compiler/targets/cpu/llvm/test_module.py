"""Calls of compiled functions: what is refused, odd sizes, large workspaces, big expressions."""

import llvmlite.binding as llvm
import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError, TargetError
from dovetail.compiler.loops.expressions import (
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Scope,
    Select,
    Unary,
    UnaryFunction,
    Variable,
    as_index,
)
from dovetail.compiler.loops.ir import (
    Allocate,
    For,
    Function,
    If,
    LoopKind,
    Stmt,
    Store,
    Update,
    While,
    block,
    loops,
)
from dovetail.compiler.targets.cpu.arch.x86_64 import X86_64
from dovetail.compiler.targets.cpu.llvm import statements
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.emitter import ModuleText
from dovetail.compiler.targets.cpu.llvm.functions import write_function
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget, host_cpu
from dovetail.runtime.errors import WorkspaceError

from .kernels import LEVELS, elementwise, require

F, I64 = DType.FLOAT32, DType.INT64
X, Y = Buffer("x", (6,), F), Buffer("y", (6,), F)
I = Variable("i")  # noqa: E741


def copy(kind: LoopKind = LoopKind.SERIAL) -> Function:
    return Function("copy", (X,), (Y,), For("i", as_index(6), kind, Store(Y, (I,), X[I])))


def run(function: Function, *inputs: np.ndarray, level: str = "native") -> np.ndarray:
    require(level)
    return compile_functions([function], LlvmOptions(level)).run(function.name, inputs)[0]


def test_wrong_arrays_are_refused() -> None:
    module = compile_functions([copy()])
    good = np.zeros(6, np.float32)
    with pytest.raises(GraphError, match=r"x is float64\[6\]; required float32\[6\]"):
        module.run("copy", [np.zeros(6)])
    with pytest.raises(GraphError, match=r"x is float32\[7\]; required float32\[6\]"):
        module.run("copy", [np.zeros(7, np.float32)])
    with pytest.raises(GraphError, match="x is not contiguous"):
        module.run("copy", [np.zeros(12, np.float32)[::2]])
    with pytest.raises(GraphError, match="no array for x"):
        module.run("copy", {"z": good})
    with pytest.raises(GraphError, match="2 arrays; required 1"):
        module.run("copy", [good, good])
    fixed = np.zeros(6, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(GraphError, match="output y is an array that is read only"):
        module.run("copy", [good], [fixed])


def test_functions_are_told_apart_by_name() -> None:
    with pytest.raises(GraphError, match="two functions are called copy"):
        compile_functions([copy(), copy(LoopKind.VECTOR)])


def test_a_level_is_known_and_present() -> None:
    with pytest.raises(TargetError, match="no CPU level 'z80'; known are native, x86-64"):
        compile_functions([copy()], LlvmOptions("z80"))
    with pytest.raises(TargetError, match="lacks antigravity"):
        CpuTarget(X86_64, "x", frozenset({"antigravity"})).require_host()
    with pytest.raises(TargetError, match="this CPU is x86-64, the code is for aarch64"):
        CpuTarget.at_level("armv8").require_host()


def test_the_host_has_the_features_that_are_on_and_is_of_a_known_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = host_cpu.__wrapped__
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {"avx2": True, "fma": False})
    assert find() == CpuTarget(host_cpu().arch, host_cpu().cpu, frozenset({"avx2"}))
    assert find().feature_string == "+avx2"
    monkeypatch.setattr(llvm, "get_process_triple", lambda: "sparc-unknown-linux")
    with pytest.raises(TargetError, match=r"this CPU is sparc-unknown-linux; known are x86-64, aa"):
        find()


@pytest.mark.parametrize("kind", [LoopKind.BLOCK, LoopKind.THREAD, LoopKind.HARDWARE])
def test_loops_of_other_machines_are_refused(kind: LoopKind) -> None:
    with pytest.raises(GraphError, match=f"loop i is of kind {kind.value}; a CPU runs"):
        compile_functions([copy(kind)])


def test_memory_of_other_machines_is_refused() -> None:
    shared = Buffer("s", (4,), F, Scope.SHARED)
    body = Allocate(shared, Store(Y, (as_index(0),), X[0]))
    with pytest.raises(GraphError, match="s is in memory shared by a GPU's threads"):
        compile_functions([Function("f", (X,), (Y,), body)])


def test_names_out_of_scope_are_refused() -> None:
    with pytest.raises(GraphError, match="variable j is not in scope"):
        compile_functions([Function("f", (X,), (Y,), Store(Y, (Variable("j"),), X[0]))])
    with pytest.raises(GraphError, match="y is written, but is not in scope"):
        compile_functions([Function("f", (X,), (), Store(Y, (as_index(0),), X[0]))])


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTOR, LoopKind.PARALLEL])
def test_loops_without_iterations_and_buffers_without_elements(kind: LoopKind) -> None:
    empty = elementwise(0, (F,), lambda x: x + 1.0, kind)
    assert run(empty, np.zeros(0, np.float32)).shape == (0,)
    count = Buffer("n", (), I64)
    body = block(
        For("i", as_index(6), LoopKind.VECTOR, Store(Y, (I,), Constant(1.0, F))),
        For("i", count[()], LoopKind.SERIAL, Store(Y, (I,), X[I])),
    )
    function = Function("some", (X, count), (Y,), body)
    x = np.arange(6, dtype=np.float32)
    for n in (-3, 0, 2):
        expected = np.where(np.arange(6) < n, x, 1)
        np.testing.assert_array_equal(run(function, x, np.array(n)), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 257, 1000])
@pytest.mark.parametrize("level", LEVELS)
def test_vector_loops_of_every_length(size: int, level: str) -> None:
    function = elementwise(size, (F, DType.INT8), lambda a, b: a + Cast(F, b), LoopKind.VECTOR)
    a, b = np.arange(size, dtype=np.float32), (np.arange(size) % 100).astype(np.int8)
    np.testing.assert_array_equal(run(function, a, b, level=level), a + b)


@pytest.mark.parametrize("level", LEVELS)
def test_lanes_behind_a_guard_touch_no_memory(level: str) -> None:
    """A loop of 4 * 16 over 50 elements: the last lanes are beyond the buffers' ends."""
    require(level)
    x, y = Buffer("x", (50,), F), Buffer("y", (50,), F)
    index = Variable("o") * 16 + I
    guarded = If(index < 50, Store(y, (index,), x[index] * 2.0))
    inner = For("i", as_index(16), LoopKind.VECTOR, guarded)
    function = Function("guarded", (x,), (y,), For("o", as_index(4), LoopKind.SERIAL, inner))
    memory = np.full(200, 7, np.float32)
    out = memory[70:120]
    values = np.arange(50, dtype=np.float32)
    compile_functions([function], LlvmOptions(level)).run("guarded", [values], [out])
    np.testing.assert_array_equal(out, values * 2)
    assert (memory[:70] == 7).all()
    assert (memory[120:] == 7).all()


@pytest.mark.parametrize("lanes", [4, 8, 16, 12])
@pytest.mark.parametrize("divisor", [1, 3, 4, 8, 12, 16, 24, 48])
def test_quotients_and_rests_of_lanes(lanes: int, divisor: int) -> None:
    y = Buffer("y", (6, 6 * lanes), I64)
    n = Variable("o") * lanes + I
    values = [n // divisor, n % divisor, (n + 5) // divisor, (n * 3 + 2) % divisor]
    values += [Cast(I64, n < divisor), Cast(I64, as_index(divisor + 1) <= n)]
    body = block(*(Store(y, (as_index(row), n), value) for row, value in enumerate(values)))
    inner = For("i", as_index(lanes), LoopKind.VECTOR, body)
    for kind in (LoopKind.SERIAL, LoopKind.UNROLLED):
        found = run(Function("f", (), (y,), For("o", as_index(6), kind, inner)))
        k = np.arange(6 * lanes)
        rows = [k // divisor, k % divisor, (k + 5) // divisor, (k * 3 + 2) % divisor]
        np.testing.assert_array_equal(found, [*rows, k < divisor, divisor + 1 <= k])


def test_quotients_are_rounded_down_by_divisors_of_either_sign() -> None:
    """Least values of all operands are known: those of the loops."""
    y, j = Buffer("y", (4, 8, 4), I64), Variable("j")
    for least in (0, -3):
        a, by = I + least, j * 2 - 3
        values = (a // by, a % by, a // (j + 1), a % (j + 1))
        stores = (Store(y, (as_index(row), I, j), value) for row, value in enumerate(values))
        found = run(Function("f", (), (y,), loops((("i", 8), ("j", 4)), block(*stores))))
        left, right = np.arange(8)[:, None] + least, np.arange(4) * 2 - 3
        wanted = [*divmod(left, right), *divmod(left, np.arange(1, 5))]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("level", LEVELS)
def test_the_side_not_selected_reads_nothing(level: str) -> None:
    """Indices far out of the buffer, in lanes and in scalar code, would end the process."""
    x, y = Buffer("x", (40,), F), Buffer("y", (80,), F)
    far = (I - 40) * (1 << 40)
    for condition, index in ((I < 40, I), (I < 40, I + Select(I < 40, as_index(0), far))):
        value = Select(condition, x[index], Constant(-1.0, F))
        for kind in (LoopKind.VECTOR, LoopKind.SERIAL):
            function = Function(
                "pad", (x,), (y,), For("i", as_index(80), kind, Store(y, (I,), value))
            )
            values = np.arange(40, dtype=np.float32)
            expected = np.concatenate([values, np.full(40, -1, np.float32)])
            np.testing.assert_array_equal(run(function, values, level=level), expected)


@pytest.mark.parametrize("stride", [-3, -1, 2, 3, 4, 7, 40])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT16, F, DType.FLOAT64, DType.BOOL])
@pytest.mark.parametrize("size", [2, 7, 40])
def test_lanes_lie_any_distance_apart(stride: int, dtype: DType, size: int) -> None:
    span = abs(stride) * (size - 1) + 1
    x, y = Buffer("x", (span,), dtype), Buffer("y", (span,), dtype)
    index = I * stride + (span - 1 if stride < 0 else 0)
    body = For("i", as_index(size), LoopKind.VECTOR, Store(y, (index,), x[index]))
    values = (np.arange(span) % 2 if dtype is DType.BOOL else np.arange(span) % 100).astype(
        dtype.numpy
    )
    out = np.zeros(span, dtype.numpy)
    compile_functions([Function("f", (x,), (y,), body)]).run("f", [values], [out])
    expected = np.zeros(span, dtype.numpy)
    expected[:: abs(stride)] = values[:: abs(stride)]
    np.testing.assert_array_equal(out, expected)


def test_lanes_that_meet_combine_all_their_values() -> None:
    """A histogram: lanes update elements that a table names, some of them the same."""
    where, counts = Buffer("where", (64,), I64), Buffer("counts", (5,), DType.INT32)
    update = Update(counts, (where[I],), BinaryFunction.ADD, Constant(1, DType.INT32))
    zero = loops((("z", 5),), Store(counts, (Variable("z"),), Constant(0, DType.INT32)))
    body = block(zero, For("i", as_index(64), LoopKind.VECTOR, update))
    bins = np.random.default_rng(0).integers(0, 5, 64)
    found = run(Function("histogram", (where,), (counts,), body), bins)
    np.testing.assert_array_equal(found, np.bincount(bins, minlength=5))


def test_a_while_loop_stops() -> None:
    y = Buffer("y", (2,), I64)
    double = block(Store(y, (as_index(0),), y[0] * 2), Store(y, (as_index(1),), y[1] + as_index(1)))
    start = block(Store(y, (as_index(0),), as_index(1)), Store(y, (as_index(1),), as_index(0)))
    function = Function("log", (), (y,), block(start, While(y[0] < 1000, double)))
    np.testing.assert_array_equal(run(function), [1024, 10])


def nested(buffers: list[Buffer], body: Stmt) -> Stmt:
    for buffer in reversed(buffers):
        body = Allocate(buffer, body)
    return body


def test_large_buffers_lie_in_the_workspace_one_behind_the_other() -> None:
    buffers = [Buffer(f"t{n}", (100_000,), F, Scope.LOCAL) for n in range(3)]
    fill = [
        For("i", as_index(100_000), LoopKind.VECTOR, Store(b, (I,), Constant(float(n), F)))
        for n, b in enumerate(buffers)
    ]
    total = Store(Y, (as_index(0),), buffers[0][99_999] + buffers[1][0] + buffers[2][5])
    function = Function("f", (), (Y,), nested(buffers, block(*fill, total)))
    module = compile_functions([function])
    assert module.signatures["f"].workspace_bytes == 3 * 100_000 * 4
    assert module.run("f", [])[0][0] == 3


def test_buffers_in_registers_that_no_stack_holds_lie_in_the_workspace() -> None:
    wide = Buffer("wide", (5_000_000,), F, Scope.REGISTER)
    fill = For("i", as_index(5_000_000), LoopKind.VECTOR, Store(wide, (I,), Constant(2.0, F)))
    body = Allocate(wide, block(fill, Store(Y, (as_index(0),), wide[4_999_999])))
    module = compile_functions([Function("f", (), (Y,), body)])
    assert module.signatures["f"].workspace_bytes == 20_000_000
    assert module.run("f", [])[0][0] == 2


def test_nests_of_unrolled_loops_are_not_unrolled_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All 10 rounds of the outer loop, and 3 of the inner one in each: 90 were too many."""
    monkeypatch.setattr(statements, "_MOST_UNROLLED", 80)
    y = Buffer("y", (10, 9, 3), DType.INT32)
    at = tuple(Variable(name) for name in "abc")
    store = Store(y, at, Cast(DType.INT32, at[0] + at[1] * at[2]))
    nest = loops((("a", 10), ("b", 9), ("c", 3)), store, LoopKind.UNROLLED)
    function = Function("f", (), (y,), nest)
    module = ModuleText(host_cpu())
    write_function(module, function, "f", 1)
    assert module.text().count("store i32") == 10 * 3
    a, b, c = np.indices((10, 9, 3))
    np.testing.assert_array_equal(run(function), a + b * c)


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLLED])
def test_a_condition_on_the_number_of_an_iteration_may_be_known(kind: LoopKind) -> None:
    early = Select(I < 2, X[I], Constant(-1.0, F))
    late = If(I < 4, Store(Y, (I,), early), Store(Y, (I,), X[I] * 2.0))
    function = Function("f", (X,), (Y,), For("i", as_index(6), kind, late))
    x = np.arange(6, dtype=np.float32) + 1
    np.testing.assert_array_equal(run(function, x), [1, 2, -1, -1, 10, 12])


def test_8192_statements_are_unrolled_at_most() -> None:
    def branches(inner: int) -> int:
        nest = loops((("a", 64), ("b", inner)), block(), LoopKind.UNROLLED)
        module = ModuleText(host_cpu())
        write_function(module, Function("f", (), (Y,), nest), "f", 1)
        return module.text().count(" icmp ")

    assert branches(128) == 0
    assert branches(129) == 64, "the inner loop, in each round of the outer one"


def test_a_workspace_that_no_memory_holds_is_refused() -> None:
    huge = Buffer("huge", (1 << 58,), DType.INT8, Scope.LOCAL)
    body = Allocate(huge, Store(Y, (as_index(0),), Constant(1.0, F)))
    module = compile_functions([Function("f", (), (Y,), body)])
    with pytest.raises(WorkspaceError, match="bytes of workspace required; not available"):
        module.run("f", [])


@pytest.mark.parametrize("kind", [LoopKind.VECTOR, LoopKind.SERIAL])
def test_shared_and_deep_expressions_take_time_for_what_they_hold(kind: LoopKind) -> None:
    def shared(x: Expr) -> Expr:
        for _ in range(60):
            x = Select(Constant(0.0, F) < x, x, Unary(UnaryFunction.NEG, x)) + x * 0.0
        return x

    def deep(x: Expr) -> Expr:
        for _ in range(1500):
            x = x + 1.0
        return x

    x = np.linspace(-2, 2, 20, dtype=np.float32)
    np.testing.assert_array_equal(run(elementwise(20, (F,), shared, kind), x), np.abs(x))
    expected = x
    for _ in range(1500):
        expected = expected + np.float32(1)
    np.testing.assert_array_equal(run(elementwise(20, (F,), deep, kind), x), expected)
