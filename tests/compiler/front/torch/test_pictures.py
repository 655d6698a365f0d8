"""Convolution, pools, resizing and sampling of torch, against loops and known weights."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.front.torch.columns import col2im, im2col
from dovetail.compiler.front.torch.context import Context
from dovetail.compiler.front.torch.table import CONVERTERS
from dovetail.compiler.graph.emitter import Tensor
from dovetail.compiler.graph.formulas import Term
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract
from dovetail.compiler.graph.types import TensorType

from .calls import RNG, call, check

F32, I64 = np.float32, np.int64
LINE = RNG.normal(size=(2, 3, 9)).astype(F32)
PLANE = RNG.normal(size=(1, 2, 4, 5)).astype(F32)


def pooled(
    x: np.ndarray, k: int, stride: int, pad: int, dilation: int, ceil_mode: bool
) -> list[list[int]]:
    """The places of each window of a line, those outside left out."""
    size = x.shape[-1]
    room = size + 2 * pad - dilation * (k - 1) - 1
    count = -(-room // stride) + 1 if ceil_mode else room // stride + 1
    if ceil_mode and (count - 1) * stride >= size + pad:
        count -= 1
    starts = [n * stride - pad for n in range(count)]
    return [[s + j * dilation for j in range(k) if 0 <= s + j * dilation < size] for s in starts]


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("k", "stride", "pad"), [(3, 2, 1), (2, 3, 1), (4, 4, 0), (2, 5, 1)])
def test_pools_take_the_windows_that_begin_inside(
    k: int, stride: int, pad: int, ceil_mode: bool
) -> None:
    for dilation in (1, 2):
        windows = pooled(LINE, k, stride, pad, dilation, ceil_mode)
        most = np.stack([LINE[..., at].max(-1) for at in windows], -1)
        places = np.stack([np.array(at)[LINE[..., at].argmax(-1)] for at in windows], -1)
        given = (LINE, k, stride, pad, dilation, ceil_mode)
        check("aten.max_pool1d", given, {}, most)
        check("aten.max_pool1d_with_indices", given, {}, (most, places))
    windows = pooled(LINE, k, stride, pad, 1, ceil_mode)
    own = np.stack([LINE[..., at].mean(-1) for at in windows], -1)
    check("aten.avg_pool1d", (LINE, k, stride, pad, ceil_mode, False), {}, own)
    over = np.stack([LINE[..., at].sum(-1) / 5 for at in windows], -1)
    check("aten.avg_pool1d", (LINE, k, stride, pad, ceil_mode, True, 5), {}, over)
    # Padding counts, but for what ceil_mode adds behind it.
    counts = [min(n * stride + k, 9 + 2 * pad) - n * stride for n in range(len(windows))]
    full = [LINE[..., at].sum(-1) / n for at, n in zip(windows, counts, strict=True)]
    check("aten.avg_pool1d", (LINE, k, stride, pad, ceil_mode), {}, np.stack(full, -1))


def test_pools_take_a_tensor_without_a_batch_and_the_kernels_stride() -> None:
    parts = PLANE[0, :, :, :4].reshape(2, 2, 2, 2, 2)
    check("aten.avg_pool2d", (PLANE[0], 2), {}, parts.mean((2, 4)))
    check("aten.max_pool2d", (PLANE[0], (2, 2)), {}, parts.max((2, 4)))


@pytest.mark.parametrize("wanted", [1, 3, 4, 9])
def test_adaptive_pools_have_bins_that_cover_all(wanted: int) -> None:
    bins = [(9 * n // wanted, -(-9 * (n + 1) // wanted)) for n in range(wanted)]
    means = np.stack([LINE[..., a:b].mean(-1) for a, b in bins], -1)
    check("aten.adaptive_avg_pool1d", (LINE, (wanted,)), {}, means)
    most = np.stack([LINE[..., a:b].max(-1) for a, b in bins], -1)
    places = np.stack([a + LINE[..., a:b].argmax(-1) for a, b in bins], -1)
    check("aten.adaptive_max_pool1d", (LINE, (wanted,)), {}, (most, places))
    line = PLANE.mean(2, keepdims=True)
    check("aten.adaptive_avg_pool2d", (PLANE, (1, None)), {}, line)


@pytest.mark.parametrize(("wanted", "plain"), [(3, True), (4, False), (1, True)])
def test_bins_of_one_size_are_windows(wanted: int, plain: bool) -> None:
    context = Context(GraphBuilder())
    kind = TensorType(LINE.shape, DType.FLOAT32)
    line = Term(context, Tensor(context.builder.input("x", kind), kind))
    context.declared = (DType.FLOAT32,)
    CONVERTERS["aten.adaptive_avg_pool1d"](context, line, (wanted,))
    products = [each for each in context.builder.nodes if isinstance(each.operator, Contract)]
    assert bool(products) is not plain


def convolved(x: np.ndarray, w: np.ndarray, s: int, p: int, d: int, groups: int) -> np.ndarray:
    """By loops."""
    x = np.pad(x, ((0, 0), (0, 0), (p, p)))
    count = (x.shape[2] - d * (w.shape[2] - 1) - 1) // s + 1
    found = np.zeros((len(x), len(w), count), F32)
    each, of = len(w) // groups, w.shape[1]
    for n, o, at in np.ndindex(*found.shape):
        first = o // each * of
        taps = x[n, first : first + of, at * s : at * s + d * (w.shape[2] - 1) + 1 : d]
        found[n, o, at] = (taps * w[o]).sum()
    return found


@pytest.mark.parametrize(("s", "p", "d", "groups"), [(1, 0, 1, 1), (2, 1, 2, 1), (3, 2, 1, 3)])
def test_convolutions_are_sums_of_products(s: int, p: int, d: int, groups: int) -> None:
    w = RNG.normal(size=(6, 3 // groups, 3)).astype(F32)
    bias = RNG.normal(size=6).astype(F32)
    expected = convolved(LINE, w, s, p, d, groups)
    check("aten.conv1d", (LINE, w, None, s, p, d), {"groups": groups}, expected)
    given = (LINE[0], w, bias, (s,), (p,), (d,), False, (0,), groups)
    check("aten.convolution", given, {}, expected[0] + bias[:, None])
    # The transpose: each element of the picture spreads over a window.
    back = RNG.normal(size=(3, 2, 3)).astype(F32)
    whole = np.zeros((2, 2 * groups, (9 - 1) * s + d * 2 + 1 + 1), F32)
    for n, c, at, o, k in np.ndindex(2, 3, 9, 2, 3):
        to = c // (3 // groups) * 2 + o
        whole[n, to, at * s + k * d] += LINE[n, c, at] * back[c, o, k]
    given = (LINE, back, None, s, p, 1, groups, d)
    check("aten.conv_transpose1d", given, {}, whole[..., p : whole.shape[2] - p])


def test_named_padding_keeps_the_size_or_adds_nothing() -> None:
    w = RNG.normal(size=(2, 3, 4)).astype(F32)
    same = convolved(np.pad(LINE, ((0, 0), (0, 0), (3, 3))), w, 1, 0, 2, 1)
    check("aten.conv1d", (LINE, w, None, 1, "same", 2), {}, same)
    check("aten.conv1d", (LINE, w, None, 1, "valid"), {}, convolved(LINE, w, 1, 0, 1, 1))
    with pytest.raises(ValueError, match="padding 'full'; required valid or same"):
        call("aten.conv1d", LINE, w, None, 1, "full")


@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"),
    [
        ((2, 1), (2, 1), (1, 1), (1, 2)),
        ((1, 3), (1, 2), (0, 2), (3, 1)),
        ((3, 2), (1, 4), (2, 0), (1, 3)),
        ((2, 2), (3, 1), (1, 3), (2, 2)),
        (2, 1, 0, 2),
    ],
)
def test_columns_are_windows_and_back(
    kernel: Any, dilation: Any, padding: Any, stride: Any
) -> None:
    k, d, p, s = (np.broadcast_to(each, 2) for each in (kernel, dilation, padding, stride))
    padded = np.pad(PLANE, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    rows, across = (np.array(padded.shape[2:]) - (k - 1) * d - 1) // s + 1
    expected = np.zeros((1, 2, *k, rows, across), F32)
    summed = np.zeros_like(padded)
    for c, i, j, y, x in np.ndindex(2, *k, rows, across):
        at = (0, c, y * s[0] + i * d[0], x * s[1] + j * d[1])
        expected[0, c, i, j, y, x] = padded[at]
        summed[at] += padded[at]
    flat = expected.reshape(1, -1, rows * across)
    inner = summed[..., p[0] : p[0] + 4, p[1] : p[1] + 5]
    windows = (kernel, dilation, padding, stride)
    check("aten.im2col", (PLANE, *windows), {}, flat)
    check("aten.im2col", (PLANE[0], *windows), {}, flat[0])
    check("aten.col2im", (flat, (4, 5), *windows), {}, inner)
    check("aten.col2im", (flat[0], (4, 5), *windows), {}, inner[0])


def test_places_of_windows_are_those_of_one_plane_however_many_there_are() -> None:
    context, planes, taps = Context(GraphBuilder()), 1 << 14, (8, 8)
    name = context.builder.input("x", TensorType((1, planes, 5, 5), "float32"))
    x = Term(context, context.tensor(name))
    columns = im2col(context, x, taps, (1, 1), (8, 8), (1, 1))
    assert columns.shape == (1, planes * 64, 14 * 14)
    assert col2im(context, columns, (5, 5), taps, (1, 1), (8, 8), (1, 1)).shape == x.shape


@pytest.mark.parametrize("size", [4, 9, 20])
def test_lines_are_resized_by_the_nearest_or_between_two(size: int) -> None:
    at = np.arange(size) * 9 / size
    check("aten.upsample_nearest1d", (LINE, (size,)), {}, LINE[..., at.astype(int)])
    exact = ((np.arange(size) + 0.5) * 9 / size).astype(int)
    check("aten._upsample_nearest_exact1d", (LINE, (size,)), {}, LINE[..., exact])
    for corners, places in (
        (False, (np.arange(size) + 0.5) * 9 / size - 0.5),
        (True, np.arange(size) * 8 / (size - 1)),
    ):
        between = np.apply_along_axis(lambda y, p=places: np.interp(p, np.arange(9), y), 2, LINE)
        check("aten.upsample_linear1d", (LINE, (size,), corners), {}, between)


def test_factors_say_the_size_and_the_steps() -> None:
    at = (np.arange(13) / 1.5).astype(int)
    check("aten.upsample_nearest1d", (LINE, None, (1.5,)), {}, LINE[..., at])
    rows, columns = np.arange(8) // 2, np.arange(15) // 3
    grown = PLANE[..., rows, :][..., columns]
    check("aten.upsample_nearest2d", (PLANE,), {"scale_factors": (2.0, 3.0)}, grown)
    given = {"scales_h": 2.0, "scales_w": 3.0}
    check("aten.upsample_nearest2d", (PLANE, (8, 15)), given, grown)
    whole = np.array([[[[0, 255], [10, 11]]]], np.uint8)
    check("aten.upsample_bilinear2d", (whole, (1, 1)), {}, np.array([[[[69]]]], np.uint8))


CUBIC = np.array([-0.09375, 0.59375, 0.59375, -0.09375])
"""Weights at t = 1.5, 0.5, 0.5, 1.5 of Keys' function with a = -0.75."""


