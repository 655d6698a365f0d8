"""MobileNetV1 and MobileNetV2.

Source: A. Howard et al., "MobileNets", 2017; M. Sandler et al., "MobileNetV2", 2018.  Padding is
symmetric, as in PyTorch's models.
"""

import onnx

from .builder import NetworkBuilder, Options, Tensor

__all__ = ["mobilenet_v1", "mobilenet_v2"]

V1_LAYERS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)
"""Channels and stride of each depthwise and pointwise pair."""

V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks and stride of the first of them: the publication's table 2."""

RESIDUAL_GAIN = 0.25


def mobilenet_v1(options: Options) -> onnx.ModelProto:
    """Depthwise 3x3 and pointwise 1x1, 13 times."""
    net = NetworkBuilder("mobilenet_v1", options)
    x = net.conv(net.image(), options.channels(32), 3, stride=2)
    for channels, stride in V1_LAYERS:
        x = net.conv(x, x.shape[1], 3, stride=stride, groups=x.shape[1], name="depthwise")
        x = net.conv(x, options.channels(channels), 1)
    return net.model(net.dense(net.global_average(x), options.classes))


def mobilenet_v2(options: Options) -> onnx.ModelProto:
    """Inverted residuals with linear bottlenecks."""
    net = NetworkBuilder("mobilenet_v2", options)
    x = net.conv(net.image(), options.channels(32), 3, stride=2, activation="Relu6")
    for expansion, channels, blocks, stride in V2_STAGES:
        for block in range(blocks):
            x = _inverted(net, x, expansion, options.channels(channels), 1 if block else stride)
    last = options.channels(1280) if options.width > 1 else 1280
    x = net.conv(x, last, 1, activation="Relu6")
    return net.model(net.dense(net.global_average(x), options.classes))


def _inverted(net: NetworkBuilder, x: Tensor, expansion: int, channels: int, stride: int) -> Tensor:
    inner, wide = x, expansion * x.shape[1]
    if expansion > 1:
        inner = net.conv(inner, wide, 1, activation="Relu6")
    inner = net.conv(
        inner, wide, 3, stride=stride, groups=wide, activation="Relu6", name="depthwise"
    )
    adds = stride == 1 and x.shape[1] == channels
    gain = RESIDUAL_GAIN if adds else 1.0
    inner = net.conv(inner, channels, 1, activation="", gain=gain)
    return net.add(x, inner) if adds else inner
