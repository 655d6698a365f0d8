"""LLVM's passes over a module, and its machine code."""

import re
from enum import IntEnum
from itertools import count

import llvmlite.binding as llvm

from ....errors import CompilerError
from .target import CpuTarget, target_machine

__all__ = ["Effort", "to_assembly", "to_object"]


class Effort(IntEnum):
    """Amount of optimisation in LLVM before it selects instructions."""

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
        return _with_narrow_stores(module)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    return module


MASKED_STORE = re.compile(
    r"(?:tail |musttail |notail )?call void @llvm\.masked\.store\S+?"
    r"\(<(?P<lanes>\d+) x (?P<type>\w+)> (?P<value>%[\w.]+), "
    r"ptr [^%@,]*(?P<place>[%@][\w.]+), <\d+ x i1> <(?P<mask>[^>]*)>\)"
)
"""A store of the lanes that a constant names."""


def _with_narrow_stores(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """The module with a store of an element where a masked one has a single lane.

    On x86 LLVM 22 stores that element as it was before it was truncated, so the bytes behind it
    change too.
    """
    text, numbers = str(module), count()
    if "@llvm.masked.store" not in text:
        return module

    def narrow(found: re.Match[str]) -> str:
        lanes = [lane.split()[-1] == "true" for lane in found["mask"].split(",")]
        if sum(lanes) != 1:
            return found[0]
        lane, kind, name = lanes.index(True), found["type"], f"%lane.{next(numbers)}"
        return (
            f"{name} = extractelement <{found['lanes']} x {kind}> {found['value']}, i64 {lane}\n"
            f"  {name}.at = getelementptr inbounds {kind}, ptr {found['place']}, i64 {lane}\n"
            f"  store {kind} {name}, ptr {name}.at, align 1"
        )

    return llvm.parse_assembly(MASKED_STORE.sub(narrow, text))