def test_pictures_are_resized_by_cubic_and_by_wide_weights() -> None:
    line = np.broadcast_to(LINE[:1, :1, None, :8], (1, 1, 3, 8)).copy()
    edges = np.pad(line, ((0, 0), (0, 0), (0, 0), (1, 1)), "edge")
    halved = np.stack([edges[..., 2 * n : 2 * n + 4] @ CUBIC for n in range(4)], -1)
    check("aten.upsample_bicubic2d", (line, (3, 4)), {}, halved)
    # Smaller by two with wide weights: a triangle over four elements, less outside.
    triangle = np.array([0.25, 0.75, 0.75, 0.25])
    outer = np.pad(line, ((0, 0), (0, 0), (0, 0), (1, 1)))
    there = np.pad(np.ones_like(line), ((0, 0), (0, 0), (0, 0), (1, 1)))
    wide = [
        (outer[..., 2 * n : 2 * n + 4] @ triangle) / (there[..., 2 * n : 2 * n + 4] @ triangle)
        for n in range(4)
    ]
    check("aten._upsample_bilinear2d_aa", (line, (3, 4)), {}, np.stack(wide, -1))
    check("aten._upsample_bicubic2d_aa", (line, (3, 8)), {}, line)
    given = (line, (3, 1), True)
    check("aten._upsample_bilinear2d_aa", given, {}, line[..., :1])


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", range(3))
@pytest.mark.parametrize("mode", range(2))
def test_a_grid_says_where_a_picture_is_sampled(mode: int, padding: int, corners: bool) -> None:
    grid = np.random.default_rng(7).uniform(-1.9, 1.9, (1, 6, 5, 2)).astype(F32)

    def place(at: float, size: int) -> float:
        low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
        found = low + (at + 1) / 2 * (high - low)
        while padding == 2 and not low <= found <= high:
            found = 2 * low - found if found < low else 2 * high - found
        return found if padding == 0 else min(max(found, 0), size - 1)

    def element(y: int, x: int) -> Any:
        return PLANE[0, :, y, x] if 0 <= y < 4 and 0 <= x < 5 else np.zeros(2, F32)

    expected = np.zeros((1, 2, 6, 5), F32)
    for row, column in np.ndindex(6, 5):
        x, y = (
            place(float(at), size) for at, size in zip(grid[0, row, column], (5, 4), strict=True)
        )
        if mode:
            expected[0, :, row, column] = element(int(np.rint(y)), int(np.rint(x)))
            continue
        top, left = int(np.floor(y)), int(np.floor(x))
        for i, j in np.ndindex(2, 2):
            weight = abs(1 - i - (y - top)) * abs(1 - j - (x - left))
            expected[0, :, row, column] += element(top + i, left + j) * F32(weight)
    found = call("aten.grid_sampler", PLANE, grid, mode, padding, corners)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    if padding and corners:
        one = call("aten.grid_sampler", PLANE[:, :, :1, :1], grid, mode, padding, corners)
        np.testing.assert_array_equal(one, np.broadcast_to(PLANE[:, :, :1, :1], one.shape))


