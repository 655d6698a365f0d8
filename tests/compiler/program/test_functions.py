"""The dimension of a result that threads share."""

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Buffer, Constant, Expr, Variable, as_index
from dovetail.compiler.loops.ir import For, Function, Let, LoopKind, Stmt, Store
from dovetail.compiler.program.functions import first_shared

Y, Z = Buffer("y", (2, 3, 4, 5), DType.FLOAT32), Buffer("z", (5,), DType.FLOAT32)
SHARED, INNER = Variable("shared"), Variable("inner")


def stored(*indices: Expr, kind: LoopKind = LoopKind.PARALLEL) -> Function:
    """A store to ``y`` by a loop over 12 and an inner one over 5."""
    body: Stmt = Store(Y, indices, Constant(0.0, DType.FLOAT32))
    lets = {
        "fast": SHARED % 3, "slow": SHARED // 3, "later": Variable("slow") + 1,
        "own": INNER + 1, "fixed": as_index(1),
    }  # fmt: skip
    for name, value in reversed(lets.items()):
        body = Let(Variable(name), value, body)
    body = For("shared", as_index(12), kind, For("inner", as_index(5), LoopKind.SERIAL, body))
    return Function("f", (), (Y, Z), body)


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (("slow", "fast", "own", "fixed"), 0),
        (("fixed", "slow", "fast", "own"), 1),
        (("own", "fixed", "later", "fast"), 2),
        (("fast", "own", "inner", "slow"), 3),
        (("inner", "shared", "own", "fixed"), 1),
        (("fast", "own", "inner", "fixed"), 0),
    ],
)
def test_what_runs_slowest_decides(names: tuple[str, ...], first: int) -> None:
    assert first_shared(stored(*map(Variable, names)), "y") == first


def test_nothing_is_shared_where_one_thread_writes_or_another_buffer_is_meant() -> None:
    indices = [Variable(name) for name in ("own", "slow", "fast", "fixed")]
    assert first_shared(stored(*indices, kind=LoopKind.SERIAL), "y") == 0
    assert first_shared(stored(*indices), "y") == 1
    assert first_shared(stored(*indices), "z") == 0
