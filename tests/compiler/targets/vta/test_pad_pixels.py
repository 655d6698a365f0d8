"""Constants beside an image's channels."""

import numpy as np
import pytest

from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.movement import Concatenate
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.pad_pixels import PAD_PIXELS


@pytest.mark.parametrize(
    ("count", "dtype", "layers"), [(1, "int8", 1), (2, "int8", 0), (1, "bool", 0)]
)
def test_only_bytes_of_one_image_are_joined_by_a_layer(count: int, dtype: str, layers: int) -> None:
    """The flags of a mask are not, nor the rows of several tokens."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((count, 1, 1, 8), dtype))
    one = builder.constant("one", np.ones((count, 1, 1, 4), dtype))
    joined = builder.node(Concatenate(3), (x, one), "joined", "join")
    found = PAD_PIXELS.run(builder.build((joined,)))
    assert sum(isinstance(node.operator, Conv2d) for node in found.nodes) == layers
