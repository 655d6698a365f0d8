"""Well-known networks as float ONNX models with seeded random weights, for benchmarks and tests.

Topologies, channels and strides are those of the publications, so shapes, parameters and
multiply-accumulates are too; the weights are random, scaled such that activations keep their size
from layer to layer.

    python -m examples.networks resnet18 -o resnet18.onnx
"""

from collections.abc import Callable

import onnx

from .bert import bert, bert_mini, calibration_tokens
from .builder import Options
from .decoder import calibration_steps, decoder
from .detector import shuffle_detector
from .images import calibration_images
from .mobilenet import mobilenet_v1, mobilenet_v2
from .mobilenet_v3 import mobilenet_v3
from .plain import tiny_yolo, vgg11, vgg16
from .resnet import resnet18, resnet50
from .squeezenet import squeezenet
from .unbalanced import unbalanced
from .vision import deit_tiny

__all__ = [
    "NETWORKS",
    "Options",
    "bert",
    "bert_mini",
    "build",
    "calibration_images",
    "calibration_steps",
    "calibration_tokens",
    "decoder",
    "shuffle_detector",
    "unbalanced",
]

NETWORKS: dict[str, Callable[[Options], onnx.ModelProto]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3": mobilenet_v3,
    "squeezenet": squeezenet,
    "vgg11": vgg11,
    "vgg16": vgg16,
    "tiny_yolo": tiny_yolo,
    "deit_tiny": deit_tiny,
}
"""By name: a function from options to the model, input ``image``, float32[1, 3, size, size]."""


def build(name: str, options: Options | None = None) -> onnx.ModelProto:
    """The network ``name``; 224x224, with batch normalisation folded, unless ``options`` differ.

    Raises KeyError for a name that is not in ``NETWORKS``.
    """
    return NETWORKS[name](options or Options())
