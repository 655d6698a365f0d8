"""A model that is drawn node by node, each computed at once on a first input.

So shapes are known, what ONNX Runtime refuses is left out, and scales fit what they quantise.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .running import IR_VERSION, REFUSED, Array, compute, info, reads, single

__all__ = ["LARGEST", "Drawing", "Scale"]

LARGEST, LARGEST_WHOLE = 6000, 200_000
"""Elements of a tensor, weights included; in networks that run whole."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A quantisation: scale, zero point, element type."""

    scale: np.float32
    zero_point: int
    dtype: str

    def quantize(self, values: Array) -> Array:
        """As QuantizeLinear."""
        limits = np.iinfo(self.dtype)
        steps = np.rint(values.astype(np.float32) / self.scale) + self.zero_point
        return np.clip(steps, limits.min, limits.max).astype(self.dtype)

    def dequantize(self, stored: Array) -> Array:
        """As DequantizeLinear."""
        return ((stored.astype(np.int32) - self.zero_point) * self.scale).astype(np.float32)


@dataclass
class Drawing:
    """values: each tensor's, on the first input.  scales: of those that are dequantised.

    batch: of inputs.  floats: tensors that nodes may read.  ends: those that are outputs in any
    case.  kept: weights: their shape, the axis of channels, their scales if they are quantised.

    quantized: whether results are quantised at once.  unsigned: uint8 more often than int8, the
    other one with the probability ``mixed``.  shared: how often an equal constant is the same one.
    wide: how often results have 16 bits.

    whole: all that it has runs on the accelerator, as far as can be said beforehand: each result is
    quantised to a byte, and there is one image.
    """

    seed: int
    quantized: bool
    opset: int = 17
    batch: int = 1
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    scales: dict[str, Scale] = field(default_factory=dict)
    floats: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    kept: dict[str, tuple[tuple[int, ...], int, Array | None]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    whole: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.rng = np.random.default_rng(self.seed)
        self.unsigned = self.chance(0.5)
        self.mixed = self.random.choice((0.04, 0.04, 0.3))
        self.shared = self.random.choice((0.0, 0.5, 1.0))
        self.wide = 0.0 if self.whole else self.random.choice((0.0, 0.0, 0.0, 0.2))
        self.largest = LARGEST_WHOLE if self.whole else LARGEST

    def chance(self, probability: float) -> bool:
        """True with that probability."""
        return self.random.random() < probability

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self.values[name].shape

    def input(self, shape: tuple[int, ...], spread: float) -> None:
        """A new input of the model; bytes at times."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        values = self.rng.normal(0, spread, shape).astype(np.float32)
        if self.quantized and self.chance(0.7):
            kind = self.fitting(values)
            self.values[name] = kind.quantize(values)
            self.floats.append(self.dequantize(name, kind))
        else:
            self.values[name] = values
            self.floats.append(self.quantize(name) if self.quantized else name)

    def constant(self, value: object) -> str:
        """A constant; the one that is equal already, at times."""
        array = np.asarray(value)
        own = self.chance(1 - self.shared)
        for name, other in () if own else self.constants.items():
            if other.dtype == array.dtype and np.array_equal(other, array):
                return name
        name = f"c{len(self.constants)}"
        self.constants[name] = self.values[name] = array
        return name

    def node(
        self, kind: str, inputs: list[str], results: int = 1, **attributes: object
    ) -> list[str]:
        """A new node's results; none if ONNX Runtime cannot run it, or they are not finite."""
        if "auto_pad" in attributes and _leaves_out(self.shape(inputs[0]), attributes):
            return []
        names = [f"{kind.lower()}{len(self.nodes)}_{n}" for n in range(results)]
        node = helper.make_node(kind, inputs, names, name=names[0][:-2], **attributes)
        given = {name: self.values[name] for name in reads(node)}
        try:
            found = compute(single(node, given, self.opset), given)
        except REFUSED:
            return []
        if any(not each.size or each.size > self.largest for each in found):
            return []
        if any(each.dtype == np.float32 and not np.all(np.isfinite(each)) for each in found):
            return []
        self.nodes.append(node)
        self.values.update(zip(names, found, strict=True))
        return names

    def fitting(self, values: Array) -> Scale:
        """A quantisation that fits values more or less."""
        low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
        factor = self.random.choice((1, 1, 1, 1, self.random.uniform(0.3, 2)))
        if self.chance(0.03):
            factor = 10 ** self.random.uniform(-4, 4)
        scale = np.float32((high - low) / 255 * factor or 1 / 64)
        if self.chance(0.2):
            scale = np.float32(2.0 ** np.rint(np.log2(scale)))
        scale = max(scale, np.float32(1e-30))
        limits = np.iinfo("uint8" if self.unsigned != self.chance(self.mixed) else "int8")
        if self.opset >= 21 and self.chance(self.wide):
            limits = np.iinfo(self.random.choice(("int16", "uint16")))
            scale = np.float32(scale / 256)
        zero = int(np.clip(np.rint(limits.min - low / scale), limits.min, limits.max))
        if self.chance(0.2):
            zero = self.random.choice((0, 0, limits.min, limits.max, 3))
        return Scale(scale, max(zero, limits.min), str(limits.dtype))

    def quantize(self, name: str, like: str | None = None) -> str:
        """A float tensor quantised and dequantised; ``like`` another one, or as it fits."""
        kind = self.scales.get(like or "") or self.fitting(self.values[name])
        stored = self.node("QuantizeLinear", [name, *self._numbers(kind)])[0]
        if self.chance(0.02):
            kind = Scale(kind.scale * np.float32(1.3), 7, kind.dtype)
        return self.dequantize(stored, kind)

    def again(self, name: str, like: str | None = None) -> str:
        """As ``quantize`` in a quantised model; else the tensor itself."""
        return self.quantize(name, like) if self.quantized else name

    def dequantize(self, stored: str, kind: Scale) -> str:
        """The float tensor of bytes."""
        name = self.node("DequantizeLinear", [stored, *self._numbers(kind)])[0]
        self.scales[name] = kind
        return name

    def _numbers(self, kind: Scale) -> list[str]:
        if kind.zero_point == 0 and kind.dtype == "uint8" and self.chance(0.3):
            return [self.constant(kind.scale)]  # what is left out is a uint8 of 0
        zero = np.asarray(kind.zero_point, kind.dtype)
        return [self.constant(kind.scale), self.constant(zero)]

    def weights(self, shape: tuple[int, ...], axis: int, x: str, bias: int = 0) -> list[str]:
        """Weights, whose channels ``axis`` is, and a bias of so many channels if not 0.

        They are those of another layer at times, and none if they are too many.
        """
        alike = [name for name, each in self.kept.items() if each[:2] == (shape, axis)]
        reused = alike and self.chance(0.3)
        names = [self.random.choice(alike)] if reused else self._new_weights(shape, axis)
        if not bias or not names:
            return names
        offsets = self.rng.normal(0, 0.3, bias).astype(np.float32)
        scales = self.kept[names[0]][2]
        if scales is None:
            return [*names, self.constant(offsets)]
        of = self.scales[x].scale if x in self.scales else np.float32(0.01)
        steps = np.rint(offsets / (of * scales)).clip(-1e6, 1e6).astype(np.int32)
        given = [self.constant(steps), self.constant(np.float32(of * scales))]
        given.append(self.constant(np.zeros(scales.shape, np.int32)))
        return [
            *names,
            *self.node("DequantizeLinear", given, **({"axis": 0} if scales.ndim else {})),
        ]

    def _new_weights(self, shape: tuple[int, ...], axis: int) -> list[str]:
        values = self.rng.normal(0, 1 / np.sqrt(max(np.prod(shape[1:]), 1)), shape)
        values *= np.exp(self.rng.normal(0, 0.5))
        if not self.quantized or (self.chance(0.02) and not self.whole):
            name = self.constant(values.astype(np.float32))
            self.kept[name] = (shape, axis, None)
            return [name]
        rest = tuple(d for d in range(len(shape)) if d != axis)
        whole = self.chance(0.4)
        scales = (np.abs(values).max(None if whole else rest) / 127 + 1e-6).astype(np.float32)
        apart = np.ones(len(shape), int)
        apart[axis] = -1
        steps = np.rint(values / (scales if whole else scales.reshape(apart)))
        unsigned = self.unsigned and self.chance(0.3)
        zero = self.random.choice((128, 128, 101, 150, 0, 255)) if unsigned else 0
        low, high, dtype = (0, 255, "uint8") if unsigned else (-128, 127, "int8")
        if self.chance(0.04):  # all at a limit
            steps[...] = self.random.choice((-1000, 1000))
        stored = np.clip(steps + zero, low, high).astype(dtype)
        zeros = np.full(scales.shape, zero, dtype)
        if unsigned and not whole and not self.whole and self.chance(0.1):
            zeros = self.rng.integers(100, 156, scales.shape).astype(dtype)
        given = [self.constant(each) for each in (stored, scales, zeros)]
        names = self.node("DequantizeLinear", given, **({} if whole else {"axis": axis}))
        self.kept |= dict.fromkeys(names, (shape, axis, scales))
        return names

    def model(self, outputs: list[str]) -> onnx.ModelProto:
        """The model with these outputs."""
        graph = helper.make_graph(
            self.nodes,
            "random",
            [info(name, self.values[name]) for name in self.inputs],
            [info(name, self.values[name]) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=IR_VERSION,
        )


def _leaves_out(shape: tuple[int, ...], attributes: Mapping[str, Any]) -> bool:
    """True for windows whose SAME pads would be negative (docs/compiler.md, "Arithmetic")."""
    if not str(attributes.get("auto_pad", "")).startswith("SAME"):
        return False
    kernel = attributes.get("kernel_shape", ())
    strides = attributes.get("strides", (1,) * len(kernel))
    dilations = attributes.get("dilations", (1,) * len(kernel))
    return any(
        (-(-size // stride) - 1) * stride + (taps - 1) * dilation + 1 < size
        for size, taps, stride, dilation in zip(shape[2:], kernel, strides, dilations, strict=False)
    )
