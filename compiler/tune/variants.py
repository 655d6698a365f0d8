"""The kernels of a model under each way to compute its convolutions, and what they add up to."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..front.source import Source
from ..graph.ir import Graph
from ..graph.keys import convolution_key
from ..graph.operators.contractions import Convolution
from ..graph.operators.winograd import TILES
from ..graph.winograd import may_tile
from ..schedule.records import Records
from ..targets.cpu.native import prepared_graph
from ..targets.cpu.segment import EXACT_PASSES, float_passes
from .kernel import Kernel, kernels_of

__all__ = ["DIRECT", "Layers", "layers_of"]

DIRECT = 0
"""The tile of direct products."""


@dataclass(slots=True)
class Layers:
    """kernels: by key.  rest: how often each is called whatever is chosen.

    choices: of each convolution, by its key, each tile's kernels and how often they are called.
    default: the tile that the rule chooses.  constant_bytes: of the network with those.
    """

    kernels: dict[str, Kernel] = field(default_factory=dict)
    rest: Counter[str] = field(default_factory=Counter)
    choices: dict[str, dict[int, Counter[str]]] = field(default_factory=dict)
    default: dict[str, int] = field(default_factory=dict)
    constant_bytes: int = 0

    def chosen(self, costs: Mapping[str, float]) -> dict[str, int]:
        """The tile of each convolution whose kernels cost least; unknown costs are infinite."""
        return {
            key: min(tiles, key=lambda tile, own=tiles: _total(own[tile], costs))  # type: ignore[misc]
            for key, tiles in self.choices.items()
        }

    def total(self, costs: Mapping[str, float], chosen: Mapping[str, int]) -> float:
        """Cost of one run."""
        parts = (_total(self.choices[key][tile], costs) for key, tile in chosen.items())
        return _total(self.rest, costs) + sum(parts)

    def calls(self, chosen: Mapping[str, int]) -> Counter[str]:
        """Calls of each kernel in one run."""
        found = Counter(self.rest)
        for key, tile in chosen.items():
            found += self.choices[key][tile]
        return found


def _total(calls: Counter[str], costs: Mapping[str, float]) -> float:
    return sum(count * costs.get(key, float("inf")) for key, count in calls.items())


class _Forced(dict[str, int]):
    """One tile for every convolution that is asked for."""

    def __init__(self, tile: int) -> None:
        super().__init__()
        self._tile = tile

    def get(self, key: str, default: object = None) -> int:  # type: ignore[override]
        return self._tile


def layers_of(model: Source, dims: Mapping[str, int], winograd: bool) -> Layers:
    """Raises as ``prepared_graph``."""
    graph, passes = prepared_graph(model, dims, winograd)
    keys = _convolutions(graph) if winograd and passes is not EXACT_PASSES else {}
    layers = Layers()
    ready = passes.run(graph)
    layers.constant_bytes = sum(array.nbytes for array in ready.constants.values())
    _count(layers, ready, keys, None)
    if keys:
        for tile in (DIRECT, *TILES):
            forced = float_passes(True, Records(tiles=_Forced(tile)))
            _count(layers, forced.run(graph), keys, tile)
    return layers


def _count(layers: Layers, graph: Graph, keys: Mapping[str, str], tile: int | None) -> None:
    """Add the kernels of a graph; tile: that all convolutions have, None where the rule chose.

    What the rule chose comes first: its kernels are those that default code consists of.
    """
    for place in kernels_of(graph):
        kernel, owner = place.kernel, keys.get(place.origin)
        if tile is None and owner is None:
            layers.rest[kernel.key] += place.calls
        elif tile is None and owner is not None:
            layers.default[owner] = place.tile
            layers.choices.setdefault(owner, {}).setdefault(place.tile, Counter())[kernel.key] += (
                place.calls
            )
        elif owner is not None and tile is not None and tile != layers.default[owner]:
            layers.choices[owner].setdefault(tile, Counter())[kernel.key] += place.calls
        else:
            continue
        layers.kernels.setdefault(kernel.key, kernel)


def _convolutions(graph: Graph) -> dict[str, str]:
    """The keys of convolutions that may be computed by tiles, by the nodes they come from."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        weights = graph.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        if isinstance(node.operator, Convolution) and weights is not None:
            shape = graph.types[node.inputs[0]].shape
            if may_tile(node.operator, weights.shape):
                found[node.origin] = convolution_key(node.operator, shape, weights.shape)
    return found
