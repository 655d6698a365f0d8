"""Functions cut into kernels: pieces, geometry, workspaces, and what a GPU has not."""

import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.targets.gpu.compile import compile_function
from dovetail.compiler.targets.gpu.cuda import find_cuda
from dovetail.compiler.targets.gpu.kernels import Geometry, kernels_of, workspace_bytes
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.compiler.targets.gpu.target import PLAIN_C, Gpu
from tests.ptx.running import program_of


def function(body: str) -> Function:
    lines = [f"  {line}" for line in body.strip("\n").splitlines()]
    head = 'function "f"\n  input x: float32[8, 32]\n  output y: float32[8, 32]\n'
    return parse(head + "\n".join(lines))


TWO = """
alloc t: float32[8, 32] local:
  for i in 8 block:
    for j in 32 thread:
      t[i, j] = x[i, j]
  for i in 8 block:
    for j in 16 thread:
      y[i, j] = t[7 - i, j]
      y[i, j + 16] = t[7 - i, j + 16]
"""


def test_nests_are_kernels_that_hand_on_a_workspace() -> None:
    kernels = kernels_of(function(TWO))
    shapes = [(each.geometry.blocks, each.geometry.threads) for each in kernels]
    assert shapes == [(8, 32), (8, 16)]
    names = [[each.buffer.name for each in kernel.parameters] for kernel in kernels]
    assert names == [["x", "t"], ["y", "t"]]
    assert [kernel.parameters[1].offset for kernel in kernels] == [0, 0]
    assert workspace_bytes(kernels) == 8 * 32 * 4


def test_a_large_array_of_a_thread_is_one_of_each_in_the_workspace() -> None:
    body = """
for i in 8 block:
  for j in 32 thread:
    alloc t: float32[512] local:
      t[j] = x[i, j]
      y[i, j] = t[j]
"""
    (kernel,) = kernels_of(function(body))
    assert [each.private for each in kernel.parameters] == [False, False, True]
    assert workspace_bytes((kernel,)) == 8 * 32 * 512 * 4


def test_large_arrays_of_threads_lie_one_behind_the_other() -> None:
    body = """
for i in 8 block:
  for j in 32 thread:
    alloc t: float32[512] local:
      alloc u: float32[384] local:
        t[j] = x[i, j]
        u[j] = t[j]
        y[i, j] = u[j]
"""
    (kernel,) = kernels_of(function(body))
    sizes = [8 * 32 * count * 4 for count in (512, 384)]
    large = {each.buffer.name: each.offset for each in kernel.parameters if each.private}
    assert large in ({"t": 0, "u": sizes[0]}, {"t": sizes[1], "u": 0})
    assert workspace_bytes((kernel,)) == sum(sizes)


def test_what_no_thread_does_is_done_by_one() -> None:
    body = """
for i in 8 block:
  for j in 32 thread:
    y[i, j] = x[i, j]
  invoke barrier()
  y[i, 0] = 1.0:float32
"""
    (kernel,) = kernels_of(function(body))
    assert kernel.geometry.threads == 32
    assert kernel.geometry.axes["single.0"].total == 1
    without = body.replace("  invoke barrier()\n", "")
    with pytest.raises(GraphError, match="y: a thread of j writes an element that another of sing"):
        kernels_of(function(without))


REFUSED = [
    (
        "for k in 8:\n  for i in 8 block:\n    y[i, k] = 0.0:float32",
        "blocks inside of the serial loop k",
    ),
    (
        "for j in 8 thread:\n  for i in 8 block:\n    y[i, j] = 0.0:float32",
        "blocks of i inside of threads",
    ),
    (
        "for i in 8 block:\n  alloc t: float32[32] local:\n    for j in 32 thread:\n"
        "      t[j] = 1.0:float32\n    for k in 32 thread:\n      y[i, k] = t[k]",
        "t: threads of a block use an array of their block, which is local; required shared",
    ),
    (
        "for i in 8 block:\n  alloc t: float32[] local:\n    t[] = 1.0:float32\n"
        "    invoke barrier()\n    for k in 32 thread:\n      y[i, k] = t[]",
        "t: threads of a block use an array of their block, which is local; required shared",
    ),
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_what_a_gpu_has_not_is_refused(body: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        kernels_of(function(body))


def test_a_function_without_bound_loops_is_one_thread() -> None:
    (kernel,) = kernels_of(function("for i in 8:\n  for j in 32:\n    y[i, j] = x[i, j]"))
    assert kernel.geometry == Geometry(1, 1, {})


@pytest.mark.parametrize(
    ("dtype", "count", "alignment"),
    [("float32", 8, 16), ("float16", 6, 4), ("int8", 7, 1), ("float32", 3, 4), ("int64", 3, 8)],
)
def test_an_operand_is_aligned_as_its_size_and_the_start_of_memories_are(
    dtype: str, count: int, alignment: int
) -> None:
    copy = f"  for i in {count} thread:\n    y[i] = x[i]"
    text = f'function "f"\n  input x: {dtype}[{count}]\n  output y: {dtype}[{count}]\n{copy}'
    (kernel,) = launches_of(program_of(parse(text))).kernels.values()
    assert [each.alignment for each in kernel.parameters] == [alignment] * 2


@pytest.mark.parametrize("target", [find_cuda(""), PLAIN_C], ids=["ptx", "c"])
def test_rows_are_fetched_early_by_no_gpu_and_other_instructions_refused(target: Gpu) -> None:
    body = """
for i in 8:
  for j in 32:
    y[i, j] = x[i, j]
  invoke {name}(x[i : 1, 0 : 32])
"""
    bare = body.replace("  invoke {name}(x[i : 1, 0 : 32])\n", "")
    part = compile_function(function(body.format(name="prefetch")), target.name, target.backend)
    assert part.source == compile_function(function(bare), target.name, target.backend).source
    with pytest.raises(GraphError, match="a GPU has no intrinsic 'prefetched'"):
        compile_function(function(body.format(name="prefetched")), target.name, target.backend)


@pytest.mark.parametrize(("size", "alignments"), [(6, (8, 2)), (8, (16, 8)), (32, (16, 16))])
def test_an_alignment_divides_what_a_buffer_has(size: int, alignments: tuple[int, int]) -> None:
    """A read of whole vectors does not go beyond its end."""
    text = f'function "f"\n  input x: float32[{size}]\n  output y: int8[{size}]\n'
    body = f"  for i in {size} block:\n    y[i] = cast(int8, x[i])\n"
    (kernel,) = launches_of(program_of(parse(text + body))).kernels.values()
    assert tuple(each.alignment for each in kernel.parameters) == alignments
