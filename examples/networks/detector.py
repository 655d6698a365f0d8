"""A detector of one scale on a shuffled backbone, in the manner of FastestDet.

Source of the backbone: N. Ma et al., "ShuffleNet V2", 2018; of the head: X. Ma, "FastestDet", 2022:
a depthwise 5x5 and a pointwise layer for each of boxes and classes, here as one output.
"""

import onnx

from .builder import NetworkBuilder, Options, Tensor

__all__ = ["shuffle_detector"]

STAGES = ((48, 2), (96, 3), (192, 2))
"""Channels and units of each."""


def shuffle_detector(options: Options) -> onnx.ModelProto:
    """Boxes and classes for each cell of 16x16 pixels."""
    net = NetworkBuilder("shuffle_detector", options)
    x = net.conv(net.image(), options.channels(24), 3, stride=2)
    x = net.max_pool(x, 3, 2, pad=1)
    for channels, units in STAGES[:2]:
        x = _stage(net, x, options.channels(channels), units)
    x = _stage(net, x, options.channels(STAGES[2][0]), STAGES[2][1], stride=1)
    x = net.conv(x, options.channels(96), 1, name="neck")
    boxes, classes = (_head(net, x, count) for count in (5, options.classes))
    return net.model(net.concat(boxes, classes))


def _stage(net: NetworkBuilder, x: Tensor, channels: int, units: int, stride: int = 2) -> Tensor:
    half = channels // 2
    beside = _depthwise(net, x, stride)
    beside = net.conv(beside, half, 1, name="shortcut")
    x = net.shuffle(net.concat(beside, _branch(net, x, half, stride)))
    for _ in range(units - 1):
        kept, changed = net.halves(x)
        x = net.shuffle(net.concat(kept, _branch(net, changed, half, 1)))
    return x


def _branch(net: NetworkBuilder, x: Tensor, channels: int, stride: int) -> Tensor:
    x = net.conv(x, channels, 1, name="expand")
    return net.conv(_depthwise(net, x, stride), channels, 1, name="project")


def _depthwise(net: NetworkBuilder, x: Tensor, stride: int = 1, kernel: int = 3) -> Tensor:
    count = x.shape[1]
    return net.conv(x, count, kernel, stride=stride, groups=count, activation="", name="depthwise")


def _head(net: NetworkBuilder, x: Tensor, outputs: int) -> Tensor:
    x = net.conv(_depthwise(net, x, kernel=5), x.shape[1], 1, name="head")
    return net.conv(x, outputs, 1, activation="", normalized=False, name="output")
