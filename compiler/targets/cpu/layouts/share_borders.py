"""Read what is padded inside of its border, so that it is written once.

    p = pad(t); f(t)  ->  p = pad(t); f(slice(p))

when ``t`` comes from a contraction or from windows: its loops then write it inside the border.
What reads ``t`` are contractions and element-wise nodes; other readers need it whole.  Afterwards
nothing but the pad reads ``t``, so the pass ends.
"""

from dovetail.isa.frozen import frozen

from ....graph.groups import is_border
from ....graph.ir import Graph, Node
from ....graph.operators.contractions import Contract
from ....graph.operators.elementwise import Binary, Bitcast, Cast, MultiplyAdd, Unary
from ....graph.operators.movement import PadTensor, Slice
from ....graph.operators.windows import WindowReduce
from ....graph.rebuild import Rebuilding

__all__ = ["ShareBorders"]

ELEMENTWISE = Binary | Bitcast | Cast | MultiplyAdd | Unary


@frozen
class ShareBorders:
    """See the module's docstring."""

    name: str = "share_borders"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing is padded and read elsewhere."""
        pads = _pads(graph)
        if not pads:
            return graph
        rebuilding, done = Rebuilding(graph), set[int]()
        for node in graph.nodes:
            if id(node) in done:
                continue
            for name in node.inputs:
                if name in pads:
                    rebuilding.names[name] = _inside(rebuilding, graph, name, pads[name])
            rebuilding.copy(node)
            for name in node.outputs:
                if name in pads:
                    done.add(id(pads[name]))
                    rebuilding.copy(pads[name])
        return rebuilding.build()


def _inside(rebuilding: Rebuilding, graph: Graph, name: str, pad: Node) -> str:
    """The inside of the border, for one reader."""
    operator, kind = pad.operator, graph.types[name]
    assert isinstance(operator, PadTensor)
    inside = Slice(operator.before, (1,) * kind.rank, kind.shape)
    own = rebuilding.tensor(pad.output)
    return rebuilding.builder.node(inside, (own,), f"{name}.inside", pad.origin)


def _pads(graph: Graph) -> dict[str, Node]:
    """The pad inside which each tensor with other readers is placed."""
    found = {}
    for name in dict.fromkeys(name for node in graph.nodes for name in node.inputs):
        nodes = graph.consumers(name)
        borders = [node for node in nodes if is_border(graph, node) and node.inputs[0] == name]
        rest = [node for node in nodes if not borders or node is not borders[0]]
        plain = all(isinstance(node.operator, Contract | ELEMENTWISE) for node in rest)
        if not borders or not rest or not plain or name in graph.outputs:
            continue
        maker = graph.producer(name)
        if maker is not None and _is_anchored(graph, maker):
            found[name] = borders[0]
    return found


def _is_anchored(graph: Graph, node: Node) -> bool:
    """True if element-wise nodes lead from a contraction or windows of this shape to ``node``."""
    shape, waiting, seen = graph.types[node.output].shape, [node], set[int]()
    while waiting:
        node = waiting.pop()
        if isinstance(node.operator, Contract | WindowReduce):
            return True
        if not isinstance(node.operator, ELEMENTWISE):
            continue
        for name in node.inputs:
            before = graph.producer(name)
            if before and id(before) not in seen and graph.types[name].shape == shape:
                seen.add(id(before))
                waiting.append(before)
    return False
