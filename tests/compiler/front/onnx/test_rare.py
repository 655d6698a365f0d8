"""Attributes and forms of operators that few models have, against ONNX Runtime or what is said."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run

from .nodes import given, model_of, runtime

RNG = np.random.default_rng(4)
F32, I64 = np.float32, np.int64


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(F32)


X, TIED = normal(2, 4, 5, 6), np.array([[1, 3, 3, 0], [2, 2, 2, 2]], F32)
ROIS = np.array([[0, 0, 0, 4, 3], [1, 2, 1, 9, 9], [0, 3, 3, 3, 3]], F32)
WORDS = np.array([[1, 2, 3, 1, 2], [3, 3, 0, 1, 9]], np.int32)
POOL = np.array([2, 3, 1, 1, 2, 3, 3])
GRAMS: dict[str, Any] = {
    "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0, 3],
    "ngram_indexes": [0, 1, 4, 2, 3], "pool_int64s": POOL.tolist(),
}  # fmt: skip
SEQUENCE, W, R = normal(3, 2, 4), normal(1, 3, 4), normal(1, 3, 3)
IMAGE, SIZES = normal(1, 2, 5, 4), np.array([1, 2, 8, 3])
FOURS = np.array(4)


def rnn(**attributes: Any) -> dict[str, Any]:
    return {"hidden_size": 3, "outputs": 2, **attributes}


CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Shrink", [np.array([0, 1, 3, 200], np.uint8)], {"lambd": 2.5, "bias": 1.0}),
    ("Hardmax", [X], {}),
    ("Hardmax", [X], {"axis": 1}),
    ("Hardmax", [X], {"axis": 2, "opset": 11}),
    ("Hardmax", [TIED], {"axis": 1}),
    ("Softmax", [X], {"axis": 1}),
    ("Softmax", [X], {"axis": 1, "opset": 11}),
    ("LogSoftmax", [X], {"axis": -3}),
    ("GroupNormalization", [X, normal(2), normal(2)], {"num_groups": 2, "opset": 20}),
    ("GroupNormalization", [X, normal(4), normal(4)], {"num_groups": 2, "epsilon": 0.3}),
    ("MaxRoiPool", [X, ROIS], {"pooled_shape": [2, 3], "constant": (1,)}),
    (
        *("MaxRoiPool", [X, ROIS]),
        {"pooled_shape": [3, 2], "spatial_scale": 0.5, "constant": (1,)},
    ),
    *(
        ("TfIdfVectorizer", [WORDS], {**GRAMS, "mode": mode, **weights})
        for mode in ("TF", "IDF", "TFIDF")
        for weights in ({}, {"weights": [0.5, 2.0, 3.0, 0.25, 4.0]})
    ),
    ("TfIdfVectorizer", [WORDS[0]], {**GRAMS, "mode": "TF", "max_skip_count": 2}),
    ("TfIdfVectorizer", [WORDS], {**GRAMS, "mode": "TF", "min_gram_length": 2}),
    *(
        ("RNN", [SEQUENCE, W, R], rnn(activations=[name], **more))
        for name, more in (
            ("Affine", {"activation_alpha": [0.5], "activation_beta": [0.25]}),
            ("Elu", {"activation_alpha": [0.7]}),
            ("HardSigmoid", {}),
            ("HardSigmoid", {"activation_alpha": [0.3], "activation_beta": [0.4]}),
            ("LeakyRelu", {}),
            ("LeakyRelu", {"activation_alpha": [0.3]}),
            ("Relu", {}),
            ("ScaledTanh", {"activation_alpha": [1.5], "activation_beta": [0.5]}),
            ("Softplus", {}),
            ("Softsign", {}),
            ("ThresholdedRelu", {}),
            ("ThresholdedRelu", {"activation_alpha": [0.2]}),
            ("Tanh", {"clip": 0.4}),
        )
    ),
    ("RNN", [SEQUENCE, W, R], rnn(direction="reverse")),
    ("LSTM", [SEQUENCE, normal(1, 12, 4), normal(1, 12, 3)], rnn(input_forget=0, clip=0.3)),
    ("GRU", [SEQUENCE, normal(1, 9, 4), normal(1, 9, 3)], rnn(linear_before_reset=1)),
    *(
        ("Resize", [IMAGE, None, None, SIZES], {"constant": (3,), "mode": mode, **more})
        for mode, more in (
            ("nearest", {"coordinate_transformation_mode": "asymmetric"}),
            ("nearest", {"nearest_mode": "ceil"}),
            ("nearest", {"nearest_mode": "floor"}),
            ("nearest", {"nearest_mode": "round_prefer_ceil"}),
            ("linear", {"coordinate_transformation_mode": "align_corners"}),
            ("linear", {"coordinate_transformation_mode": "pytorch_half_pixel"}),
            ("linear", {"coordinate_transformation_mode": "half_pixel_symmetric"}),
            ("linear", {"antialias": 1}),
            ("cubic", {"cubic_coeff_a": -0.5}),
            ("cubic", {"exclude_outside": 1}),
        )
    ),
    (
        *("Resize", [IMAGE, None, np.array([1, 1, 1.6, 0.75], F32)]),
        {"constant": (2,), "mode": "linear"},
    ),
    ("Gemm", [normal(3, 2), normal(4, 3), normal(4)], {"transA": 1, "transB": 1, "alpha": 0.5}),
    ("Gemm", [normal(2, 3), normal(3, 4), normal(2, 1)], {"beta": 0.25}),
    ("Gemm", [normal(2, 3), normal(3, 4), normal(2, 1)], {"beta": 0.0}),
    (
        *("ConvTranspose", [normal(1, 2, 3, 3), normal(2, 2, 3, 3)]),
        {"strides": [2, 2], "output_shape": [8, 7], "auto_pad": "SAME_LOWER"},
    ),
    ("DFT", [normal(1, 6, 1), np.array(4)], {"opset": 17, "axis": 1, "constant": (1,)}),
    ("DFT", [normal(1, 6, 2), np.array(9)], {"opset": 17, "axis": 1, "constant": (1,)}),
    ("DFT", [normal(1, 6, 2)], {"opset": 17, "axis": 1, "inverse": 1}),
    ("DFT", [normal(1, 6, 1)], {"opset": 17, "axis": 1, "onesided": 1}),
    ("NonZero", [np.zeros((2, 3), F32)], {"constant": (0,)}),
    ("NonZero", [TIED], {"constant": (0,)}),
]


FORMS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Slice", [X], {"opset": 9, "starts": [1, 2], "ends": [9, -1], "axes": [1, 3]}),
    (
        *("Slice", [X, np.array([1, -1]), np.array([9, -9]), np.array([1, 3]), np.array([2, -2])]),
        {"opset": 10, "constant": (1, 2, 3, 4)},
    ),
    ("Clip", [X], {"opset": 10, "min": -0.5, "max": 0.25}),
    ("Clip", [X, np.array(-0.5, F32), np.array(0.25, F32)], {"opset": 11}),
    ("Pad", [X], {"opset": 10, "pads": [0, 1, 0, 0, 0, 0, 2, 0], "value": 0.5}),
    (
        *("Pad", [X, np.array([0, 1, 0, 0, 0, 0, 2, 0]), np.array(0.5, F32)]),
        {"opset": 11, "constant": (1,)},
    ),
    *(("Softmax", [X], {"opset": opset, "axis": 1}) for opset in (12, 13)),
    *((kind, [X], {"opset": opset}) for kind in ("Softmax", "Hardmax") for opset in (12, 13)),
    ("Unsqueeze", [X], {"opset": 12, "axes": [0, -1]}),
    ("Unsqueeze", [X, np.array([0, -1])], {"opset": 13, "constant": (1,)}),
    ("Squeeze", [X[:1, :, :1]], {"opset": 12, "axes": [0, 2]}),
    ("Squeeze", [X[:1, :, :1], np.array([0, 2])], {"opset": 13, "constant": (1,)}),
    ("Split", [X], {"opset": 12, "axis": 1, "split": [1, 3], "outputs": 2}),
    ("Split", [X, np.array([1, 3])], {"opset": 13, "axis": 1, "outputs": 2, "constant": (1,)}),
    ("ReduceSum", [X], {"opset": 12, "axes": [1, -1]}),
    ("ReduceSum", [X, np.array([1, -1])], {"opset": 13, "constant": (1,)}),
    ("Resize", [IMAGE, np.array([1, 1, 2, 1.5], F32)], {"opset": 10, "constant": (1,)}),
    (
        *("Resize", [IMAGE, np.array([], F32), np.array([1, 1, 2, 1.5], F32)]),
        {"opset": 11, "constant": (1, 2)},
    ),
    *(
        ("RoiAlign", [X, ROIS[:, 1:], np.array([0, 1, 0])], {"opset": opset, "sampling_ratio": 2})
        for opset in (15, 16)
    ),
    ("DFT", [normal(1, 6, 1)], {"opset": 19, "axis": 1}),
    ("DFT", [normal(1, 3, 6, 1), None, np.array(2)], {"opset": 20, "constant": (2,)}),
]  # fmt: skip
"""Forms of the last opset that has the old one, and of the first with the new one."""
CASES += FORMS


@pytest.mark.parametrize(
    ("kind", "inputs", "options"), CASES, ids=[f"{each[0]}-{n}" for n, each in enumerate(CASES)]
)
def test_the_graph_means_what_onnx_runtime_computes(
    kind: str, inputs: list[Any], options: dict[str, Any]
) -> None:
    model = model_of(kind, inputs, **options)
    graph = open_model(model).to_graph().graph
    values = run(graph, given(model, inputs))
    for name, wanted in zip(graph.outputs, runtime(model, inputs), strict=True):
        assert values[name].dtype == wanted.dtype
        np.testing.assert_allclose(values[name], wanted, rtol=1e-4, atol=1e-5, strict=True)


REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Gemm", [X, X], {}, "operands of 4 and 4 dimensions; required 2"),
    ("Conv", [X, normal(3, 4, 3)], {}, "required equal ranks"),
    ("Conv", [X, normal(3, 4, 3, 3)], {"strides": [0, 1]}, "required at least 1"),
    ("Conv", [X, normal(3, 4, 3, 3)], {"pads": [1, 1]}, "2 pads; required 4"),
    ("Hardmax", [X], {"axis": 4}, "axis 4; required -4 to 3"),
    ("Hardmax", [X], {"axis": 1.5}, "required an integer"),
    ("Conv", [X, normal(3, 4, 3, 3)], {"strides": 2}, "required a list of integers"),
    ("LeakyRelu", [X], {"alpha": "x"}, "required a number"),
    ("RNN", [SEQUENCE, W, R], rnn(activations=3), "required a list of strings"),
    ("RNN", [SEQUENCE, W, R], rnn(activations=["Tanh", "Tanh"]), "2 activations"),
    ("RNN", [SEQUENCE, W, R], rnn(activations=["Sin"]), "activation 'Sin'"),
    ("RNN", [SEQUENCE, W, R], rnn(direction="bidirectional"), "1 directions of weights"),
    ("RNN", [SEQUENCE, W, R], rnn(direction="both"), "1 directions of weights"),
    ("GroupNormalization", [X, normal(3), normal(3)], {"num_groups": 3}, "3 groups of 4"),
    ("Reshape", [X, np.array([-1, -1])], {"constant": (1,)}, "-1 more than once"),
    ("Squeeze", [X, np.array([1])], {"constant": (1,)}, "is not 1"),
    ("Split", [X, np.array([1, 2])], {"axis": 1, "outputs": 2, "constant": (1,)}, "dimension of 4"),
    ("Split", [X], {"axis": 1, "outputs": 2, "num_outputs": 3}, "3 parts for 2 outputs"),
    ("Resize", [IMAGE, None, None, SIZES[:3]], {"constant": (3,)}, "one for each of 4 axes"),
    ("Resize", [IMAGE, None, None, SIZES], {"constant": (3,), "mode": "other"}, "mode 'other'"),
    (
        *("Resize", [IMAGE, None, None, SIZES]),
        *({"constant": (3,), "nearest_mode": "other"}, "nearest_mode 'other'"),
    ),
    (
        *("Resize", [IMAGE, None, None, SIZES]),
        *(
            {"constant": (3,), "coordinate_transformation_mode": "other"},
            "coordinate transformation 'other'",
        ),
    ),
    ("GridSample", [X, normal(2, 3, 3, 2)], {"padding_mode": "other"}, "padding 'other'"),
    ("GridSample", [X, normal(2, 3, 3, 2)], {"mode": "other"}, "mode 'other'"),
    (
        *("AffineGrid", [normal(1, 2, 2), np.array([1, 1, 3, 3])]),
        *({"opset": 20, "constant": (1,)}, r"theta \(1, 2, 2\); required \(1, 2, 3\)"),
    ),
    ("GridSample", [X, normal(2, 3, 3)], {}, r"grid \(2, 3, 3\)"),
    ("MaxRoiPool", [X, ROIS[:0]], {"pooled_shape": [2, 3], "constant": (1,)}, "no region"),
    ("DFT", [normal(1, 6, 3)], {"opset": 17, "axis": 1}, "along dimension 1"),
    ("Constant", [], {"value_string": "x"}, "a constant given by value_string"),
    ("QuantizeLinear", [X, np.array(0.5, F32)], {"output_dtype": 12}, "quantises to UINT32"),
    (
        *("SoftmaxCrossEntropyLoss", [normal(2, 3), np.array([0, 1])]),
        *({"reduction": "other"}, "reduction 'other'"),
    ),
    ("SequenceLength", [X], {}, "input 0 is not a sequence"),
    (
        *("STFT", [normal(1, 8, 1), np.array(2), None, np.array(9)]),
        *({"constant": (1, 3)}, "frames of 9 every 2 of 8"),
    ),
]


@pytest.mark.parametrize(
    ("kind", "inputs", "options", "said"),
    REFUSED,
    ids=[f"{each[0]}-{n}" for n, each in enumerate(REFUSED)],
)
def test_what_has_no_meaning_is_said_with_the_node(
    kind: str, inputs: list[Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises((ModelError, UnsupportedOperatorError), match=rf"node 'node'.*{said}"):
        open_model(model_of(kind, inputs, **options)).to_graph()
