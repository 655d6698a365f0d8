"""Kernels through LLVM: text of its assembly, its passes, its back-ends for GPUs.

Source: LLVM's User Guides for the NVPTX, AMDGPU and SPIR-V back-ends; PTX ISA 8 (NVIDIA).
"""

from collections.abc import Mapping

from llvmlite import binding as llvm

from ....errors import TargetError
from ..kernels import Kernel
from .machine import AMD, NVIDIA, OPENCL, Machine
from .statements import KernelWriter

__all__ = [
    "AMD_ARCHITECTURES",
    "ARCHITECTURES",
    "amd_object",
    "check_architecture",
    "llvm_text",
    "ptx_of",
    "spirv_of",
]

ARCHITECTURES: Mapping[str, str] = {"sm_80": "+ptx80", "sm_90a": "+ptx80", "sm_120a": "+ptx87"}
"""Architectures, and the version of PTX that each is written in."""
AMD_ARCHITECTURES = ("gfx90a", "gfx942", "gfx1100")


def check_architecture(name: str) -> None:
    """Raise TargetError for one that is not in ``ARCHITECTURES``."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise TargetError(f"no architecture is called {name!r}; there are: {known}")


def llvm_text(kernels: Mapping[str, Kernel], machine: Machine = NVIDIA) -> str:
    """The kernels in LLVM's assembly.

    Raises GraphError for what a GPU cannot run.
    """
    texts: list[str] = []
    declared: dict[str, str] = {}
    for name, kernel in kernels.items():
        writer = KernelWriter(name, kernel, machine)
        texts.append(writer.text())
        declared |= writer.e.declared
    return "\n".join((f'target triple = "{machine.triple}"', *declared.values(), *texts))


def ptx_of(kernels: Mapping[str, Kernel], architecture: str) -> str:
    """The kernels in PTX for one of ``ARCHITECTURES``.

    Raises TargetError for another name, GraphError for what a GPU cannot run.
    """
    check_architecture(architecture)
    module, machine = _compiled(kernels, NVIDIA, architecture, ARCHITECTURES[architecture])
    return str(machine.emit_assembly(module))


def spirv_of(kernels: Mapping[str, Kernel]) -> bytes:
    """The kernels in SPIR-V, for OpenCL.  Raises GraphError for what a GPU cannot run."""
    module, machine = _compiled(kernels, OPENCL, "", "")
    return bytes(machine.emit_object(module))


def amd_object(kernels: Mapping[str, Kernel], architecture: str) -> bytes:
    """The kernels as object code of one of ``AMD_ARCHITECTURES``, in ELF.

    Raises GraphError for what a GPU cannot run.
    """
    module, machine = _compiled(kernels, AMD, architecture, "")
    return bytes(machine.emit_object(module))


def _compiled(
    kernels: Mapping[str, Kernel], machine: Machine, cpu: str, features: str
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(machine.triple)
    own = target.create_target_machine(cpu=cpu, features=features, opt=3)
    text = f'target datalayout = "{own.target_data}"\n{llvm_text(kernels, machine)}'
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = True
    options.slp_vectorization = options.loop_vectorization = False
    builder = llvm.create_pass_builder(own, options)
    builder.getModulePassManager().run(module, builder)
    return module, own
