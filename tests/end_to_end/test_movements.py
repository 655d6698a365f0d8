"""Channels and pixels that move between layers: shuffled, picked, cut, skipped and repeated."""

import numpy as np
import pytest

from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder
from tests.compiler.graph.passes.integer_layers.static import (
    Net,
    check_on_targets,
    conv,
    statically_quantized,
)

CHANNELS = 8
HEIGHT, WIDTH = 6, 4


def _numbers(b: ModelBuilder, *values: int) -> str:
    return b.constant(np.array(values, np.int64))


def _slice(b: ModelBuilder, x: str, axis: int, first: int, end: int, step: int = 1) -> str:
    limits = [_numbers(b, each) for each in (first, end, axis, step)]
    return b.node("Slice", [x, *limits])


def _shuffle(b: ModelBuilder, x: str) -> str:
    size = (HEIGHT, WIDTH)
    apart = b.node("Reshape", [x, _numbers(b, 1, 2, CHANNELS // 2, *size)])
    turned = b.node("Transpose", [apart], perm=[0, 2, 1, 3, 4])
    return b.node("Reshape", [turned, _numbers(b, 1, CHANNELS, *size)])


def _halves(b: ModelBuilder, x: str) -> str:
    """As in ShuffleNet: one half passes by, and the whole is shuffled."""
    left, right = _slice(b, x, 1, 0, 3), _slice(b, x, 1, 3, 8)
    right = conv(b, conv(b, right, 5, 5, 3, group=1), 5, 5)
    return _shuffle(b, b.node("Concat", [left, right], axis=1))


def _focus(b: ModelBuilder, x: str) -> str:
    parts = [
        _slice(b, _slice(b, x, 2, down, 99, 2), 3, across, 99, 2)
        for across in (0, 1)
        for down in (0, 1)
    ]
    return b.node("Concat", parts, axis=1)


def _resized(b: ModelBuilder, x: str, down: float, across: float) -> str:
    scales = b.constant(np.array([1, 1, down, across], F32))
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return b.node("Resize", [x, "", scales], mode="nearest", **how)


def _joined(b: ModelBuilder, x: str) -> str:
    return b.node("Concat", [conv(b, x, CHANNELS, 3), conv(b, x, CHANNELS, 5)], axis=1)


def _padded(b: ModelBuilder, x: str, mode: str, *pads: int) -> str:
    return b.node("Pad", [x, _numbers(b, 0, 0, *pads[:2], 0, 0, *pads[2:])], mode=mode)


def _pooled(b: ModelBuilder, x: str, kind: str, **attributes: object) -> str:
    return b.node(kind, [x], **attributes)


NETS: dict[str, tuple[Net, int]] = {
    "shuffled": (_shuffle, 8),
    "halves": (_halves, 8),
    "picked": (lambda b, x: b.node("Gather", [x, _numbers(b, 3, 1, 1, 7, 0)], axis=1), 5),
    "reversed": (lambda b, x: _slice(b, x, 1, -1, -9, -1), 8),
    "a part from within a block": (lambda b, x: _slice(b, x, 1, 3, 8), 5),
    "a sum of parts": (
        lambda b, x: b.node("Add", [_slice(b, x, 1, 0, 3), _slice(b, x, 1, 3, 6)]),
        3,
    ),
    "a sum with uneven parts": (lambda b, x: b.node("Add", [x, _joined(b, x)]), 8),
    "uneven parts in groups": (lambda b, x: conv(b, _joined(b, x), 4, 8, 3, group=2), 8),
    "the input as a part": (lambda b, x: b.node("Concat", ["x", conv(b, x, 8, 5)], axis=1), 8),
    "two borders": (
        lambda b, x: b.node("MaxPool", [conv(b, x, 8, 8, 3)], kernel_shape=[3, 3], pads=[1] * 4),
        8,
    ),
    "depth to space": (lambda b, x: b.node("DepthToSpace", [x], blocksize=2), 2),
    "depth to space, by columns": (
        lambda b, x: b.node("DepthToSpace", [x], blocksize=2, mode="CRD"),
        2,
    ),
    "repeated": (lambda b, x: b.node("Tile", [x, _numbers(b, 1, 2, 1, 3)]), 16),
    "space to depth": (lambda b, x: b.node("SpaceToDepth", [x], blocksize=2), 32),
    "focus": (_focus, 32),
    "cut": (lambda b, x: _slice(b, _slice(b, x, 2, 1, -1), 3, 1, 4), 8),
    "half as large again": (lambda b, x: _resized(b, x, 1.5, 1.5), 8),
    "a border": (lambda b, x: _padded(b, x, "constant", 1, 2, 1, 0), 8),
    "a border of rows of its own": (lambda b, x: _padded(b, x, "reflect", 2, 1, 1, 1), 8),
    "a border of its edges": (lambda b, x: _padded(b, x, "edge", 0, 1, 1, 2), 8),
    "a border of zeros before a maximum": (
        lambda b, x: _pooled(
            b, _padded(b, x, "constant", 0, 0, 1, 1), "MaxPool", kernel_shape=[2, 2]
        ),
        8,
    ),
    "an average with its border": (
        lambda b, x: _pooled(
            b, x, "AveragePool", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1
        ),
        8,
    ),
    "the largest of all": (lambda b, x: _pooled(b, x, "GlobalMaxPool"), 8),
    "the largest of a row": (lambda b, x: _pooled(b, x, "ReduceMax", axes=[3]), 8),
    "the mean of a column": (lambda b, x: _pooled(b, x, "ReduceMean", axes=[2]), 8),
    "three times as large, linear": (
        lambda b, x: b.node(
            "Resize", [x, "", b.constant(np.array([1, 1, 3, 3], F32))], mode="linear"
        ),
        8,
    ),
    "two pixels, linear": (
        lambda b, x: b.node(
            "Resize",
            [
                _slice(b, _slice(b, x, 2, 1, 2), 3, 1, 3),
                "",
                b.constant(np.array([1, 1, 9, 6], F32)),
            ],
            mode="linear",
        ),
        8,
    ),
    "half as large": (lambda b, x: _resized(b, x, 0.5, 0.5), 8),
}


@pytest.mark.parametrize("name", NETS)
def test_what_moves_between_layers_stays_on_the_accelerator(name: str) -> None:
    function, channels = NETS[name]

    def net(b: ModelBuilder, x: str) -> str:
        return conv(b, function(b, conv(b, x, 3, CHANNELS, 3)), channels, 5)

    model = statically_quantized(net, (1, 3, HEIGHT, WIDTH))
    check_on_targets(model, ("cpu", "vta:tiny", "vta:zynq7020"))


def _product(b: ModelBuilder, x: str, channels: int, outputs: int) -> str:
    rng = np.random.default_rng(outputs)
    return b.node("MatMul", [x, b.constant(rng.normal(size=(channels, outputs)).astype(F32))])


@pytest.mark.parametrize("rows", [True, False])
def test_products_of_several_rows_are_convolutions_of_pixels(rows: bool) -> None:
    """A product, a function, a product and a sum, of [1, N, C] or of [1, H, W, C]."""

    def net(b: ModelBuilder, x: str) -> str:
        x = b.node("Transpose", [conv(b, x, 3, 8)], perm=[0, 2, 3, 1])
        x = b.node("Reshape", [x, _numbers(b, 1, HEIGHT * WIDTH, 8)]) if rows else x
        inner = _product(b, x, 8, 6)
        return b.node("Add", [x, _product(b, b.node("Sigmoid", [inner]), 6, 8)])

    model = statically_quantized(net, (1, 3, HEIGHT, WIDTH))
    kinds = check_on_targets(model, ("cpu", "vta:tiny", "vta:zynq7020"))
    assert [kind.split("+")[0] for kind in kinds[:3]] == ["Conv2d"] * 3


def test_what_only_picks_channels_is_part_of_a_convolution() -> None:
    for name, layers in {"shuffled": 2, "reversed": 2, "depth to space": 5}.items():
        function, channels = NETS[name]

        def net(b: ModelBuilder, x: str, function: Net = function, count: int = channels) -> str:
            return conv(b, function(b, conv(b, x, 3, CHANNELS, 3)), count, 5)

        model = statically_quantized(net, (1, 3, HEIGHT, WIDTH))
        assert len(check_on_targets(model, ("vta:tiny",))) == layers, name


@pytest.mark.parametrize("start", ["", "Sigmoid"])
def test_results_and_inputs_may_be_uneven(start: str) -> None:
    def net(b: ModelBuilder, x: str) -> str:
        x = b.node(start, [x]) if start else x
        return b.node("Concat", [x, conv(b, x, 3, 5)], axis=1)

    check_on_targets(statically_quantized(net, (1, 3, HEIGHT, WIDTH)))
