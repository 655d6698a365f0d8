"""Networks that are one chain: VGG-11, VGG-16 and tiny YOLOv2.

Source: K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks", 2014, columns A and D;
J. Redmon, A. Farhadi, "YOLO9000", 2016, and Darknet's ``yolov2-tiny-voc.cfg`` (6.97 billion
operations at 416x416).
"""

import onnx

from .builder import NetworkBuilder, Options

__all__ = ["tiny_yolo", "vgg11", "vgg16"]

VGG11_STAGES = ((64,), (128,), (256, 256), (512, 512), (512, 512))
VGG16_STAGES = ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3)
YOLO_CHANNELS = (16, 32, 64, 128, 256, 512)
YOLO_OUTPUTS = 5 * (5 + 20)
"""Five boxes a cell: place, size, confidence and the twenty classes of VOC."""


def vgg11(options: Options) -> onnx.ModelProto:
    """Eight 3x3 convolutions, five pools, three dense layers."""
    return _vgg("vgg11", VGG11_STAGES, options)


def vgg16(options: Options) -> onnx.ModelProto:
    """Thirteen 3x3 convolutions, five pools, three dense layers."""
    return _vgg("vgg16", VGG16_STAGES, options)


def _vgg(name: str, stages: tuple[tuple[int, ...], ...], options: Options) -> onnx.ModelProto:
    net = NetworkBuilder(name, options)
    x = net.image()
    for stage in stages:
        for channels in stage:
            x = net.conv(x, options.channels(channels), 3, normalized=False)
        x = net.max_pool(x, 2, 2)
    x = net.flatten(x)
    for _ in range(2):
        x = net.dense(x, options.channels(4096), "Relu")
    return net.model(net.dense(x, options.classes))


def tiny_yolo(options: Options) -> onnx.ModelProto:
    """Nine convolutions with leaky activations, six pools; boxes float32[1, 125, H/32, W/32]."""
    net = NetworkBuilder("tiny_yolo", options)
    x = net.image()
    for number, channels in enumerate(YOLO_CHANNELS):
        x = net.conv(x, options.channels(channels), 3, activation="LeakyRelu")
        last = number == len(YOLO_CHANNELS) - 1
        x = net.max_pool(x, 2, 1, pad_after=1) if last else net.max_pool(x, 2, 2)
    for _ in range(2):
        x = net.conv(x, options.channels(1024), 3, activation="LeakyRelu")
    return net.model(net.conv(x, YOLO_OUTPUTS, 1, activation="", normalized=False))
