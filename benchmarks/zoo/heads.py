"""Networks of the zoo that no library has ready: heads of detectors and segmenters, U-Net, Pelee.

Sources: O. Ronneberger et al., "U-Net", 2015; R. Wang et al., "Pelee", 2018; T. Lin et al.,
"Feature Pyramid Networks", 2017; J. Redmon, A. Farhadi, "YOLOv3", 2018; S. Liu et al., "Path
Aggregation Network", 2018; X. Li et al., "Generalized Focal Loss", 2020.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torchvision.models import detection, resnet18, segmentation
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.ops import Conv2dNormActivation, FeaturePyramidNetwork

__all__ = ["HEADS"]

CLASSES = 10


def block(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Module:
    """Convolution, normalisation, Relu."""
    return Conv2dNormActivation(inputs, outputs, kernel, stride)


class OneOutput(nn.Module):
    """A network of torchvision.models.segmentation without its dictionary."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, image: Tensor) -> Tensor:
        """[N, classes, H, W]."""
        return self.inner(image)["out"]


class Pyramid(nn.Module):
    """ResNet-18 with a feature pyramid of 64 channels and one convolution behind each level."""

    def __init__(self) -> None:
        super().__init__()
        names = {"layer1": "a", "layer2": "b", "layer3": "c", "layer4": "d"}
        self.body = create_feature_extractor(resnet18(), names)
        self.pyramid = FeaturePyramidNetwork([64, 128, 256, 512], 64)
        self.head = nn.Conv2d(64, 5 * CLASSES, 3, padding=1)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """One map a level."""
        return tuple(self.head(level) for level in self.pyramid(self.body(image)).values())


class Ssdlite(nn.Module):
    """SSDLite as far as the boxes' scores and places, before anchors are chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = detection.ssdlite320_mobilenet_v3_large(
            weights=None, weights_backbone=None, num_classes=CLASSES
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and places of all boxes."""
        found = self.inner.head(list(self.inner.backbone(image).values()))
        return found["cls_logits"], found["bbox_regression"]


