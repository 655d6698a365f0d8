"""The target ``vta``: an accelerator of one configuration."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.errors import ConfigError
from dovetail.isa.frozen import frozen, replace
from dovetail.runtime.parts import Part
from dovetail.vta_sim.timing import time_program

from ...errors import ModelError, TargetError, UnsupportedOperatorError
from ...front.source import Imported, NeedsValueError, Source
from ...graph.ir import Graph
from ...graph.partition import Piece, Placed, Placement, Plan, Refusal, cut, place_nodes
from ...graph.passes.integer_layers.recognition import (
    integer_layers,
)
from ...graph.passes.simplify import simplify
from ...graph.placements import placements
from ...options import CompileOptions
from ...pipeline.trace import Trace
from .accelerate import compile_accelerated, refuse, shaped_graph
from .capabilities import ON_HOST, RUNS_ON_HOST, node_refusals
from .estimates import costs_of
from .passes.sink_transposes import SINK_TRANSPOSES
from .plan_record import PlanRecords

__all__ = ["DEFAULT_CONFIG", "Vta", "find_vta", "require_whole"]

DEFAULT_CONFIG = "zynq7020"


@frozen
class Vta:
    """See ``Target``.

    plans: of the parts compiled so far; others of the same structure are not planned again.
    """

    config: HardwareConfig
    plans: PlanRecords = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """ "vta:CONFIG"."""
        return f"vta:{self.config.name}"

    def load(self, model: Source, dims: Mapping[str, int]) -> Imported:
        """The graph with ``dims`` fixed, for a batch of 1 where that is open."""
        try:
            return model.bind(dims).to_graph_and_rest(batch=1)
        except NeedsValueError as error:
            raise ModelError(f"{error}, and nothing runs before it; compile it for cpu") from None

    def plan(self, model: Imported) -> Plan:
        """Pieces of integer layers that the accelerator has, and those between them."""
        found = integer_layers(model.graph, model.kinds)
        best = self._pieces(found.graph, found.problem)
        if len(best.pieces) > 1:
            plain = simplify(found.graph)
            sunk = SINK_TRANSPOSES.run(plain)
            if sunk is not plain:
                with suppress(UnsupportedOperatorError):
                    other = self._pieces(sunk, found.problem)
                    best = min(best, other, key=lambda each: len(each.pieces))
        listed = placements(model.graph, model.kinds, found, best.placed, best.refusals)
        reason = "its shape, or that of what it reads, depends on data"
        late = (Placement(node, kind, "cpu", reason) for node, kind in model.late.items())
        return Plan(best.pieces, (*listed, *late))

    def _pieces(self, layers: Graph, problem: str | None) -> "_Pieces":
        """The pieces of a graph of integer operators.

        problem: of its recognition, for the error.  Raises UnsupportedOperatorError when no node
        runs on the accelerator.
        """
        graph = shaped_graph(layers, self.config.block, _row_words(self.config))
        refusals = dict(_refusals_on(graph, self.config))
        while True:
            own = [number not in refusals for number in range(len(graph.nodes))]
            placed = place_nodes(graph, own, costs_of(self.config))
            if not any(placed.own):
                reasons = [each.reason for each in refusals.values() if each.reason != RUNS_ON_HOST]
                problems = [problem] if problem else reasons[:1]
                problems.append("no node of the model runs on the accelerator; compile it for cpu")
                raise UnsupportedOperatorError("; ".join(problems))
            pieces = cut(placed, beside=lambda node: isinstance(node.operator, ON_HOST))
            more = self._refusals(graph, pieces, refusals)
            if not more:
                return _Pieces(pieces, placed, refusals)
            refusals |= more

    def _refusals(
        self, graph: Graph, pieces: tuple[Piece, ...], known: Mapping[int, Refusal]
    ) -> dict[int, Refusal]:
        """Nodes of ``graph`` that the accelerator does not run in one of these pieces after all;
        none of them is ``known``.
        """
        for piece in pieces:
            refusal = refuse(piece.graph, self.config.block) if piece.own else None
            if refusal is None:
                continue
            made = {node.output for node in piece.graph.nodes}
            left = [(n, node) for n, node in enumerate(graph.nodes) if n not in known]
            for chosen in (
                (n for n, node in left if node.origin == refusal.origin),
                # A piece of its own, what is made of constants alone is known beforehand.
                (n for n, node in left if graph.constants.keys() >= set(node.inputs)),
                # One whose table changes nothing is gone: the output is what the host makes.
                (n for n, node in left if refusal.output in node.outputs),
                # Names alone, such as parts of a tensor, are none of the accelerator's work.
                (n for n, node in left),
            ):
                found = {n: refusal for n in chosen if graph.nodes[n].output in made}
                if found:
                    return found
        return {}

    def compile(
        self, piece: Piece, kinds: Mapping[str, str], options: CompileOptions, trace: Trace
    ) -> Part:
        """As ``Target``.  All pieces of a model share the effort of one."""
        options.require_fp32(self.name)
        options = replace(options, effort=options.effort * piece.share)
        return compile_accelerated(
            piece.graph, self.config, options, trace, time_program, self.plans
        )

    def compile_open(self, model: Source, dims: Mapping[str, int], options: CompileOptions) -> Part:
        """Never asked for: ``load`` always gives a graph."""
        raise ModelError("the accelerator runs models of fixed sizes only")


@frozen
class _Pieces:
    """Pieces in the order they run, where each node runs, and why some run on the CPU."""

    pieces: tuple[Piece, ...]
    placed: Placed
    refusals: Mapping[int, Refusal]


def require_whole(layers: Graph, config: HardwareConfig) -> None:
    """Raise UnsupportedOperatorError for integer operators that this configuration does not run."""
    graph = shaped_graph(layers, config.block, _row_words(config))
    for each in _refusals_on(graph, config).values():
        if each.reason != RUNS_ON_HOST:
            raise UnsupportedOperatorError(each.reason)


def _refusals_on(graph: Graph, config: HardwareConfig) -> Mapping[int, Refusal]:
    """As ``node_refusals``, with what the configuration has."""
    depths = config.act_depth, config.tap_depth, config.wgt_depth
    return node_refusals(graph, config.block, config.fixed_rounding, _row_words(config), depths)


def _row_words(config: HardwareConfig) -> int:
    """Words of PAR for parameters of rows."""
    return config.par_depth if config.row_parameters else 0


def find_vta(which: str | HardwareConfig) -> Vta:
    """The target of a configuration, by its name or itself.

    Raises TargetError when there is none of this name.
    """
    if isinstance(which, HardwareConfig):
        return Vta(which)
    try:
        return Vta(find_config(which or DEFAULT_CONFIG))
    except ConfigError as error:
        raise TargetError(f"target 'vta:{which}': {error}") from None
