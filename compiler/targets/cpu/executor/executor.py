"""Models that are compiled for CPUs as they run."""

from functools import partial

from ....executor.executor import Executor as AnyExecutor
from ....front.onnx.source import ModelSource
from ..llvm.compile import LlvmOptions
from ..segment import compile_segment

__all__ = ["Executor"]


class Executor(AnyExecutor):
    """Runs a model on this CPU, compiling what is new."""

    def __init__(self, source: ModelSource, options: LlvmOptions | None = None) -> None:
        """options: of the machine code."""
        super().__init__(source, partial(compile_segment, options=options or LlvmOptions()))
