"""Models that consist of integer layers."""

from ..errors import UnsupportedOperatorError
from ..graph.ir import Graph
from ..graph.passes.integer_layers.recognition import integer_layers
from .source import Source

__all__ = ["integer_graph"]


def integer_graph(model: Source) -> Graph:
    """The graph of a model that consists of integer layers; its open batch is 1.

    A front end that makes integer operators may also make others.

    Raises ModelError, UnsupportedOperatorError for one that does not.
    """
    imported = model.to_graph(batch=1)
    try:
        return integer_layers(imported.graph, imported.kinds).require()
    except UnsupportedOperatorError as error:
        raise UnsupportedOperatorError(
            f"{error}; required a model that the accelerator runs as a whole, but for its first "
            "and last nodes; dovetail profile MODEL --target vta:FILE.toml measures others"
        ) from None
