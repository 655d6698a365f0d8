"""Networks whose channels differ much in range, though they compute the same."""

import numpy as np
import onnx
from onnx import numpy_helper

__all__ = ["unbalanced"]


def unbalanced(model: onnx.ModelProto, octaves: int, seed: int = 0) -> onnx.ModelProto:
    """Channels between two convolutions, with or without Relu, times 2^k; the weights that read
    them, by 2^k.

    k is random from ``-octaves`` to ``octaves``.  Powers of two change no digit: the outputs are
    those of ``model``, bit for bit.
    """
    rng, result = np.random.default_rng(seed), onnx.ModelProto()
    result.CopyFrom(model)
    nodes = result.graph.node
    constants = {each.name: each for each in result.graph.initializer}
    for node in nodes:
        reader = _only_conv(result, node.output[0]) if node.op_type == "Conv" else None
        if reader is None:
            continue
        arrays = [numpy_helper.to_array(constants[name]) for name in node.input[1:]]
        factors = np.exp2(rng.integers(-octaves, octaves + 1, len(arrays[0]))).astype(np.float32)
        for name, array in zip(node.input[1:], arrays, strict=True):
            scaled = array * factors.reshape(-1, *(1,) * (array.ndim - 1))
            constants[name].CopyFrom(numpy_helper.from_array(scaled, name))
        name = reader.input[1]
        weights = numpy_helper.to_array(constants[name])
        depthwise = weights.shape[1] == 1
        shape = (-1, 1, 1, 1) if depthwise else (1, -1, 1, 1)
        scaled = weights / factors.reshape(shape)
        constants[name].CopyFrom(numpy_helper.from_array(scaled, name))
    return result


def _only_conv(model: onnx.ModelProto, name: str) -> onnx.NodeProto | None:
    """The convolution that reads tensor ``name``, if nothing else does; a Relu may lie between."""
    readers = [node for node in model.graph.node if name in node.input]
    if len(readers) != 1:
        return None
    if readers[0].op_type == "Relu":
        return _only_conv(model, readers[0].output[0])
    return readers[0] if readers[0].op_type == "Conv" else None