class UNet(nn.Module):
    """Four levels from 16 channels, transposed convolutions upwards."""

    def __init__(self, width: int = 16, depth: int = 3) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        pairs = list(pairwise(widths))
        self.first = self.double(3, width)
        self.down = nn.ModuleList(self.double(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.joined = nn.ModuleList(self.double(b, a) for a, b in reversed(pairs))
        self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(width, CLASSES, 1)

    @staticmethod
    def double(inputs: int, outputs: int) -> nn.Module:
        """Two convolutions."""
        return nn.Sequential(block(inputs, outputs), block(outputs, outputs))

    def forward(self, image: Tensor) -> Tensor:
        """[N, classes, H, W]."""
        levels = [self.first(image)]
        for down in self.down:
            levels.append(down(self.pool(levels[-1])))
        x = levels.pop()
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(torch.cat([levels.pop(), up(x)], 1))
        return self.last(x)


class PeleeLayer(nn.Module):
    """The two ways of a dense layer: one and two 3x3 convolutions, joined to the input."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        half, inner = growth // 2, 2 * growth
        self.near = nn.Sequential(block(inputs, inner, 1), block(inner, half))
        self.far = nn.Sequential(block(inputs, inner, 1), block(inner, half), block(half, half))

    def forward(self, x: Tensor) -> Tensor:
        """[N, inputs + growth, H, W]."""
        return torch.cat([x, self.near(x), self.far(x)], 1)


class Pelee(nn.Module):
    """PeleeNet with fewer layers a stage."""

    def __init__(self, layers: tuple[int, ...] = (3, 4, 6, 4), growth: int = 32) -> None:
        super().__init__()
        self.first = block(3, 32, 3, 2)
        self.narrow = nn.Sequential(block(32, 16, 1), block(16, 32, 3, 2))
        self.pool, self.join = nn.MaxPool2d(2), block(64, 32, 1)
        stages: list[nn.Module] = []
        width = 32
        for place, count in enumerate(layers):
            stages += [PeleeLayer(width + growth * number, growth) for number in range(count)]
            width += growth * count
            stages.append(block(width, width, 1))
            if place + 1 < len(layers):
                stages.append(nn.AvgPool2d(2, ceil_mode=True))
        self.stages, self.classify = nn.Sequential(*stages), nn.Linear(width, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        """[N, classes]."""
        x = self.first(image)
        x = self.stages(self.join(torch.cat([self.narrow(x), self.pool(x)], 1)))
        return self.classify(x.mean((2, 3)))


class YoloHead(nn.Module):
    """Two scales of boxes: the deeper one is enlarged and joined to the other; boxes decoded."""

    def __init__(self, boxes: int = 3) -> None:
        super().__init__()
        self.body = nn.Sequential(block(3, 16), block(16, 32, 3, 2), block(32, 64, 3, 2))
        self.deep = nn.Sequential(block(64, 128, 3, 2), block(128, 128, 1))
        self.near = block(64 + 128, 64)
        self.heads = nn.ModuleList(nn.Conv2d(c, boxes * (5 + CLASSES), 1) for c in (64, 128))

    def forward(self, image: Tensor) -> Tensor:
        """[N, boxes, 5 + classes]."""
        x = self.body(image)
        deep = self.deep(x)
        near = self.near(torch.cat([x, interpolate(deep, scale_factor=2.0)], 1))
        found = []
        for head, level in zip(self.heads, (near, deep), strict=True):
            boxes = head(level)
            count, _, height, width = boxes.shape
            boxes = boxes.reshape(count, -1, 5 + CLASSES, height, width).permute(0, 1, 3, 4, 2)
            found.append(torch.sigmoid(boxes).reshape(count, -1, 5 + CLASSES))
        return torch.cat(found, 1)


def silu(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Module:
    """Convolution, normalisation, SiLU."""
    return Conv2dNormActivation(inputs, outputs, kernel, stride, activation_layer=nn.SiLU)


class Split(nn.Module):
    """Half of the channels goes through residual pairs; all that they give is joined."""

    def __init__(self, inputs: int, outputs: int, pairs: int = 1) -> None:
        super().__init__()
        half = outputs // 2
        self.first, self.last = silu(inputs, outputs, 1), silu(half * (2 + pairs), outputs, 1)
        self.pairs = nn.ModuleList(
            nn.Sequential(silu(half, half), silu(half, half)) for _ in range(pairs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[N, outputs, H, W]."""
        parts = list(self.first(x).chunk(2, 1))
        for pair in self.pairs:
            parts.append(parts[-1] + pair(parts[-1]))
        return self.last(torch.cat(parts, 1))


class YoloNeck(nn.Module):
    """Pooled pyramid, ways up and down between three scales, boxes as expected distances."""

    def __init__(self, width: int = 16, bins: int = 16) -> None:
        super().__init__()
        a, b, c = 4 * width, 8 * width, 16 * width
        self.stem = nn.Sequential(silu(3, width, 3, 2), silu(width, 2 * width, 3, 2))
        self.body = nn.ModuleList(
            nn.Sequential(silu(i, o, 3, 2), Split(o, o))
            for i, o in ((2 * width, a), (a, b), (b, c))
        )
        self.narrow, self.pool, self.wide = silu(c, b, 1), nn.MaxPool2d(5, 1, 2), silu(4 * b, c, 1)
        self.up = nn.ModuleList((Split(b + c, b), Split(a + b, a)))
        self.down = nn.ModuleList((silu(a, a, 3, 2), silu(b, b, 3, 2)))
        self.joined = nn.ModuleList((Split(a + b, b), Split(b + c, c)))
        self.boxes = nn.ModuleList(nn.Conv2d(i, 4 * bins, 1) for i in (a, b, c))
        self.classes = nn.ModuleList(nn.Conv2d(i, CLASSES, 1) for i in (a, b, c))
        self.bins, self.distances = bins, nn.Conv2d(bins, 1, 1, bias=False)
        self.distances.weight.data[:] = torch.arange(float(bins)).view(1, bins, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        """[N, 4 + classes, boxes]."""
        x = self.stem(image)
        a, b, c = [x := each(x) for each in self.body]
        pooled = [self.narrow(c)]
        for _ in range(3):
            pooled.append(self.pool(pooled[-1]))
        c = self.wide(torch.cat(pooled, 1))
        b = self.up[0](torch.cat([interpolate(c, scale_factor=2.0), b], 1))
        a = self.up[1](torch.cat([interpolate(b, scale_factor=2.0), a], 1))
        b = self.joined[0](torch.cat([self.down[0](a), b], 1))
        c = self.joined[1](torch.cat([self.down[1](b), c], 1))
        levels = (a, b, c)
        found = [head(x).flatten(2) for head, x in zip(self.boxes, levels, strict=True)]
        scores = [head(x).flatten(2) for head, x in zip(self.classes, levels, strict=True)]
        boxes = torch.cat(found, 2)
        bins = boxes.view(len(boxes), 4, self.bins, -1).transpose(1, 2).softmax(1)
        return torch.cat([self.distances(bins).squeeze(1), torch.sigmoid(torch.cat(scores, 2))], 1)


def _segmenter(make: Callable[..., nn.Module]) -> Callable[[], nn.Module]:
    return lambda: OneOutput(make(weights=None, weights_backbone=None, num_classes=CLASSES))


def _fcn() -> nn.Module:
    body = create_feature_extractor(resnet18(), {"layer4": "out"})
    head = segmentation.fcn.FCNHead(512, CLASSES)
    return OneOutput(segmentation.fcn.FCN(body, head))


HEADS: dict[str, Callable[[], nn.Module]] = {
    "deeplab_mobilenet_v3": _segmenter(segmentation.deeplabv3_mobilenet_v3_large),
    "fcn_resnet18": _fcn,
    "fpn_resnet18": Pyramid,
    "lraspp_mobilenet_v3": _segmenter(segmentation.lraspp_mobilenet_v3_large),
    "pelee": Pelee,
    "ssdlite_mobilenet_v3": Ssdlite,
    "unet": UNet,
    "yolo_head": YoloHead,
    "yolo_neck": YoloNeck,
}
"""Makes each network, with random weights."""
