"""The targets of GPUs: kernels for all of a model."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen
from dovetail.runtime.parts import Part

from ...errors import ModelError, TargetError
from ...front.source import Imported, NeedsValueError, Source
from ...graph.ir import Graph
from ...graph.partition import Piece, Plan
from ...graph.passes.integer_layers.prepare import with_integer_layers
from ...graph.replicate import replicate
from ...options import CompileOptions
from ...pipeline.trace import Trace
from ..table import HOST, find_target
from .compile import Backend, compile_graph, prepare_graph
from .lower import Launches
from .source.c import PlainC
from .source.metal import Metal
from .source.module import source_of
from .source.opencl import OpenCl
from .source.wgsl import Wgsl, refused

__all__ = ["METAL", "PLAIN_C", "Gpu", "find_opencl", "find_webgpu", "opencl_source", "wgsl_source"]


@frozen
class Gpu:
    """See ``Target``.  An open batch is 1; other open sizes must be bound.  A model whose shapes
    depend on data is compiled as it runs, for the host.
    """

    name: str
    backend: Backend

    def load(self, model: Source, dims: Mapping[str, int]) -> Imported | None:
        """As ``Target``."""
        bound = model.bind(dims)
        for each in bound.open_sizes():
            if None in each.shape[1:]:
                raise ModelError(
                    f"input {each.name!r} has the open shape {list(each.shape)}; {self.name} "
                    "compiles for fixed sizes: bind them (--dim)"
                )
        try:
            return bound.to_graph(batch=1) if bound.open_sizes() else bound.to_graph()
        except NeedsValueError:
            return None

    def plan(self, model: Imported) -> Plan:
        """All of it."""
        return Plan((Piece(model.graph),), ())

    def compile(
        self, piece: Piece, kinds: Mapping[str, str], options: CompileOptions, trace: Trace
    ) -> Part:
        """As ``Target``."""
        graph = self.prepared(replicate(piece.graph, options.batch), kinds, options, trace)
        return compile_graph(graph, self.name, self.backend, options, trace)

    def prepared(
        self, graph: Graph, kinds: Mapping[str, str], options: CompileOptions, trace: Trace
    ) -> Graph:
        """The graph after all passes, as it becomes groups; kinds: as of ``compile``."""
        if not self.backend.intrinsics:
            graph = with_integer_layers(graph, kinds, trace) or graph
        return prepare_graph(graph, self.backend, options, trace)

    def compile_open(self, model: Source, dims: Mapping[str, int], options: CompileOptions) -> Part:
        """As ``Target``."""
        return find_target(HOST).compile_open(model, dims, options)


def opencl_source(launches: Launches) -> str:
    """The kernels in OpenCL C."""
    return source_of(launches.kernels, OpenCl())


def find_opencl(rest: str) -> Gpu:
    """The target ``opencl``, or ``opencl:spirv`` with SPIR-V and OpenCL C.

    Raises TargetError when something else follows its name.
    """
    if rest not in ("", "spirv"):
        raise TargetError(
            f"no target is called 'opencl:{rest}'; required opencl, or opencl:spirv for SPIR-V too"
        )
    return (
        Gpu("opencl:spirv", Backend(opencl_source, _spirv))
        if rest
        else Gpu("opencl", Backend(opencl_source))
    )


def _spirv(launches: Launches) -> bytes:
    """Raises TargetError when llvmlite is missing, which writes it."""
    try:
        from .llvm.module import spirv_of
    except ModuleNotFoundError:
        raise TargetError(
            "SPIR-V is written by llvmlite, which is not installed; install the extra: pip install "
            "'dovetail[cpu]', or compile for opencl"
        ) from None
    return spirv_of(launches.kernels)


def wgsl_source(launches: Launches) -> str:
    """The kernels in WGSL."""
    return source_of(launches.kernels, Wgsl())


def find_webgpu(rest: str) -> Gpu:
    """The target.  Raises TargetError when something follows its name."""
    if rest:
        raise TargetError(f"no target is called 'webgpu:{rest}'; required webgpu")
    return Gpu("webgpu", Backend(wgsl_source, refused=refused))


METAL = Gpu(
    "metal", Backend(lambda launches: source_of(launches.kernels, Metal()), refused=refused)
)
"""Kernels in Metal's language, for ``dovetail export``: there is no device for them."""
PLAIN_C = Gpu("c", Backend(lambda launches: source_of(launches.kernels, PlainC()), serial=True))
"""Loops in C, for ``dovetail export``."""
