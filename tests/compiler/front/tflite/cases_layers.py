"""Models of indexing, recurrent layers and detectors."""

from collections.abc import Iterator

import numpy as np
from flatbuffers import flexbuffers

from .case import Case, Const, F, In, Operands, Out, State, case, floats, i32, rng

__all__ = ["detection", "indexing", "recurrent"]


def indexing() -> Iterator[Case]:
    yield case(
        "SCATTER_ND",
        [Const(np.asarray([[1], [3], [1]], np.int32)), In((3, 2)), i32(5, 2)],
        [F],
        "ScatterNdOptions",
    )
    yield case(
        "ONE_HOT",
        [
            In((4,), "int32", -1, 5),
            Const(np.asarray(5, np.int32)),
            Const(np.asarray(2.5, np.float32)),
            Const(np.asarray(-1, np.float32)),
        ],
        [F],
        "OneHotOptions",
        {"Axis": -1},
        label="int32",
    )
    yield case(
        "TOPK_V2", [In((3, 9)), Const(np.asarray(4, np.int32))], [F, Out("int32")], "TopKV2Options"
    )
    yield case(
        "TOPK_V2",
        [In((3, 90), "int8"), Const(np.asarray(4, np.int32))],
        [Out("int8"), Out("int32")],
        "TopKV2Options",
    )
    yield case("SHAPE", [In((3, 9))], [Out("int32")], "ShapeOptions", {"OutType": 2})
    yield case("RANK", [In((3, 9))], [Out("int32")], "RankOptions")
    yield case("EMBEDDING_LOOKUP", [In((4,), "int32", 0, 5), floats(6, 3)], [F], label="float32")
    yield case(
        "DYNAMIC_UPDATE_SLICE",
        [In((4, 5)), In((2, 3)), In((2,), "int32", -1, 4)],
        [F],
        "DynamicUpdateSliceOptions",
    )
    yield case(
        "REVERSE_SEQUENCE",
        [In((3, 5, 2)), In((3,), "int32", 1, 5)],
        [F],
        "ReverseSequenceOptions",
        {"SeqDim": 1, "BatchDim": 0},
    )
    yield case("MATRIX_DIAG", [In((2, 3))], [F], "MatrixDiagOptions")
    yield case("MATRIX_SET_DIAG", [In((2, 3, 4)), In((2, 3))], [F], "MatrixSetDiagOptions")
    yield case(
        "SPARSE_TO_DENSE",
        [
            Const(np.asarray([[0, 1], [2, 0]], np.int32)),
            i32(3, 4),
            In((2,)),
            Const(np.asarray(-1, np.float32)),
        ],
        [F],
        "SparseToDenseOptions",
    )
    yield case(
        "BUCKETIZE",
        [In((3, 5))],
        [Out("int32")],
        "BucketizeOptions",
        {"Boundaries": (-1.5, 0.0, 1.25)},
    )
    for dtype, *numbers in (
        *(("int32", 1, 9, 3), ("int32", 9, 1, -3), ("int32", 0, 6, 3)),
        *(("float32", 0.5, 3.0, 0.75), ("float32", 2.0, -1.0, -0.5)),
    ):
        three = [Const(np.asarray(each, dtype)) for each in numbers]
        yield case("RANGE", [*three], [Out(dtype)], "RangeOptions", label=dtype)
    yield case("BROADCAST_ARGS", [i32(3, 1), i32(2, 1, 4)], [Out("int32")])
    for aligned, half in ((False, False), (True, False), (False, True)):
        options = {"AlignCorners": aligned, "HalfPixelCenters": half}
        for dtype in ("float32", "int8", "uint8"):
            x = In((2, 4, 5, 3), dtype, scale=0.05 if dtype != "float32" else 0, zero=3)
            y = Out(dtype, x.scale, 3 if x.scale else 0)
            for size in ((9, 7), (3, 8)):
                yield case(
                    "RESIZE_BILINEAR", [x, i32(*size)], [y], "ResizeBilinearOptions", options
                )
                yield case(
                    "RESIZE_NEAREST_NEIGHBOR",
                    [x, i32(*size)],
                    [y],
                    "ResizeNearestNeighborOptions",
                    options,
                )


