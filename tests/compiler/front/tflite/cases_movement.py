"""Models of what moves, takes and reduces elements."""

from collections.abc import Iterator

import numpy as np

from .case import BYTES, Case, Const, F, In, Out, case, i32

__all__ = ["movement", "reductions"]


def movement() -> Iterator[Case]:
    for dtype in ("float32", "int8", "int32"):
        x = In((2, 3, 4), dtype, scale=0.05 if dtype == "int8" else 0, zero=3)
        y = Out(dtype, x.scale, 3 if dtype == "int8" else 0)
        yield case("RESHAPE", [x, i32(4, -1)], [y], "ReshapeOptions", {"NewShape": (4, -1)})
        yield case("TRANSPOSE", [x, i32(2, 0, 1)], [y], "TransposeOptions")
        yield case("EXPAND_DIMS", [x, i32(-2)], [y], "ExpandDimsOptions")
        yield case(
            "SQUEEZE",
            [In((1, 3, 1), dtype, scale=x.scale, zero=3)],
            [y],
            "SqueezeOptions",
            {"SqueezeDims": (0,)},
        )
        other = In((2, 1, 4), dtype, scale=x.scale, zero=3)
        yield case("CONCATENATION", [x, other], [y], "ConcatenationOptions", {"Axis": 1})
        yield case("PACK", [x, x], [y], "PackOptions", {"Axis": 1, "ValuesCount": 2})
        yield case("UNPACK", [x], [y, y, y], "UnpackOptions", {"Axis": 1, "Num": 3})
        yield case("SPLIT", [i32(2), x], [y, y], "SplitOptions", {"NumSplits": 2})
        yield case("SPLIT_V", [x, i32(1, -1), i32(2)], [y, y], "SplitVOptions", {"NumSplits": 2})
        yield case("SLICE", [x, i32(0, 1, 1), i32(2, -1, 2)], [y], "SliceOptions")
        yield case(
            "STRIDED_SLICE",
            [x, i32(0, -1, 0), i32(2, 0, 3), i32(1, -1, 2)],
            [y],
            "StridedSliceOptions",
            {"BeginMask": 1, "EndMask": 4},
        )
        yield case(
            "STRIDED_SLICE",
            [x, i32(1, 0), i32(2, 2), i32(1, 1)],
            [y],
            "StridedSliceOptions",
            {"ShrinkAxisMask": 1},
        )
        yield case(
            "STRIDED_SLICE",
            [x, i32(0, 0, 1), i32(0, 0, 3), i32(1, 1, 1)],
            [y],
            "StridedSliceOptions",
            {"EllipsisMask": 1, "NewAxisMask": 2},
        )
        pads = Const(np.asarray([[0, 1], [2, 0], [1, 1]], np.int32))
        yield case("PAD", [x, pads], [y], "PadOptions")
        if dtype != "int32":
            value = Const(
                np.asarray(5, dtype), (x.scale,) if x.scale else (), (3,) if x.scale else ()
            )
            yield case("PADV2", [x, pads, value], [y], "PadV2Options")
        small = Const(np.asarray([[0, 1], [1, 0], [1, 2]], np.int32))
        for mode in (0, 1):
            yield case("MIRROR_PAD", [x, small], [y], "MirrorPadOptions", {"Mode": mode})
        yield case("TILE", [x, i32(2, 1, 3)], [y], "TileOptions")
        yield case(
            "BROADCAST_TO",
            [In((3, 1), dtype, scale=x.scale, zero=3), i32(2, 3, 4)],
            [y],
            "BroadcastToOptions",
            version=2,
        )
        yield case("REVERSE_V2", [x, i32(1)], [y], "ReverseV2Options")
        image = In((2, 4, 6, 4), dtype, scale=x.scale, zero=3)
        yield case("SPACE_TO_DEPTH", [image], [y], "SpaceToDepthOptions", {"BlockSize": 2})
        yield case("DEPTH_TO_SPACE", [image], [y], "DepthToSpaceOptions", {"BlockSize": 2})
        two = Const(np.asarray([[0, 2], [1, 1]], np.int32))
        if dtype != "int32":
            yield case("SPACE_TO_BATCH_ND", [image, i32(2, 2), two], [y], "SpaceToBatchNDOptions")
        batch = In((4, 3, 3, 2), dtype, scale=x.scale, zero=3)
        crops = Const(np.asarray([[0, 1], [1, 0]], np.int32))
        yield case("BATCH_TO_SPACE_ND", [batch, i32(2, 2), crops], [y], "BatchToSpaceNDOptions")
        yield case("GATHER", [x, In((2, 2), "int32", 0, 2)], [y], "GatherOptions", {"Axis": 1})
        yield case(
            "GATHER",
            [x, In((2, 2), "int32", 0, 3)],
            [y],
            "GatherOptions",
            {"Axis": 2, "BatchDims": 1},
        )
        yield case("GATHER_ND", [x, In((5, 2), "int32", 0, 1)], [y], "GatherNdOptions")
    u = In((2, 3, 4), "uint8", scale=0.04, zero=100)
    yield case(
        "CONCATENATION",
        [u, In((2, 1, 4), "uint8", scale=0.05, zero=120)],
        [Out("uint8", 0.05, 110)],
        "ConcatenationOptions",
        {"Axis": 1},
    )
    image = In((1, 4, 6, 4), "int8", scale=0.05, zero=3)
    border = Const(np.asarray([[0, 0], [2, 0], [1, 1], [0, 0]], np.int32))
    yield case("PAD", [image, border], [Out("int8", 0.05, 3)], "PadOptions")
    image = In((2, 4, 6, 4), "int16", scale=0.05)
    yield case("PAD", [image, border], [Out("int16", 0.05)], "PadOptions")


