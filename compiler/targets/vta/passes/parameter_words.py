"""Words of PAR that the host makes again for each run, as a tensor of bytes."""

import numpy as np

from ....dtypes import DType
from ....graph.ir import GraphBuilder
from ....graph.operators.elementwise import Binary, BinaryFunction, Bitcast, Cast
from ....graph.operators.movement import Concatenate, Reshape

__all__ = ["parameter_words"]

SCALE_BYTES = 4


def parameter_words(builder: GraphBuilder, scales: str, lanes: int, stem: str) -> str:
    """int8[1, 1, 8 * W, lanes] of float32[W * lanes]: words with biases of 0.

    All nodes are general ones, for the host.
    """
    count = builder.types[scales].elements
    stem, words = f"{stem}/words", count // lanes
    bits = builder.node(Bitcast(DType.INT32), (scales,), stem, stem)
    parts = []
    for place in range(SCALE_BYTES):
        part = bits
        if place:
            by = builder.constant(f"{stem}/shift", np.array(8 * place, np.int32))
            part = builder.node(Binary(BinaryFunction.SHR), (bits, by), stem, stem)
        part = builder.node(Cast(DType.INT8), (part,), stem, stem)
        parts.append(builder.node(Reshape((count, 1)), (part,), stem, stem))
    whole = builder.node(Concatenate(1), tuple(parts), stem, stem)
    whole = builder.node(Reshape((words, SCALE_BYTES * lanes)), (whole,), stem, stem)
    biases = builder.constant(f"{stem}/biases", np.zeros((words, SCALE_BYTES * lanes), np.int8))
    whole = builder.node(Concatenate(1), (biases, whole), stem, stem)
    return builder.node(Reshape((1, 1, 2 * SCALE_BYTES * words, lanes)), (whole,), stem, stem)
