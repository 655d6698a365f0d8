"""ResNet-18 and ResNet-50.

Source: K. He et al., "Deep Residual Learning for Image Recognition", 2015; ResNet-50 with the
stride in the 3x3 convolution of a bottleneck, as frameworks have it ("v1.5", 4.09 G MAC; the
publication's own has 3.86 G).
"""

import onnx

from .builder import NetworkBuilder, Options, Tensor

__all__ = ["resnet18", "resnet50"]

RESIDUAL_GAIN = 0.25
"""Gain of the last convolution of a block: sums of many blocks stay in range."""


def resnet18(options: Options) -> onnx.ModelProto:
    """Two blocks of two 3x3 in each of four stages."""
    net = NetworkBuilder("resnet18", options)
    x = _stem(net)
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            x = _basic(net, x, options.channels(channels), 2 if stage and not block else 1)
    return net.model(net.dense(net.global_average(x), options.classes))


def resnet50(options: Options) -> onnx.ModelProto:
    """3, 4, 6 and 3 bottlenecks of 1x1, 3x3, 1x1."""
    net = NetworkBuilder("resnet50", options)
    x = _stem(net)
    for stage, (channels, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            x = _bottleneck(net, x, options.channels(channels), 2 if stage and not block else 1)
    return net.model(net.dense(net.global_average(x), options.classes))


def _stem(net: NetworkBuilder) -> Tensor:
    x = net.conv(net.image(), net.options.channels(64), 7, stride=2)
    return net.max_pool(x, 3, 2, pad=1)


def _basic(net: NetworkBuilder, x: Tensor, channels: int, stride: int) -> Tensor:
    inner = net.conv(x, channels, 3, stride=stride)
    inner = net.conv(inner, channels, 3, activation="", gain=RESIDUAL_GAIN)
    return net.add(inner, _shortcut(net, x, channels, stride), "Relu")


def _bottleneck(net: NetworkBuilder, x: Tensor, channels: int, stride: int) -> Tensor:
    inner = net.conv(x, channels, 1)
    inner = net.conv(inner, channels, 3, stride=stride)
    inner = net.conv(inner, 4 * channels, 1, activation="", gain=RESIDUAL_GAIN)
    return net.add(inner, _shortcut(net, x, 4 * channels, stride), "Relu")


def _shortcut(net: NetworkBuilder, x: Tensor, channels: int, stride: int) -> Tensor:
    if stride == 1 and x.shape[1] == channels:
        return x
    return net.conv(x, channels, 1, stride=stride, activation="", name="shortcut")
