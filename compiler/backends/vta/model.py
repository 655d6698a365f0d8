"""How long kernels keep the units busy, before there are instructions."""

from math import prod

from dovetail.isa.memories import Unit

from ...tensor.ir import Kernel, LoopKind, Scope

__all__ = ["unit_cycles"]


def unit_cycles(kernel: Kernel) -> dict[Unit, int]:
    """Cycles in which GEMM and VECTOR issue: an iteration of all loops but the lanes takes one."""
    cycles = {Unit.GEMM: 0, Unit.VECTOR: 0}
    for stage in kernel.stages:
        matrix = any(ref.buffer.scope is Scope.WGT for ref in stage.refs)
        count = prod(loop.extent for loop in stage.loops if loop.kind is not LoopKind.LANE)
        cycles[Unit.GEMM if matrix else Unit.VECTOR] += count
    return cycles