def recurrent() -> Iterator[Case]:
    x, cells, outputs = 3, 5, 5
    for variant in ("plain", "peephole", "coupled", "projected", "normalised"):
        outputs = 4 if variant == "projected" else cells
        entry = [floats(cells, x) for _ in range(4)]
        back = [floats(cells, outputs) for _ in range(4)]
        peephole = [floats(cells) if variant == "peephole" else None for _ in range(3)]
        bias: Operands = [floats(cells) for _ in range(4)]
        projection = [floats(outputs, cells), floats(outputs)]
        scales = [floats(cells) for _ in range(4)] if variant == "normalised" else []
        operands: Operands = [
            *(*entry, *back, *peephole, *bias),
            *(projection if variant == "projected" else [None, None]),
            *(State((2, outputs)), State((2, cells)), *scales),
        ]
        if variant == "coupled":
            operands[0] = operands[4] = operands[11] = None
        options = {"FusedActivationFunction": 4, "CellClip": 2.0}
        yield case(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            [In((2, 6, x)), *operands],
            [F],
            "UnidirectionalSequenceLSTMOptions",
            options,
        )
        if variant != "normalised":
            yield case("LSTM", [In((2, x)), *operands], [F], "LSTMOptions", options)
    w: Operands = [floats(5, 3), floats(5, 5), floats(5), State((2, 5))]
    options = {"FusedActivationFunction": 4}
    yield case("RNN", [In((2, 3)), *w], [F], "RNNOptions", options)
    for major in (False, True):
        shape = (6, 2, 3) if major else (2, 6, 3)
        own = {**options, "TimeMajor": major}
        yield case("UNIDIRECTIONAL_SEQUENCE_RNN", [In(shape), *w], [F], "SequenceRNNOptions", own)
    yield case(
        "SVDF",
        [In((2, 3)), floats(8, 3), floats(8, 6), floats(4), State((2, 48))],
        [F],
        "SVDFOptions",
        {"Rank": 2, "FusedActivationFunction": 1},
    )


def detection() -> Iterator[Case]:
    corners = rng().uniform(0, 1, (12, 2, 2)).astype(np.float32)
    boxes = Const(np.sort(corners, 1).reshape(12, 4))
    scores = In((12,), low=0.0, high=1.0)
    limits = [
        Const(np.asarray(7, np.int32)),
        *(Const(np.asarray(v, np.float32)) for v in (0.4, 0.2)),
    ]
    yield case("NON_MAX_SUPPRESSION_V4", [boxes, scores, *limits], [Out("int32"), Out("int32")])
    sigma = Const(np.asarray(0, np.float32))
    outs = [Out("int32"), F, Out("int32")]
    yield case("NON_MAX_SUPPRESSION_V5", [boxes, scores, *limits, sigma], outs)
    yield from _post_processing()


def _post_processing() -> Iterator[Case]:
    reals = {
        **dict.fromkeys(("y_scale", "x_scale"), 10.0),
        **dict.fromkeys(("h_scale", "w_scale"), 5.0),
        "nms_score_threshold": 0.3,
        "nms_iou_threshold": 0.4,
    }
    anchors = rng().uniform(0.2, 0.8, (12, 4)).astype(np.float32)
    bytes_ = Const((anchors * 255).astype(np.uint8), (1 / 255,), (0,))
    quantised = [
        In((1, 12, 4), "uint8", scale=0.05, zero=120),
        In((1, 12, 4), "uint8", scale=1 / 255),
        bytes_,
    ]
    plain: Operands = [In((1, 12, 4)), In((1, 12, 4), low=0, high=1), Const(anchors)]
    for given, more in (
        (plain, {"max_classes_per_detection": 1}),
        (plain, {"max_classes_per_detection": 2}),
        (plain, {"max_classes_per_detection": 1, "use_regular_nms": 1}),
        (plain, {"max_classes_per_detection": 1, "use_regular_nms": 1, "detections_per_class": 1}),
        (quantised, {"max_classes_per_detection": 1}),
    ):
        options = {"max_detections": 4, "num_classes": 3, **more}
        builder = flexbuffers.Builder()
        with builder.Map():
            for name, value in options.items():
                builder.Key(name)
                if name == "use_regular_nms":
                    builder.Bool(bool(value))
                else:
                    builder.Int(value)
            for name, real in reals.items():
                builder.Key(name)
                builder.Float(real)
        content = bytes(builder.Finish())
        yield case("TFLite_Detection_PostProcess", given, [F, F, F, F], custom=content)
