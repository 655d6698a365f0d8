"""MobileNetV3-Large.

Source: A. Howard et al., "Searching for MobileNetV3", 2019, table 1.  Padding is symmetric, and
squeezed channels are a quarter, as in PyTorch's models.
"""

import onnx

from .builder import NetworkBuilder, Options, Tensor, in_eights

__all__ = ["mobilenet_v3"]

BLOCKS = (
    (3, 16, 16, False, "Relu", 1),
    (3, 64, 24, False, "Relu", 2),
    (3, 72, 24, False, "Relu", 1),
    (5, 72, 40, True, "Relu", 2),
    (5, 120, 40, True, "Relu", 1),
    (5, 120, 40, True, "Relu", 1),
    (3, 240, 80, False, "HardSwish", 2),
    (3, 200, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1),
    (3, 480, 112, True, "HardSwish", 1),
    (3, 672, 112, True, "HardSwish", 1),
    (5, 672, 160, True, "HardSwish", 2),
    (5, 960, 160, True, "HardSwish", 1),
    (5, 960, 160, True, "HardSwish", 1),
)
"""Kernel, expanded and output channels, squeeze and excitation, activation and stride."""

LAST, HEAD = 960, 1280
RESIDUAL_GAIN = 0.25
EXCITATION_GAIN = 3.5
"""Loss of the product with factors of about a half."""


def mobilenet_v3(options: Options) -> onnx.ModelProto:
    """Inverted residuals, some with channels weighed by squeeze and excitation."""
    net = NetworkBuilder("mobilenet_v3", options)
    x = net.conv(net.image(), options.channels(16), 3, stride=2, activation="HardSwish")
    for kernel, wide, channels, excited, activation, stride in BLOCKS:
        sizes = options.channels(wide), options.channels(channels)
        x = _block(net, x, kernel, *sizes, excited=excited, activation=activation, stride=stride)
    x = net.conv(x, options.channels(LAST), 1, activation="HardSwish")
    x = net.dense(net.global_average(x), options.channels(HEAD), "HardSwish")
    return net.model(net.dense(x, options.classes))


def _block(
    net: NetworkBuilder,
    x: Tensor,
    kernel: int,
    wide: int,
    channels: int,
    *,
    excited: bool,
    activation: str,
    stride: int,
) -> Tensor:
    inner = x
    if wide != x.shape[1]:
        inner = net.conv(inner, wide, 1, activation=activation)
    inner = net.conv(
        inner,
        wide,
        kernel,
        stride=stride,
        groups=wide,
        activation=activation,
        name="depthwise",
    )
    if excited:
        inner = _excite(net, inner)
    adds = stride == 1 and x.shape[1] == channels
    gain = (RESIDUAL_GAIN if adds else 1.0) * (EXCITATION_GAIN if excited else 1.0)
    inner = net.conv(inner, channels, 1, activation="", gain=gain)
    return net.add(x, inner) if adds else inner


def _excite(net: NetworkBuilder, x: Tensor) -> Tensor:
    """Channels by factors that two layers find from their averages."""
    narrow = in_eights(x.shape[1] // 4)
    factors = net.conv(net.average(x), narrow, 1, normalized=False, name="squeeze")
    factors = net.conv(
        factors, x.shape[1], 1, activation="HardSigmoid", normalized=False, name="excite"
    )
    return net.scale(x, factors)
