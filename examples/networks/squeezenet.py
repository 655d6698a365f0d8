"""SqueezeNet 1.1.

Source: F. Iandola et al., "SqueezeNet", 2016; version 1.1 as its authors published it.
"""

import onnx

from .builder import NetworkBuilder, Options, Tensor

__all__ = ["squeezenet"]

FIRES = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256)))
"""Squeezed and expanded channels of the fire modules, in three groups, each behind a pool."""


def squeezenet(options: Options) -> onnx.ModelProto:
    """Fire modules: 1x1 to few channels, then 1x1 and 3x3 side by side."""
    net = NetworkBuilder("squeezenet", options)
    x = net.conv(net.image(), options.channels(64), 3, stride=2, pad=0, normalized=False)
    for group in FIRES:
        x = _pool(net, x)
        for squeezed, expanded in group:
            x = _fire(net, x, options.channels(squeezed), options.channels(expanded))
    x = net.conv(x, options.classes, 1, normalized=False)
    return net.model(net.global_average(x))


def _pool(net: NetworkBuilder, x: Tensor) -> Tensor:
    """3x3 with stride 2; windows over the edge count (ceil)."""
    over = (x.shape[2] - 3) % 2
    return net.max_pool(x, 3, 2, pad_after=over)


def _fire(net: NetworkBuilder, x: Tensor, squeezed: int, expanded: int) -> Tensor:
    narrow = net.conv(x, squeezed, 1, normalized=False, name="squeeze")
    sides = [net.conv(narrow, expanded, n, normalized=False, name="expand") for n in (1, 3)]
    return net.concat(*sides)
