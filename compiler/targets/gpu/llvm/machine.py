"""Differences between the machines that kernels are written for through LLVM.

Source: the User Guides of LLVM for NVPTX, AMDGPU and SPIR-V; OpenCL C 3.0 (Khronos), 6.15.1
and 6.15.8, whose functions have mangled names in SPIR-V's back-end.
"""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ....loops.ir import LoopKind
from .emitter import Emitter

__all__ = ["AMD", "NVIDIA", "OPENCL", "Machine"]

GLOBAL_AND_LOCAL = "3"
"""CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"""


@frozen
class Machine:
    """triple: LLVM's name.  convention: of kernels.  numbers: the functions that give the number of
    a block or thread, and their result.  private: address space of a thread's arrays.  offsets:
    whether each parameter comes with an offset in bytes.  barrier: the function that threads wait
    in, and its arguments; fenced: whether memory must be put in order around it.  extremes: whether
    one instruction gives the larger of two float32, and NaN where one of them is.
    """

    triple: str
    convention: str
    numbers: Mapping[LoopKind, tuple[str, str]]
    barrier: tuple[str, tuple[str, ...]]
    private: int = 0
    offsets: bool = False
    fenced: bool = False
    extremes: bool = False

    def number(self, e: Emitter, kind: LoopKind) -> str:
        """The number of this block or thread, int64."""
        function, result = self.numbers[kind]
        if result == "i64":
            return e.call(function, "i64", ("i32", "0"))
        return e.op(f"zext i32 {e.call(function, 'i32')} to i64")

    def wait(self, e: Emitter) -> None:
        """All threads of the block come here before one goes on, and see what others wrote."""
        function, arguments = self.barrier
        if self.fenced:
            e.line('fence syncscope("workgroup") release')
        e.call(function, "void", *(("i32", each) for each in arguments), convergent=True)
        if self.fenced:
            e.line('fence syncscope("workgroup") acquire')


NVIDIA = Machine(
    "nvptx64-nvidia-cuda",
    "ptx_kernel",
    {
        LoopKind.BLOCK: ("llvm.nvvm.read.ptx.sreg.ctaid.x", "i32"),
        LoopKind.THREAD: ("llvm.nvvm.read.ptx.sreg.tid.x", "i32"),
    },
    ("llvm.nvvm.barrier.cta.sync.aligned.all", ("0",)),
    extremes=True,
)
AMD = Machine(
    "amdgcn-amd-amdhsa",
    "amdgpu_kernel",
    {
        LoopKind.BLOCK: ("llvm.amdgcn.workgroup.id.x", "i32"),
        LoopKind.THREAD: ("llvm.amdgcn.workitem.id.x", "i32"),
    },
    ("llvm.amdgcn.s.barrier", ()),
    private=5,
    fenced=True,
)
OPENCL = Machine(
    "spirv64-unknown-unknown",
    "spir_kernel",
    {LoopKind.BLOCK: ("_Z12get_group_idj", "i64"), LoopKind.THREAD: ("_Z12get_local_idj", "i64")},
    ("_Z7barrierj", (GLOBAL_AND_LOCAL,)),
    offsets=True,
)