@pytest.mark.parametrize("mode", range(3))
@pytest.mark.parametrize("padding", [None, 1, -3])
def test_lists_of_rows_are_summed_averaged_or_their_largest(mode: int, padding: int | None) -> None:
    table = RNG.normal(size=(4, 3)).astype(F32)
    indices, offsets = np.array([1, 0, 3, 1, 2, 2, 1]), np.array([0, 2, 2, 6])
    lists = [[1, 0], [], [3, 1, 2, 2], [1]]
    expected = np.zeros((4, 3), F32)
    for n, rows in enumerate(lists):
        kept = [table[row] for row in rows if padding is None or row != padding % 4]
        if kept:
            expected[n] = (np.sum, np.mean, np.max)[mode](kept, axis=0)
    found = call("aten.embedding_bag", table, indices, offsets, False, mode, False, None, False,
                 padding)[0]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    ended = np.array([*offsets, 7])
    dense = -1 if padding is None else padding % 4
    found = call("aten._embedding_bag", table, indices, ended, False, mode, False, None, True,
                 dense)[0]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if mode == 0 and padding is None:
        weights = np.arange(1, 8, dtype=F32)
        weighted = call("aten.embedding_bag", table, indices, offsets, False, 0, False, weights)[0]
        np.testing.assert_allclose(weighted[3], table[1] * 7, rtol=1e-5)


def test_rows_that_are_looked_up_are_made_as_short_as_allowed() -> None:
    table = np.array([[3, 4], [0.3, 0.4], [6, 8], [30, 40]], F32)
    expected = np.array([[3, 4], [0.3, 0.4], [1.2, 1.6], [1.2, 1.6]], F32)
    check("aten.embedding_renorm", (table, np.array([[2, 1], [3, 2]]), 2.0, 2.0), {}, expected)