def reductions() -> Iterator[Case]:
    x = In((2, 3, 4, 5))
    for keep in (False, True):
        options = {"KeepDims": keep}
        for axes in ((1,), (1, 2), (0, -1)):
            for kind in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
                yield case(kind, [x, i32(*axes)], [F], "ReducerOptions", options)
            for kind in ("REDUCE_ANY", "REDUCE_ALL"):
                yield case(
                    kind,
                    [In((2, 2, 2, 2), "bool"), i32(*axes)],
                    [Out("bool")],
                    "ReducerOptions",
                    options,
                )
            for dtype, zero in BYTES:
                for shape in ((1, 3, 4, 5), (2, 3, 4, 5)):
                    y = In(shape, dtype, scale=0.05, zero=zero)
                    for kind, scale in (
                        ("MEAN", 0.03),
                        *((("SUM", 0.2),) if dtype == "uint8" else ()),
                    ):
                        yield case(
                            kind,
                            [y, i32(*axes)],
                            [Out(dtype, scale, zero + 1)],
                            "ReducerOptions",
                            options,
                        )
                    for kind in ("REDUCE_MAX", "REDUCE_MIN"):
                        yield case(
                            kind,
                            [y, i32(*axes)],
                            [Out(dtype, 0.05, zero)],
                            "ReducerOptions",
                            options,
                        )
    for kind, table in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        for dtype in ("float32", "int8", "uint8", "int32"):
            yield case(kind, [In((3, 40), dtype), i32(1)], [Out("int64")], table, {"OutputType": 4})
    for exclusive in (False, True):
        yield case(
            "CUMSUM",
            [In((3, 5)), i32(1)],
            [F],
            "CumsumOptions",
            {"Exclusive": exclusive, "Reverse": not exclusive},
        )
    yield case("MEAN", [In((3, 4), "int32"), i32(1)], [Out("int32")], "ReducerOptions")
    yield case("L2_NORMALIZATION", [x], [F], "L2NormOptions")
    yield case(
        "LOCAL_RESPONSE_NORMALIZATION",
        [x],
        [F],
        "LocalResponseNormalizationOptions",
        {"Radius": 2, "Bias": 1.5, "Alpha": 0.3, "Beta": 0.7},
    )
    yield case("LOG_SOFTMAX", [In((3, 7))], [F])
    yield case("SOFTMAX", [In((2, 3, 7))], [F], "SoftmaxOptions", {"Beta": 1.3})
    for dtype, _ in BYTES:
        low = -128 if dtype == "int8" else 0
        for scale in (0.02, 0.3):
            yield case(
                "SOFTMAX",
                [In((6, 50), dtype, scale=scale, zero=3)],
                [Out(dtype, 1 / 256, low)],
                "SoftmaxOptions",
                {"Beta": 1.0},
            )
