"""Architectures with random weights as ONNX files.  Needs the extra ``zoo``; knows nothing of this
project, so that another environment may run it: ``python export.py FOLDER SIZE NAME...``.
"""

import sys
from pathlib import Path

import timm
import torch
import torchvision
from architectures import ZOO, Architecture, Source
from heads import HEADS
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["export", "file_name"]

SEED = 1
BATCH = 8
OPSET, OLDER_OPSET = 18, 14


def file_name(name: str, size: int) -> str:
    """The name of the file for images of this size."""
    return f"{name}-{size}.onnx"


def export(chosen: Architecture, size: int, path: Path) -> None:
    """Write the network for one image float32[1, 3, size, size].

    Those of timm by the older exporter, whose graphs differ from the newer one's: both are in use.
    """
    torch.manual_seed(SEED)
    network = _network(chosen, size)
    images = _images(BATCH, size)
    _enliven(network, images)
    network.eval()
    newer = chosen.source is not Source.TIMM
    torch.onnx.export(
        network,
        (images[:1],),
        path,
        input_names=["image"],
        opset_version=OPSET if newer else OLDER_OPSET,
        dynamo=newer,
        external_data=False,
        verbose=False,
    )


def _network(chosen: Architecture, size: int) -> nn.Module:
    match chosen.source:
        case Source.HEADS:
            return HEADS[chosen.name]()
        case Source.TIMM:
            more = {"img_size": size} if chosen.fixed else {}
            return timm.create_model(chosen.name, pretrained=False, exportable=True, **more)
        case _:
            more = {"init_weights": False} if chosen.family == "inception" else {}
            made = torchvision.models.get_model(chosen.name, weights=None, **more)
            return _resized(made, size) if hasattr(made, "avgpool") else made


def _resized(network: nn.Module, size: int) -> nn.Module:
    """VGG and AlexNet with a classifier for images of any size: their average pool to 7x7 or 6x6
    does nothing at the usual one, and is left out.
    """
    pool = network.avgpool
    if isinstance(pool, nn.AdaptiveAvgPool2d) and pool.output_size not in (1, (1, 1)):
        place = next(n for n, each in enumerate(network.classifier) if isinstance(each, nn.Linear))
        with torch.no_grad():
            count = network.features(torch.zeros(1, 3, size, size)).numel()
        network.classifier[place] = nn.Linear(count, network.classifier[place].out_features)
        network.avgpool = nn.Identity()
    return network


def _images(count: int, size: int) -> torch.Tensor:
    """Blurred noise, mean 0 and variance about 1: float32[count, 3, size, size]."""
    noise = torch.randn(count, 3, size, size)
    smooth = nn.functional.avg_pool2d(noise, 5, 1, 2)
    return noise / 2 + smooth / smooth.std()


@torch.no_grad()
def _enliven(network: nn.Module, images: torch.Tensor) -> None:
    """Random scales and shifts of normalisations, and statistics as the images give them, so that
    no branch is silent and no activation vanishes or grows without bounds.
    """
    network.eval()
    for name, each in network.named_parameters():
        if name.endswith(("gamma", "layer_scale", "skipinit_gain")):
            each.uniform_(0.3, 1.0)
    for each in network.modules():
        normalises = isinstance(each, nn.LayerNorm | nn.GroupNorm | _BatchNorm)
        if normalises and each.weight is not None:
            each.weight.uniform_(0.5, 1.5)
            if each.bias is not None:
                each.bias.normal_(0, 0.2)
        if isinstance(each, _BatchNorm):
            each.momentum = 1.0
            each.train()
    network(images)


def main() -> None:
    """Write the networks that are not there yet; a failure is told and the next one taken."""
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[3:]:
        chosen = ZOO[name]
        path = folder / file_name(name, chosen.image(size or None))
        if path.is_file() or chosen.source is Source.FILE:
            continue
        part = path.with_suffix(".part")
        try:
            export(chosen, chosen.image(size or None), part)
            part.replace(path)
        except Exception as error:
            # The exporter raises errors of many unrelated classes.
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        else:
            print(f"{name}: {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
