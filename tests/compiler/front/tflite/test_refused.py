"""Operators of TensorFlow Lite whose operands or options fit no rule: what is said of them."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.errors import ModelError, UnsupportedOperatorError

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from flatbuffers import flexbuffers

from dovetail.compiler.front.tflite.activations import ACTIVATIONS
from dovetail.compiler.front.tflite.softmax import SOFTMAX
from dovetail.compiler.front.tflite.source import TfliteModel

from .case import Const, F, In, Operands, Out, State, case, floats, i32

IMAGE = In((1, 7, 6, 4))
STRIDES = {"StrideH": 1, "StrideW": 1}
CONV = {**STRIDES, "Padding": 1, "DilationHFactor": 1, "DilationWFactor": 1}
POOL = {**STRIDES, "Padding": 1, "FilterHeight": 8, "FilterWidth": 1}
ONE, LINE = In((2, 3, 4)), In((5,))
WHOLE, LONG = In((5, 9), "int32"), In((5,), "int64", scale=0.5)
BARE, ZERO, HALF = In((2, 3), "int8"), Const(np.int32(0)), Const(np.float32(0.5))
RNN: Operands = [In((1, 2, 3)), floats(4, 3), floats(4, 4), floats(4), State((1, 4))]
WHOLES, MIXED = In((1, 7, 6, 4), "int32"), "int32 with weights of float32"
SLICE = {"BeginMask": 0, "EndMask": 0, "EllipsisMask": 0, "NewAxisMask": 0, "ShrinkAxisMask": 0}
HOLLOW, BLOCK = In((1, 7, 6, 0)), In((1, 4, 5, 6, 2))
DEPTHWISE = ("DepthwiseConv2DOptions", {**CONV, "DepthMultiplier": 1})
TURNED = ("TransposeConvOptions", {**STRIDES, "Padding": 0})
VOLUME = ("Conv3DOptions", {**CONV, "StrideD": 1, "DilationDFactor": 1})
CROPS, FLAT = (Const(np.zeros((count, 2), np.int32)) for count in (1, 2))
SVDF: Operands = [In((2, 3)), floats(8, 3), floats(8, 6), floats(4), State((2, 48))]
INTS, MEMORY = i32(1, 2, 3, 4), [None] * 3
GATES: Operands = [*[floats(4, 3)] * 4, *[floats(4, 4)] * 4, *MEMORY, *[floats(4)] * 3, INTS]
LSTM: Operands = [*GATES, None, None, State((2, 4)), State((2, 4))]

CASES: list[tuple[str, Operands, int, str, dict[str, Any], str]] = [
    ("CONV_2D", [ONE, floats(5, 3, 2, 4)], 1, "Conv2DOptions", CONV, "x and weights of 4"),
    ("CONV_2D", [IMAGE, floats(5, 3, 2, 3)], 1, "Conv2DOptions", CONV, "C / groups"),
    ("CONV_2D", [IMAGE, floats(5, 3, 2, 2)], 1, "Conv2DOptions", CONV, "outputs for 2 groups"),
    ("CONV_2D", [IMAGE, floats(5, 8, 2, 4)], 1, "Conv2DOptions", CONV, "a window of 8 within 7"),
    (
        *("CONV_2D", [IMAGE, floats(5, 3, 2, 4)], 1, "Conv2DOptions"),
        *({**CONV, "StrideW": 0}, "strides, dilations and kernel above 0"),
    ),
    (
        *("CONV_2D", [IMAGE, i32(*range(8))], 1, "Conv2DOptions", CONV),
        "x and weights of 4",
    ),
    (
        *("DEPTHWISE_CONV_2D", [IMAGE, floats(1, 3, 2, 6)], 1, "DepthwiseConv2DOptions"),
        *({**CONV, "DepthMultiplier": 1}, r"weights \[1, KH, KW, C \* multiplier\]"),
    ),
    ("MAX_POOL_2D", [ONE], 1, "Pool2DOptions", POOL, "4 dimensions"),
    ("MAX_POOL_2D", [IMAGE], 1, "Pool2DOptions", POOL, "a window of 8 within 7"),
    ("FULLY_CONNECTED", [ONE, floats(5, 3, 2)], 1, "FullyConnectedOptions", {}, r"\[O, K\]"),
    ("FULLY_CONNECTED", [LINE, floats(5, 9)], 1, "FullyConnectedOptions", {}, "rows of 9"),
    (
        *("FULLY_CONNECTED", [In((3, 6)), floats(5, 9)], 1, "FullyConnectedOptions"),
        *({"KeepNumDims": True}, "rows of 9"),
    ),
    (
        *("FULLY_CONNECTED", [WHOLE, floats(5, 9)], 1, "FullyConnectedOptions", {}),
        "int32 with weights of float32",
    ),
    ("BATCH_MATMUL", [LINE, ONE], 1, "BatchMatMulOptions", {}, "2 dimensions or more"),
    ("BATCH_MATMUL", [ONE, ONE], 1, "BatchMatMulOptions", {}, "one inner size"),
    ("DIV", [LONG, LONG], 1, "DivOptions", {}, "elements of int64"),
    ("SPLIT", [i32(2), ONE], 3, "SplitOptions", {}, "3 equal parts of axis 2"),
    ("SPLIT_V", [ONE, i32(1, 2), i32(2)], 2, "SplitVOptions", {}, "sizes that fit"),
    ("SPLIT_V", [ONE, i32(5, -1), i32(2)], 2, "SplitVOptions", {}, "sizes that fit"),
    ("UNPACK", [ONE], 2, "UnpackOptions", {"Axis": 1, "Num": 2}, "an output for each slice"),
    ("SLICE", [ONE, i32(0, 0), i32(1, 1)], 1, "SliceOptions", {}, "3 begins and sizes"),
    ("SLICE", [ONE, i32(0, 2, 0), i32(1, 2, 1)], 1, "SliceOptions", {}, "within it"),
    ("SLICE", [ONE, i32(0, -1, 0), i32(1, 2, 1)], 1, "SliceOptions", {}, "within it"),
    (
        *("STRIDED_SLICE", [ONE, i32(0, 0), i32(1), i32(1)], 1, "StridedSliceOptions", SLICE),
        "as many begins as ends",
    ),
    (
        *("STRIDED_SLICE", [ONE, i32(0), i32(1), i32(0)], 1, "StridedSliceOptions", SLICE),
        "slices of its dimensions",
    ),
    (
        *("STRIDED_SLICE", [LINE, i32(0, 0), i32(1, 1), i32(1, 1)], 1, "StridedSliceOptions"),
        *(SLICE, "slices of its dimensions"),
    ),
    (
        *("STRIDED_SLICE", [LINE, i32(5), i32(9), i32(1)], 1, "StridedSliceOptions"),
        *({**SLICE, "ShrinkAxisMask": 1}, "an index of axis 0"),
    ),
    (
        *("STRIDED_SLICE", [ONE, i32(0, 0), i32(1, 1), i32(1, 1)], 1, "StridedSliceOptions"),
        *({**SLICE, "EllipsisMask": 3}, "at most one ellipsis"),
    ),
    ("PAD", [LINE, i32(1, 2)], 1, "PadOptions", {}, "pads of 1 by 2"),
    ("SPACE_TO_DEPTH", [ONE], 1, "SpaceToDepthOptions", {"BlockSize": 2}, "4 dimensions"),
    ("SPACE_TO_DEPTH", [IMAGE], 1, "SpaceToDepthOptions", {"BlockSize": 2}, "blocks of 2"),
    ("SPACE_TO_DEPTH", [IMAGE], 1, "SpaceToDepthOptions", {"BlockSize": 0}, "a block"),
    ("DEPTH_TO_SPACE", [ONE], 1, "DepthToSpaceOptions", {"BlockSize": 2}, "4 dimensions"),
    ("DEPTH_TO_SPACE", [IMAGE], 1, "DepthToSpaceOptions", {"BlockSize": 3}, "of blocks of 3"),
    (
        "TOPK_V2", [LINE, i32(6)], 2, "TopKV2Options", {}, "rows of at least 6",
    ),
    (
        *("DYNAMIC_UPDATE_SLICE", [LINE, In((6,)), i32(0)], 1, "DynamicUpdateSliceOptions", {}),
        "an update that fits",
    ),
    ("RESIZE_BILINEAR", [IMAGE, i32(0, 3)], 1, "ResizeBilinearOptions", {}, "a size of two"),
    ("RESIZE_BILINEAR", [ONE, i32(3, 3)], 1, "ResizeBilinearOptions", {}, "4 dimensions"),
    (
        *("LOCAL_RESPONSE_NORMALIZATION", [IMAGE], 1, "LocalResponseNormalizationOptions"),
        *({"Radius": -1}, "4 dimensions and a radius"),
    ),
    ("CONV_2D", [WHOLES, floats(5, 3, 2, 4)], 1, "Conv2DOptions", CONV, MIXED),
    (
        *("DEPTHWISE_CONV_2D", [WHOLES, floats(1, 3, 2, 4)], 1, "DepthwiseConv2DOptions"),
        *({**CONV, "DepthMultiplier": 1}, MIXED),
    ),
    (
        *("TRANSPOSE_CONV", [i32(1, 7, 6, 5), floats(5, 3, 2, 4), WHOLES], 1),
        *("TransposeConvOptions", {**STRIDES, "Padding": 0}, MIXED),
    ),
    ("RELU", [None], 1, "", {}, "input 0 is left out"),
    ("ADD", [ONE, None], 1, "AddOptions", {}, "input 1 is left out"),
    ("SOFTMAX", [BARE], 1, "SoftmaxOptions", {}, r"tensor 'x0' \(INT8\) has no scale above 0"),
    ("SOFTMAX", [WHOLE], 1, "SoftmaxOptions", {}, "elements of int32"),
    ("LOG_SOFTMAX", [WHOLE], 1, "LogSoftmaxOptions", {}, "elements of int32"),
    ("L2_NORMALIZATION", [WHOLE], 1, "L2NormOptions", {}, "elements of int32"),
    ("RESHAPE", [ONE, floats(2)], 1, "ReshapeOptions", {}, "input 1 is float32; required integers"),
    ("CONCATENATION", [ONE, ONE], 1, "ConcatenationOptions", {"Axis": 3}, "axis 3 of 3"),
    ("CONCATENATION", [ONE, ONE], 1, "ConcatenationOptions", {"Axis": -4}, "axis -4 of 3"),
    ("ADD", [ONE, ONE], 1, "AddOptions", {"FusedActivationFunction": 5}, "fused activation 5"),
    ("CONV_2D", [IMAGE, floats(5, 3, 2, 4)], 1, "Conv2DOptions", {**CONV, "Padding": 2}, "padding"),
    (
        *("FULLY_CONNECTED", [ONE, floats(5, 4)], 1, "FullyConnectedOptions"),
        *({"WeightsFormat": 1}, "shuffled weights"),
    ),
    ("ONE_HOT", [i32(1), i32(-1), HALF, HALF], 1, "OneHotOptions", {"Axis": -1}, "a depth of 0"),
    ("RANGE", [ZERO, ZERO, ZERO], 1, "RangeOptions", {}, "a step of 0"),
    (
        *("FAKE_QUANT", [ONE], 1, "FakeQuantOptions"),
        *({"Min": 1.0, "Max": 1.0, "NumBits": 8}, "limits 1.0 and 1.0, 8 bits"),
    ),
    (
        *("FAKE_QUANT", [ONE], 1, "FakeQuantOptions"),
        *({"Min": -1.0, "Max": 1.0, "NumBits": 17}, "17 bits; required two and 2 to 16"),
    ),
    (
        *("FAKE_QUANT", [ONE], 1, "FakeQuantOptions"),
        *({"Min": -1.0, "Max": 1.0, "NumBits": 1}, "1 bits; required two and 2 to 16"),
    ),
    (
        *("UNIDIRECTIONAL_SEQUENCE_RNN", RNN, 1, "SequenceRNNOptions"),
        *({"FusedActivationFunction": 5}, "activation 5"),
    ),
    ("EMBEDDING_LOOKUP", [i32(0, 1), WHOLE], 1, "", {}, "a table of int32"),
    (
        *("NON_MAX_SUPPRESSION_V5", [In((3, 4)), In((3,)), i32(2), *[HALF] * 3], 3),
        *("NonMaxSuppressionV5Options", {}, "soft suppression"),
    ),
    (
        *("NON_MAX_SUPPRESSION_V4", [In((3, 5)), In((3,)), i32(2), *[HALF] * 2], 2),
        *("NonMaxSuppressionV4Options", {}, r"required \[N, 4\], \[N\]"),
    ),
    ("CONV_2D", [IMAGE, floats(5, 3, 2, 0)], 1, "Conv2DOptions", CONV, "C / groups"),
    ("CONV_2D", [HOLLOW, floats(5, 3, 2, 4)], 1, "Conv2DOptions", CONV, "outputs for 0 groups"),
    ("DEPTHWISE_CONV_2D", [HOLLOW, floats(1, 3, 2, 4)], 1, *DEPTHWISE, "C . multiplier"),
    ("DEPTHWISE_CONV_2D", [IMAGE, floats(2, 3, 2, 4)], 1, *DEPTHWISE, "C . multiplier"),
    ("DEPTHWISE_CONV_2D", [ONE, floats(1, 3, 2, 4)], 1, *DEPTHWISE, "x and weights of 4"),
    ("DEPTHWISE_CONV_2D", [IMAGE, floats(3, 2, 4)], 1, *DEPTHWISE, "x and weights of 4"),
    ("FULLY_CONNECTED", [ONE, floats(5, 0)], 1, "FullyConnectedOptions", {}, "rows of 0"),
    ("CONV_3D", [IMAGE, floats(1, 1, 1, 2, 3)], 1, *VOLUME, "5 dimensions"),
    ("CONV_3D", [BLOCK, floats(1, 1, 2, 3)], 1, *VOLUME, "5 dimensions"),
    ("CONV_3D", [BLOCK, floats(1, 1, 1, 3, 3)], 1, *VOLUME, "channels of whole groups"),
    ("CONV_3D", [BLOCK, floats(1, 1, 1, 0, 3)], 1, *VOLUME, "channels of whole groups"),
    (
        *("CONV_3D_TRANSPOSE", [i32(1, 4, 5, 3), floats(1, 1, 1, 3, 2), BLOCK], 1),
        *(*VOLUME, "5 dimensions"),
    ),
    ("TRANSPOSE_CONV", [i32(1, 9, 9, 6), floats(5, 3, 4, 4), IMAGE], 1, *TURNED, "OH, OW, O"),
    ("TRANSPOSE_CONV", [i32(1, 9, 9, 5), floats(5, 3, 4, 3), IMAGE], 1, *TURNED, "OH, OW, O"),
    ("TRANSPOSE_CONV", [i32(1, 9, 5), floats(5, 3, 4, 4), IMAGE], 1, *TURNED, "OH, OW, O"),
    ("TRANSPOSE_CONV", [i32(1, 0, 9, 5), floats(5, 3, 4, 4), IMAGE], 1, *TURNED, "sizes above 0"),
    ("GATHER", [ONE, i32(0, 0)], 1, "GatherOptions", {"Axis": 0, "BatchDims": 1}, "in common"),
    ("GATHER", [ONE, i32(0, 0, 0)], 1, "GatherOptions", {"Axis": 1, "BatchDims": 1}, "in common"),
    ("BATCH_TO_SPACE_ND", [ONE, i32(3), CROPS], 1, "BatchToSpaceNDOptions", {}, "whole blocks"),
    ("BATCH_TO_SPACE_ND", [ONE, i32(0), CROPS], 1, "BatchToSpaceNDOptions", {}, "whole blocks"),
    ("BATCH_TO_SPACE_ND", [ONE, i32(2, 1), CROPS], 1, "BatchToSpaceNDOptions", {}, "whole blocks"),
    ("SPACE_TO_BATCH_ND", [IMAGE, i32(1, 0), FLAT], 1, "SpaceToBatchNDOptions", {}, "blocks and"),
    ("SVDF", SVDF, 1, "SVDFOptions", {"Rank": 3}, "filters of rank 3"),
    ("SVDF", SVDF, 1, "SVDFOptions", {"Rank": 0}, "filters of rank 0"),
    ("LSTM", [ONE], 1, "LSTMOptions", {"KernelType": 1}, "the basic kernel"),
    (
        *("DEQUANTIZE", [Const(np.ones(3, np.int8), (0.1, 0.2), (0, 0))], 1, "DequantizeOptions"),
        *({}, "2 indices of axis 0"),
    ),
    ("LOGISTIC", [In((2,), "int16", scale=174_763.0)], 1, "", {}, r"a scale below 2\*\*17"),
    ("TANH", [In((2,), "int16", scale=174_763.0)], 1, "", {}, r"a scale below 2\*\*17"),
    ("RELU", [], 1, "", {}, "input 0 is left out; it is required"),
    ("SQUARE", [In((2, 3), "int8", scale=0.5)], 1, "", {}, "int8 that is quantised"),
    (
        *("UNIDIRECTIONAL_SEQUENCE_RNN", [In((1, 2, 3)), *RNN[1:3], i32(1, 2, 3, 4), RNN[4]], 1),
        *("SequenceRNNOptions", {"FusedActivationFunction": 0}, "an operand of int32"),
    ),
    (
        *("RNN", [In((1, 3)), *RNN[1:3], INTS, RNN[4]], 1, "RNNOptions"),
        *({"FusedActivationFunction": 0}, "an operand of int32"),
    ),
    ("SVDF", [*SVDF[:3], INTS, SVDF[4]], 1, "SVDFOptions", {"Rank": 2}, "an operand of int32"),
    ("LSTM", [In((2, 3)), *LSTM], 1, "LSTMOptions", {}, "an operand of int32"),
    (
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", [In((2, 1, 3)), *LSTM], 1),
        *("UnidirectionalSequenceLSTMOptions", {}, "an operand of int32"),
    ),
    *(
        (
            "BATCH_TO_SPACE_ND", [In((2, 3)), i32(2), Const(np.array([[before, after]], np.int32))],
            1, "BatchToSpaceNDOptions", {}, "crops",
        )
        for before, after in ((-1, 0), (0, -1), (3, 4))
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "operands", "outputs", "table", "options", "said"),
    CASES,
    ids=[f"{each[0]}-{n}" for n, each in enumerate(CASES)],
)
def test_what_does_not_fit_is_said_with_the_node(
    kind: str, operands: Operands, outputs: int, table: str, options: dict[str, Any], said: str
) -> None:
    content = case(kind, operands, [F] * outputs, table, options).content
    with pytest.raises(
        (ModelError, UnsupportedOperatorError), match=rf"node 'y0' \({kind}\).*: .*{said}"
    ):
        TfliteModel.of(content).to_graph()


def steps(*shape: int, dtype: str = "int8", zero: int = 0) -> Const:
    """Weights that are quantised."""
    return Const(np.ones(shape, dtype), (0.1,), (zero,))


DENSE, HALVES = ("FullyConnectedOptions", {}), In((3, 4), "int16", scale=0.5)
QUANTISED: list[tuple[str, Operands, Out, tuple[str, dict[str, Any]], str]] = [
    *(
        ("CONV_2D", [In((n, 1, 1, 1), "int8", scale=0.1), steps(1, 1, 1, 1)], Out("int8", 0.3),
         ("Conv2DOptions", CONV), f"a batch of {n}")
        for n in (65, 0)
    ),
    *(
        ("FULLY_CONNECTED", [In((3, 4), "int8", scale=0.1), weights, bias], Out("int8", 0.3),
         DENSE, said)
        for weights, bias, said in (
            (steps(5, 4, zero=3), None, "required int8 weights with zero points of 0"),
            (steps(5, 4, dtype="int32"), None, "weights of int32"),
            (steps(5, 4), INTS, "required a bias of 5"),
            (steps(5, 4), floats(5), "a bias of float32"),
        )
    ),
    (
        "FULLY_CONNECTED", [In((3, 4), "int8", scale=0.1), steps(5, 4)], Out("int8", 0.3, 200),
        ("FullyConnectedOptions", {"FusedActivationFunction": 1}), "no value of its result is",
    ),
    (
        "CONV_2D", [In((1, 1, 1, 1), "int8", scale=1e9), steps(1, 1, 1, 1)], Out("int8", 1e-9),
        ("Conv2DOptions", CONV), r"a scale of 1e\+17 is too large; required less than 2\*\*31",
    ),
    (
        "REDUCE_PROD", [In((2, 1025), "int8", scale=0.1), i32(1)], Out("int8", 0.1),
        ("ReducerOptions", {"KeepDims": True}), "a product of 1025 quantised elements",
    ),
    ("ADD", [HALVES, HALVES], Out("int16", 0.25), ("AddOptions", {"PotScaleInt16": True}),
     "int16 with scales that are powers of two"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "operands", "result", "options", "said"), QUANTISED)
def test_layers_of_bytes_say_what_they_do_not_take(
    kind: str, operands: Operands, result: Out, options: tuple[str, dict[str, Any]], said: str
) -> None:
    content = case(kind, operands, [result], *options).content
    with pytest.raises((ModelError, UnsupportedOperatorError), match=said):
        TfliteModel.of(content).to_graph()


DETECTED = {"max_detections": 2, "num_classes": 3, "y_scale": 1, "x_scale": 1, "h_scale": 1}


@pytest.mark.parametrize(
    ("shapes", "changed", "said"),
    [
        (((3, 4), (3, 3), (3, 4)), {}, ""),
        (((3, 4), (3, 4), (3, 4)), {}, ""),
        (((3, 4), (3, 5), (3, 4)), {}, "scores of all classes"),
        (((3, 4), (3, 2), (3, 4)), {}, "scores of all classes"),
        (((3, 4), (3, 0), (3, 4)), {"num_classes": 0}, "scores of all classes"),
        (((3, 4), (3, 3), (3, 4)), {"max_detections": 0}, "scores of all classes"),
        (((3, 4), (2, 3), (3, 4)), {}, "scores of all boxes"),
        (((3, 3), (3, 3), (3, 4)), {}, "anchors"),
        (((3, 4), (3, 3), (2, 4)), {}, "anchors"),
        (((3, 4), (3, 3), (3, 4)), {"h_scale": 0}, "scales above 0"),
        (((3, 4), (3, 3), (3, 4)), {"x_scale": 0}, "scales above 0"),
        (((3, 4), (3, 3), (3, 4)), {"max_classes_per_detection": 0}, "1 class or more"),
        (((3, 4), (3, 3), (3, 4)), {"detections_per_class": 0}, "1 class or more"),
    ],
)
def test_boxes_scores_and_anchors_of_detections_fit_each_other(
    shapes: tuple[tuple[int, int], ...], changed: dict[str, int], said: str
) -> None:
    given = {**DETECTED, "w_scale": 1, "nms_score_threshold": 0, "nms_iou_threshold": 1, **changed}
    options = flexbuffers.Dumps(given)
    kind, operands = "TFLite_Detection_PostProcess", [In(shape) for shape in shapes]
    model = TfliteModel.of(case(kind, [*operands], [F] * 4, custom=bytes(options)).content)
    if said:
        with pytest.raises(ModelError, match=rf"node 'y0' \({kind}\).*: .*{said}"):
            model.to_graph()
    else:
        assert len(model.to_graph().graph.outputs) == 4


@pytest.mark.parametrize("scale", [2.0**-16, 2.0**-8, 3 * 2.0**-12])
def test_a_cell_of_integers_has_a_power_of_two_as_its_scale(scale: float) -> None:
    gates: Operands = [Const(np.ones((5, 5), np.int8), (0.01,), (0,))] * 8
    biases: Operands = [i32(*range(5))] * 4
    states: Operands = [State((2, 5), "int8", 0.01), State((2, 5), "int16", scale)]
    operands = [In((2, 5), "int8", scale=0.1), *gates, *MEMORY, *biases, None, None, *states]
    content = case("LSTM", operands, [Out("int8", 0.01)], "LSTMOptions", version=3).content
    with pytest.raises(ModelError, match=r"a cell's scale of 2\*\*-15..2\*\*-9"):
        TfliteModel.of(content).to_graph()


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool"])
@pytest.mark.parametrize("kind", [*ACTIVATIONS, *SOFTMAX])
def test_functions_say_which_quantised_types_they_do_not_take(kind: str, dtype: str) -> None:
    operands: Operands = [In((5, 2), dtype, scale=0.5)]
    operands += [floats(2)] if kind == "PRELU" else []
    content = case(kind, operands, [Out(dtype, 0.5)]).content
    with pytest.raises(UnsupportedOperatorError, match=rf"'y0' \({kind}\): .*{dtype}"):
        TfliteModel.of(content).to_graph()


SHRUNK = ("StridedSliceOptions", {**SLICE, "ShrinkAxisMask": 1}), "an index of axis 0"
BOUNDARIES: list[tuple[str, list[Operands], tuple[str, dict[str, Any]], str]] = [
    *(
        ("MIRROR_PAD", [[LINE, Const(np.int32([[4, size]]))] for size in (4 + mode, 5 + mode)],
         ("MirrorPadOptions", {"Mode": mode}), "borders smaller") for mode in (0, 1)
    ),
    ("STRIDED_SLICE", [[LINE, i32(at), i32(9), i32(1)] for at in (4, 5)], *SHRUNK),
    ("STRIDED_SLICE", [[LINE, i32(at), i32(9), i32(1)] for at in (-5, -6)], *SHRUNK),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "both", "options", "said"), BOUNDARIES)
def test_the_last_size_is_taken(kind: str, both: list[Operands], options: Any, said: str) -> None:
    fits, beyond = (TfliteModel.of(case(kind, each, [F], *options).content) for each in both)
    fits.to_graph()
    with pytest.raises(ModelError, match=said):
        beyond.to_graph()


def test_a_tensor_that_is_too_large_is_said_with_the_node() -> None:
    content = case("BROADCAST_TO", [LINE, i32(1 << 16, 1 << 16, 5)], [F]).content
    with pytest.raises(ModelError, match=r"^node 'y0': a tensor of .*at most 64 GiB"):
        TfliteModel.of(content).to_graph()


def test_a_result_of_another_type_than_the_file_says_is_refused() -> None:
    content = case("ADD", [ONE, ONE], [Out("int8")], "AddOptions").content
    with pytest.raises(ModelError, match="'y0' is int8 in the file; it computes float32"):
        TfliteModel.of(content).to_graph()


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize(
    ("kind", "x", "weights", "table", "options"),
    [
        ("FULLY_CONNECTED", (3, 2), (5, 2), "FullyConnectedOptions", {}),
        ("CONV_2D", (1, 7, 6, 4), (5, 3, 2, 4), "Conv2DOptions", CONV),
    ],
)
def test_weights_have_one_scale_or_one_a_channel(
    kind: str, x: tuple[int, ...], weights: tuple[int, ...], table: str, options: Any, dtype: str
) -> None:
    for scales in ((0.1,), (0.1,) * 5, (0.1, 0.2)):
        given = Const(np.ones(weights, np.int8), scales, (0,) * len(scales))
        operands: Operands = [In(x, dtype, scale=0.1), given]
        model = TfliteModel.of(case(kind, operands, [Out(dtype, 0.3)], table, options).content)
        if len(scales) == 2:
            with pytest.raises(ModelError, match="required one scale of weights, or 5"):
                model.to_graph()
        else:
            model.to_graph()
