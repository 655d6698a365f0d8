"""Kernels as PTX: text of LLVM's assembly, its passes, its backend for NVIDIA's GPUs.

Source: LLVM's User Guide for NVPTX Back-end; PTX ISA 8 (NVIDIA).
"""

from collections.abc import Mapping

from llvmlite import binding as llvm

from ....errors import TargetError
from ..kernels import Kernel
from .statements import KernelWriter

__all__ = ["ARCHITECTURES", "check_architecture", "llvm_text", "ptx_of"]

TRIPLE = "nvptx64-nvidia-cuda"
ARCHITECTURES: Mapping[str, str] = {"sm_80": "+ptx80", "sm_90a": "+ptx80", "sm_120a": "+ptx87"}
"""Architectures, and the version of PTX that each is written in."""


def check_architecture(name: str) -> None:
    """Raise TargetError for one that is not in ``ARCHITECTURES``."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise TargetError(f"no architecture is called {name!r}; there are: {known}")


def llvm_text(kernels: Mapping[str, Kernel]) -> str:
    """The kernels in LLVM's assembly.

    Raises GraphError for what a GPU cannot run.
    """
    texts: list[str] = []
    declared: dict[str, str] = {}
    for name, kernel in kernels.items():
        writer = KernelWriter(name, kernel)
        texts.append(writer.text())
        declared |= writer.e.declared
    return "\n".join((f'target triple = "{TRIPLE}"', *declared.values(), *texts))


def ptx_of(kernels: Mapping[str, Kernel], architecture: str) -> str:
    """The kernels in PTX for one of ``ARCHITECTURES``.

    Raises TargetError for another name, GraphError for what a GPU cannot run.
    """
    check_architecture(architecture)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(
        cpu=architecture, features=ARCHITECTURES[architecture], opt=3
    )
    text = f'target datalayout = "{machine.target_data}"\n{llvm_text(kernels)}'
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = True
    options.slp_vectorization = options.loop_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))
