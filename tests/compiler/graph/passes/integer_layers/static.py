"""Float models as ONNX Runtime's own quantiser writes them, held to ONNX Runtime on targets."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import AcceleratorPart, accelerator_part

from .models import F32, Array, ModelBuilder, reference

__all__ = ["Net", "check_on_targets", "conv", "statically_quantized"]

Net = Callable[[ModelBuilder, str], str]
"""Adds float nodes that read a tensor; the name of their result."""


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, shape: tuple[int, ...]) -> None:
        rng = np.random.default_rng(7)
        self.left = [{"x": _normal(rng, shape)} for _ in range(4)]

    def get_next(self) -> dict[str, Array] | None:
        """A sample; None after the last."""
        return self.left.pop() if self.left else None


def conv(
    b: ModelBuilder, x: str, channels: int, outputs: int, size: int = 1, **attributes: object
) -> str:
    """A convolution of float weights, ``size`` high and wide, of the same image size."""
    rng = np.random.default_rng(channels + outputs)
    weights = _normal(rng, (outputs, channels, size, size)) / F32(np.sqrt(channels) * size)
    bias = b.constant(_normal(rng, (outputs,)) / F32(4))
    pads = [size // 2] * 4
    return b.node("Conv", [x, b.constant(weights.astype(F32)), bias], pads=pads, **attributes)


def statically_quantized(
    net: Net, shape: Sequence[int], *, unsigned: bool = False, **options: object
) -> onnx.ModelProto:
    """``net`` of a float input ``x`` of ``shape``, by quantize_static."""
    b = ModelBuilder()
    model = b.build({"x": ("float32", shape)}, net(b, "x"), "float32", 17)
    kind = QuantType.QUInt8 if unsigned else QuantType.QInt8
    with TemporaryDirectory() as folder:
        path = Path(folder) / "quantized.onnx"
        quantize_static(
            model,
            path,
            _Samples(tuple(shape)),
            quant_format=QuantFormat.QDQ,
            activation_type=kind,
            weight_type=QuantType.QInt8,
            **options,
        )
        return onnx.load(path)


def check_on_targets(
    model: onnx.ModelProto, targets: Sequence[str] = ("cpu", "vta:tiny"), whole: bool = True
) -> list[str]:
    """Hold a model's float outputs to ONNX Runtime's; the kinds of the accelerator's layers.

    whole: required that the accelerator runs all of it.
    """
    (tensor,) = model.graph.input
    shape = [each.dim_value for each in tensor.type.tensor_type.shape.dim]
    x = _normal(np.random.default_rng(3), tuple(shape))
    wanted, kinds = reference(model, {tensor.name: x}), []
    for target in targets:
        module = compile(model, target)
        if target != "cpu":
            assert not whole or [type(part) for part in module.parts] == [AcceleratorPart]
            kinds = [layer.kind for layer in accelerator_part(module).layers]
        found = next(iter(run(module, {tensor.name: x}).outputs.values()))
        np.testing.assert_array_equal(found, wanted, err_msg=target)
    return kinds


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return (rng.normal(size=shape) * 1.5).astype(F32)
