"""Targets: what a module is compiled for, as the driver sees them."""

from collections.abc import Mapping
from typing import Protocol

from dovetail.runtime.parts import Part

from ..front.source import Imported, Source
from ..graph.partition import Piece, Plan
from ..options import CompileOptions
from ..pipeline.trace import Trace

__all__ = ["Target"]


class Target(Protocol):
    """Something that models are compiled for; satisfied structurally."""

    @property
    def name(self) -> str:
        """Name of the target in modules: "cpu", "vta:zynq7020"."""
        ...

    def load(self, model: Source, dims: Mapping[str, int]) -> Imported | None:
        """The graph of a model, of the sizes that the target asks for; None for a model that it
        compiles without one, as it runs.

        dims: sizes of symbolic dimensions.
        Raises ModelError, UnsupportedOperatorError for what it cannot take.
        """
        ...

    def plan(self, model: Imported) -> Plan:
        """Pieces of the graph that it runs, with reasons; the CPU runs the others.

        Raises UnsupportedOperatorError, ModelError when it runs nothing of it.
        """
        ...

    def compile(
        self, piece: Piece, kinds: Mapping[str, str], options: CompileOptions, trace: Trace
    ) -> Part:
        """The part of a module that computes a piece: its own passes, then its code.

        kinds: the model's operators, by the names of its nodes.
        Raises UnsupportedOperatorError, DoesNotFitError.
        """
        ...

    def compile_open(self, model: Source, dims: Mapping[str, int], options: CompileOptions) -> Part:
        """The part of a model without a graph: for one that ``load`` gives None for."""
        ...
