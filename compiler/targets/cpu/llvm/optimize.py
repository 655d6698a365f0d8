"""LLVM's passes over a module, and its machine code."""

from enum import IntEnum

import llvmlite.binding as llvm

from ....errors import CompilerError
from .target import CpuTarget, target_machine

__all__ = ["Effort", "to_assembly", "to_object"]


class Effort(IntEnum):
    """How much LLVM optimises before it selects instructions."""

    LIGHT = 0
    """Stack slots to registers, and fewer blocks: for explicit vector code."""
    FULL = 2
    """The pipeline of -O2, its vectorisers included."""


def to_object(text: str, target: CpuTarget, effort: Effort) -> bytes:
    """The object file of a module.  Raises CompilerError for text LLVM does not take."""
    machine = target_machine(target)
    return machine.emit_object(_optimized(text, machine, effort))


def to_assembly(text: str, target: CpuTarget, effort: Effort) -> str:
    """The same code as assembly, to read."""
    machine = target_machine(target)
    return machine.emit_assembly(_optimized(text, machine, effort))


def _optimized(text: str, machine: llvm.TargetMachine, effort: Effort) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompilerError(f"LLVM refuses the code generated for it: {error}") from error
    tuning = llvm.create_pipeline_tuning_options(speed_level=int(effort))
    tuning.loop_vectorization = tuning.slp_vectorization = effort is Effort.FULL
    builder = llvm.create_pass_builder(machine, tuning)
    if effort is Effort.FULL:
        builder.getModulePassManager().run(module, builder)
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, builder)
    return module
