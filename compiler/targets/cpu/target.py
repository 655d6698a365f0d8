"""The target ``cpu``: machine code for all of a model."""

from collections.abc import Mapping
from dataclasses import replace

from dovetail.isa.cache import cache_directory
from dovetail.isa.frozen import frozen
from dovetail.runtime.parts import Part

from ...errors import TargetError
from ...front.source import Imported, NeedsValueError, Source
from ...graph.partition import Piece, Plan
from ...graph.replicate import replicate
from ...options import CompileOptions
from ...pipeline.trace import Trace
from .llvm.build import LlvmOptions
from .llvm.target import CpuTarget
from .native import compile_imported, compile_specialising, import_fixed
from .records import read_records

__all__ = ["Cpu", "find_cpu"]


@frozen
class Cpu:
    """See ``Target``.  A model whose sizes stay open goes into the module as it is: the device
    compiles it for the sizes and values that it is given.
    """

    name: str = "cpu"

    def load(self, model: Source, dims: Mapping[str, int]) -> Imported | None:
        """As ``Target``."""
        try:
            return import_fixed(model.bind(dims))
        except NeedsValueError:
            return None

    def plan(self, model: Imported) -> Plan:
        """All of it."""
        return Plan((Piece(model.graph),), ())

    def compile(
        self, piece: Piece, kinds: Mapping[str, str], options: CompileOptions, trace: Trace
    ) -> Part:
        """As ``Target``."""
        imported = Imported(replicate(piece.graph, options.batch), kinds)
        own = replace(_llvm_options(options), check=trace.check)
        return compile_imported(imported, trace, own, options.passes)

    def compile_open(self, model: Source, dims: Mapping[str, int], options: CompileOptions) -> Part:
        """As ``Target``."""
        return compile_specialising(model.bind(dims), _llvm_options(options))


def find_cpu(rest: str) -> Cpu:
    """The target.  Raises TargetError when something follows its name."""
    if rest:
        raise TargetError(f"no target is called 'cpu:{rest}'; required cpu")
    return Cpu()


def _llvm_options(options: CompileOptions) -> LlvmOptions:
    """Raises TargetError for another precision than the model's."""
    options.require_fp32("cpu")
    cpu = CpuTarget.at_level(options.cpu.level).cpu
    return LlvmOptions.of(
        options.cpu,
        cache=cache_directory(),
        records=read_records(options.records, cpu, options.cpu.threads),
        verify=options.verify,
    )
