"""The target ``cuda``: kernels in PTX, for NVIDIA's GPUs."""

from .compile import Backend
from .llvm.module import check_architecture, ptx_of
from .target import Gpu
from .tensor_cores import HOPPER, INTRINSICS

__all__ = ["find_cuda"]


def find_cuda(rest: str) -> Gpu:
    """The target ``cuda``, whose PTX all GPUs from sm_80 on take, or ``cuda:sm_90a`` for one kind.

    Raises TargetError for an architecture that does not exist.
    """
    architecture = rest or "sm_80"
    check_architecture(architecture)
    name = f"cuda:{architecture}" if rest else "cuda"
    backend = Backend(
        lambda launches: ptx_of(launches.kernels, architecture),
        intrinsics=HOPPER if architecture == "sm_90a" else INTRINSICS,
    )
    return Gpu(name, backend)
