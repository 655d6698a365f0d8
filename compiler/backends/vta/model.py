"""How long kernels keep the units busy, before there are instructions."""

from math import prod

from dovetail.isa.memories import Unit

from ...tensor.ir import Kernel, LoopKind, Scope, Stage

__all__ = ["unit_cycles", "unit_of"]


def unit_cycles(kernel: Kernel) -> dict[Unit, int]:
    """Cycles in which GEMM and VECTOR issue: an iteration of all loops but the lanes takes one."""
    cycles = {Unit.GEMM: 0, Unit.VECTOR: 0}
    for stage in kernel.stages:
        count = prod(loop.extent for loop in stage.loops if loop.kind is not LoopKind.LANE)
        cycles[unit_of(stage)] += count
    return cycles


def unit_of(stage: Stage) -> Unit:
    """The unit that runs ``stage``."""
    matrix = any(ref.buffer.scope is Scope.WGT for ref in stage.refs)
    return Unit.GEMM if matrix else Unit.VECTOR
