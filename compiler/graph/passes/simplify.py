"""The passes that every graph goes through after it is imported, in order."""

from ...pipeline.passes import Observer, Pass, Pipeline
from ..ir import Graph
from .convert_layout import ConvertLayout
from .eliminate_dead import EliminateDead
from .fold_constants import FoldConstants
from .fold_lookups import FOLD_LOOKUPS
from .fold_pads import FOLD_PADS
from .split_transposed import SPLIT_TRANSPOSED

__all__ = ["SIMPLIFY", "simplify"]

SIMPLIFY: tuple[Pass[Graph], ...] = (
    FoldConstants(),
    ConvertLayout(),
    SPLIT_TRANSPOSED,
    FOLD_PADS,
    FOLD_LOOKUPS,
    EliminateDead(),
)


def simplify(graph: Graph, observers: tuple[Observer[Graph], ...] = ()) -> Graph:
    """Run them; ``observers`` are called after each."""
    return Pipeline(SIMPLIFY, observers).run(graph)
