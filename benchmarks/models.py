"""The networks that benchmarks run: those of ``examples/networks``, quantised once and kept in the
cache, and the real ones of ``../shared/models`` where there are any.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx

from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.isa.cache import cache_directory

__all__ = ["SHARED", "ModelFile", "models"]

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "models"
SOURCES = (ROOT / "examples" / "networks", ROOT / "compiler" / "front" / "onnx" / "quantize")
"""Sources that a quantised network depends on."""
SAMPLES = 4

REAL = {
    "ic_resnet8": "mlperf_tiny/ic_resnet8_int8.onnx",
    "vww_mbv1": "mlperf_tiny/vww_mbv1_int8.onnx",
    "kws_dscnn": "mlperf_tiny/kws_dscnn_int8.onnx",
    "ad01": "mlperf_tiny/ad01_int8.onnx",
    "mobilenet_v2_int8": "mobilenet_v2/mobilenet_v2_int8.onnx",
    "mobilenet_v1_uint8": "mobilenet_v1/mobilenet_v1_0.25_128_uint8.onnx",
}
"""The four of MLPerf Tiny, and two of ImageNet."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A quantised model by name; ``path`` makes its file when it is not there yet."""

    name: str
    path: Callable[[], Path]


def models() -> dict[str, ModelFile]:
    """Every network that can be had here, by name."""
    sys.path.append(str(ROOT / "examples"))
    from networks import NETWORKS

    found = {name: ModelFile(name, lambda name=name: _synthetic(name)) for name in NETWORKS}
    for name, file in REAL.items():
        path = SHARED / file
        if path.is_file():
            found[name] = ModelFile(name, lambda path=path: path)
    return found


def _synthetic(name: str) -> Path:
    """The network at 224x224, quantised by smooth random images."""
    from networks import Options, build, calibration_images

    path = cache_directory() / "networks" / f"{name}-{_sources_hash()}.onnx"
    if path.is_file():
        return path
    options = Options()
    samples = ({"image": image[None]} for image in calibration_images(SAMPLES, options.size))
    quantized = quantize_model(build(name, options), samples)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    onnx.save(quantized.model, part)
    part.replace(path)
    return path


def _sources_hash() -> str:
    digest = hashlib.sha256(f"{SAMPLES}".encode())
    for folder in SOURCES:
        for source in sorted(folder.glob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
