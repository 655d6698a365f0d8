"""Shared memory of kernels: what they declare, and where what the launch gives lies."""

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.expressions import Buffer, Scope, as_index
from dovetail.compiler.loops.ir import Allocate, Invoke, LoopKind, Region, Stmt, block, loops
from dovetail.compiler.targets.gpu.shared import group_count, group_sums, shared_of

PRODUCT = "wgmma_int8_int8_32"
A, B, C = (
    Buffer(name, shape, dtype, scope)
    for name, shape, dtype, scope in (
        ("a", (64, 128), DType.INT8, Scope.SHARED),
        ("b", (32, 128), DType.INT8, Scope.SHARED),
        ("c", (4, 16), DType.INT32, Scope.REGISTER),
    )
)


def whole(buffer: Buffer) -> Region:
    return Region(buffer, tuple(as_index(0) for _ in buffer.shape), buffer.shape)


def product(*operands: Buffer) -> Stmt:
    return Invoke(PRODUCT, tuple(map(whole, operands)))


def within(body: Stmt, *buffers: Buffer) -> Stmt:
    for buffer in reversed(buffers):
        body = Allocate(buffer, body)
    return body


def test_a_kernel_declares_48_kib_at_most() -> None:
    def bytes_of(count: int) -> Stmt:
        buffers = [Buffer("p", (count,), DType.INT8, Scope.SHARED)]
        buffers += [Buffer("q", (1 << 10,), DType.INT32, Scope.SHARED)]
        buffers += [Buffer("r", (1 << 20,), DType.INT8, Scope.REGISTER)]
        return within(block(), *buffers)

    declared = shared_of(bytes_of(44 << 10))
    assert (declared.offsets, declared.size, declared.swizzled) == ({}, 0, frozenset())
    given = shared_of(bytes_of((44 << 10) + 1))
    assert given.offsets == {"p": 0, "q": 45 << 10}
    assert given.size == (45 + 4 + 1) << 10, "whole KiB, and one to begin at one"
    assert not given.swizzled


def test_operands_of_products_of_warpgroups_lie_in_swizzled_rows_of_128_bytes() -> None:
    found = shared_of(within(product(A, B, C), A, B, C))
    assert found.offsets == {"a": 0, "b": 8 << 10}
    assert found.size == (8 + 4 + 1) << 10
    assert found.swizzled == {"a", "b"}
    wide = Buffer("a", (64, 144), DType.INT8, Scope.SHARED)
    with pytest.raises(GraphError, match="a: rows of 144 int8; a warpgroup reads rows of 128 byt"):
        shared_of(within(product(wide, B, C), wide, B, C))
    # Rows that no product reads may be of any length.
    rest = Buffer("rest", (64, 144), DType.INT8, Scope.SHARED)
    assert shared_of(within(product(A, B, C), rest, A, B, C)).offsets["a"] == 9 << 10


def test_products_of_unrolled_loops_count_each_time() -> None:
    other = Buffer("d", (4, 16), DType.INT32, Scope.REGISTER)
    twice = block(product(A, B, C), product(A, B, other), product(A, B, C))
    copied = Invoke("copy_int8", (whole(A), whole(B)))
    nest = loops((("i", 5), ("j", 2)), block(twice, copied), LoopKind.UNROLLED)
    assert group_count(within(nest, A)) == 30
    assert group_count(loops((("k", 7),), nest)) == 30
    assert group_count(copied) == 0
    assert group_sums(nest) == (C, other)
