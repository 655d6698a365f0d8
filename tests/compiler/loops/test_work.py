"""The work of loop programs, counted by hand."""

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import BinaryFunction, Buffer, Variable, as_index
from dovetail.compiler.loops.ir import Function, Let, Stmt, Store, Update, While, block, loops
from dovetail.compiler.loops.work import work

X = Buffer("x", (64,), DType.FLOAT32)
N = Buffer("n", (1,), DType.INT64)
Y = Buffer("y", (64,), DType.FLOAT32)


def of(body: Stmt) -> int:
    return work(Function("f", (X, N), (Y,), body))


def test_every_element_read_and_written_counts_and_every_iteration() -> None:
    i = Variable("i")
    assert of(Store(Y, (i,), X[i] + X[0])) == 3
    assert of(loops((("i", 64),), Store(Y, (i,), X[i]))) == 64 * 3
    product = Update(Y, (i,), BinaryFunction.ADD, X[i] * X[Variable("j")])
    assert of(loops((("i", 10), ("j", 6)), product)) == 10 * (1 + 6 * 4)


def test_extents_of_outer_variables_count_as_the_largest() -> None:
    i, j = Variable("i"), Variable("j")
    assert of(loops((("i", 8), ("j", i + 1)), Store(Y, (j,), X[j]))) == 8 * (1 + 8 * 3)
    end = Variable("end")
    inner = Let(end, i * 2, loops((("j", end),), Store(Y, (j,), X[j])))
    assert of(loops((("i", 8),), inner)) == 8 * (1 + 14 * 3)


def test_loops_that_depend_on_data_count_once() -> None:
    i = Variable("i")
    assert of(loops((("i", N[0]),), Store(Y, (i,), X[i]))) == 1 + 3
    assert of(While(as_index(0) < N[0], block(Store(Y, (as_index(0),), X[0])))) == 1 + 1 + 2


def test_a_huge_program_is_counted_without_running_it() -> None:
    i = Variable("i")
    assert of(loops((("a", 1 << 40), ("i", 1 << 40)), Store(Y, (i,), X[0]))) > 1 << 80
