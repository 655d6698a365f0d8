"""Functions of one tensor: element-wise nodes that together become one of a quantised tensor.

x * sigmoid(x), x * 0.5 * (1 + erf(x / 1.41)), and so on: what is between is not quantised.
"""

from collections.abc import Set

from ..node import OnnxNode
from .model import FloatModel

__all__ = ["PAIRS", "functions_of_one", "is_elementwise", "operands"]

UNARY = (
    *("Abs", "Celu", "Clip", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish"),
    *("Neg", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"),
)
PAIRS = ("Add", "Div", "Max", "Min", "Mul", "Pow", "PRelu", "Sub")
"""Element-wise operators of two tensors, or of one and a number."""


def is_elementwise(node: OnnxNode) -> bool:
    """True if each result follows from one element of each operand."""
    return node.kind in UNARY or (node.kind in PAIRS and len(node.inputs) == 2)


def operands(model: FloatModel, node: OnnxNode) -> tuple[str, ...]:
    """The tensors that an element-wise node reads, except for single numbers."""
    names = node.inputs[:1] if node.kind in UNARY else node.inputs
    single = {name for name in names if name in model.constants and model.constants[name].size == 1}
    return tuple(dict.fromkeys(name for name in names if name not in single))


def functions_of_one(
    model: FloatModel, nodes: Set[str], ends: Set[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The results of functions of one tensor; and those among them that are only between two nodes
    of one function.

    nodes: first outputs of element-wise nodes to look at.  ends: tensors that are quantised in any
    case, at which a chain begins again.  A result between two nodes that something else reads is
    quantised too, so its readers are functions of it.
    """
    quantised = set(ends) | set(model.outputs)
    while True:
        root: dict[str, str] = {}
        for node in model.nodes:
            out = node.outputs[0]
            if out not in nodes:
                continue
            read = {
                name if name in quantised else root.get(name, name)
                for name in operands(model, node)
            }
            if len(read) == 1 and read.isdisjoint(model.constants):
                root[out] = read.pop()
        between = _between(model, root, quantised)
        more = set(root) - quantised - between
        if not more:
            return frozenset(root), between
        quantised |= more


def _between(model: FloatModel, root: dict[str, str], quantised: Set[str]) -> frozenset[str]:
    """Results that only nodes of the same function read."""
    found = set()
    for name, source in root.items():
        readers = model.readers.get(name, ())
        own = all(root.get(each.outputs[0]) == source for each in readers)
        if readers and own and name not in quantised:
            found.add(name)
    return frozenset(found)
