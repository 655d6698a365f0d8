"""Models of sums of products."""

from collections.abc import Iterator

import numpy as np

from .case import BYTES, Case, Const, F, In, Out, case, floats, i32, rng, weights

__all__ = ["mixed_products", "pools", "products"]


def products() -> Iterator[Case]:
    for padding in (0, 1):
        for stride, dilation in ((1, 1), (2, 1), (1, 2)):
            options = {
                "Padding": padding,
                "StrideH": stride,
                "StrideW": 1 if dilation > 1 else stride,
                "DilationHFactor": dilation,
                "DilationWFactor": 1,
                "FusedActivationFunction": 1,
            }
            for batch in (1, 2):
                x = In((batch, 7, 6, 4))
                yield case(
                    "CONV_2D", [x, floats(5, 3, 2, 4), floats(5)], [F], "Conv2DOptions", options
                )
                depth = {**options, "DepthMultiplier": 2}
                yield case(
                    "DEPTHWISE_CONV_2D",
                    [x, floats(1, 3, 2, 8), floats(8)],
                    [F],
                    "DepthwiseConv2DOptions",
                    depth,
                )
                for dtype, zero in BYTES:
                    x = In((batch, 7, 6, 4), dtype, scale=0.05, zero=zero)
                    y = Out(dtype, 0.3, zero)
                    yield case(
                        "CONV_2D",
                        [x, *weights(dtype, (5, 3, 2, 4), 0, 0.05)],
                        [y],
                        "Conv2DOptions",
                        options,
                    )
                    yield case(
                        "DEPTHWISE_CONV_2D",
                        [x, *weights(dtype, (1, 3, 2, 8), 3, 0.05)],
                        [y],
                        "DepthwiseConv2DOptions",
                        depth,
                    )
    for keep in (False, True):
        options = {"KeepNumDims": keep, "FusedActivationFunction": 1}
        yield case(
            "FULLY_CONNECTED",
            [In((2, 3, 9)), floats(5, 9), floats(5)],
            [F],
            "FullyConnectedOptions",
            options,
        )
        for dtype, zero in BYTES:
            x = In((2, 3, 9), dtype, scale=0.05, zero=zero)
            yield case(
                "FULLY_CONNECTED",
                [x, *weights(dtype, (5, 9), -1, 0.05)],
                [Out(dtype, 0.3, zero)],
                "FullyConnectedOptions",
                options,
            )
    for padding in (0, 1):
        options = {"Padding": padding, "StrideH": 2, "StrideW": 3}
        out = (1, 9, 16, 5) if padding else (1, 8, 15, 5)
        yield case(
            "TRANSPOSE_CONV",
            [i32(*out), floats(5, 3, 4, 4), In((1, 4, 5, 4)), floats(5)],
            [F],
            "TransposeConvOptions",
            options,
            version=3,
        )
        for dtype, zero in BYTES:
            w, b = weights(dtype, (5, 3, 4, 4), 0, 0.05)
            x = In((1, 4, 5, 4), dtype, scale=0.05, zero=zero)
            yield case(
                "TRANSPOSE_CONV",
                [i32(*out), w, x, b],
                [Out(dtype, 0.3, zero)],
                "TransposeConvOptions",
                options,
                version=3,
            )
    for adj_x, adj_y in ((False, False), (True, False), (False, True)):
        a, b = (3, 2, 4, 5), (2, 5, 3)
        shapes = ((*a[:2], 5, 4) if adj_x else a), ((2, 3, 5) if adj_y else b)
        options = {"AdjX": adj_x, "AdjY": adj_y}
        yield case(
            "BATCH_MATMUL", [In(shapes[0]), In(shapes[1])], [F], "BatchMatMulOptions", options
        )
        x, y = (
            In(shape, "int8", scale=0.05, zero=z) for shape, z in zip(shapes, (3, -4), strict=True)
        )
        yield case("BATCH_MATMUL", [x, y], [Out("int8", 0.7, 5)], "BatchMatMulOptions", options)
    options = {
        "Padding": 0,
        "StrideD": 1,
        "StrideH": 2,
        "StrideW": 1,
        "DilationDFactor": 1,
        "DilationHFactor": 1,
        "DilationWFactor": 1,
    }
    yield case(
        "CONV_3D",
        [In((1, 4, 5, 6, 2)), floats(2, 3, 2, 2, 3), floats(3)],
        [F],
        "Conv3DOptions",
        options,
    )
    yield case(
        "CONV_3D_TRANSPOSE",
        [i32(1, 4, 10, 6, 3), floats(2, 3, 2, 3, 2), In((1, 4, 5, 6, 2)), floats(3)],
        [F],
        "Conv3DOptions",
        options,
    )


def mixed_products() -> Iterator[Case]:
    """Weights of bytes beside floats and beside 16 bits."""
    options = {
        "StrideH": 2,
        "StrideW": 2,
        "DilationHFactor": 1,
        "DilationWFactor": 1,
        "FusedActivationFunction": 1,
    }
    depth = {**options, "DepthMultiplier": 2}
    w, _ = weights("int8", (5, 3, 2, 4), 0, 1)
    deep, _ = weights("int8", (1, 3, 2, 8), 3, 1)
    rows, _ = weights("int8", (5, 9), -1, 1)
    by_row, _ = weights("int8", (5, 9), 0, 1)
    same = Const(w.data, (0.03,), (0,))
    x, y = In((2, 7, 6, 4)), In((3, 9))
    for kind in (w, same):
        yield case("CONV_2D", [x, kind, floats(5)], [F], "Conv2DOptions", options, "hybrid")
    yield case(
        "DEPTHWISE_CONV_2D", [x, deep, floats(8)], [F], "DepthwiseConv2DOptions", depth, "hybrid"
    )
    for asymmetric in (False, True):
        for matrix in (rows, by_row):
            own = {"AsymmetricQuantizeInputs": asymmetric}
            yield case(
                "FULLY_CONNECTED",
                [y, matrix, floats(5)],
                [F],
                "FullyConnectedOptions",
                own,
                "hybrid",
            )
    x, y = In((2, 7, 6, 4), "int16", scale=0.0002), In((3, 9), "int16", scale=0.0002)
    out = Out("int16", 0.004)
    for wide, number in ((np.int32, 2), (np.int64, 4)):
        biases = [
            Const(rng().integers(-9000, 9000, size).astype(wide), (1e-5,), (0,)) for size in (5, 8)
        ]
        typed = {**options, "QuantizedBiasType": number}
        yield case("CONV_2D", [x, w, biases[0]], [out], "Conv2DOptions", typed)
        own = {"QuantizedBiasType": number}
        yield case("FULLY_CONNECTED", [y, rows, biases[0]], [out], "FullyConnectedOptions", own)
        yield case("FULLY_CONNECTED", [y, by_row, biases[0]], [out], "FullyConnectedOptions", own)
    yield case("DEPTHWISE_CONV_2D", [x, deep, biases[1]], [out], "DepthwiseConv2DOptions", depth)


def pools() -> Iterator[Case]:
    for padding in (0, 1):
        options = {
            "Padding": padding,
            "StrideH": 2,
            "StrideW": 1,
            "FilterHeight": 3,
            "FilterWidth": 2,
            "FusedActivationFunction": 1,
        }
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
            yield case(kind, [In((2, 7, 6, 4))], [F], "Pool2DOptions", options)
        for dtype, zero in BYTES:
            x, y = In((2, 7, 6, 4), dtype, scale=0.05, zero=zero), Out(dtype, 0.05, zero)
            for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
                yield case(kind, [x], [y], "Pool2DOptions", options)
