"""Each operator as ONNX: ONNX Runtime's result of it alone is its meaning."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.front.onnx.write import write_model
from dovetail.compiler.front.onnx.write.table import WRITERS
from dovetail.compiler.front.torch.context import Context
from dovetail.compiler.front.torch.table import CONVERTERS
from dovetail.compiler.graph.formulas import Term
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.operators.indexing import Gather, GatherElements, GatherNd
from dovetail.compiler.graph.operators.movement import PadMode, PadTensor, Slice
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.operators.reductions import (
    ArgReduce,
    Cumulative,
    Reduce,
    ReduceFunction,
)
from dovetail.compiler.graph.operators.transposed import TransposedConvolution
from dovetail.compiler.graph.operators.windows import WindowFunction, WindowReduce
from dovetail.compiler.graph.types import TensorType
from tests.compiler.define.operators import CASES

Arrays = Sequence[np.ndarray]
RNG = np.random.default_rng(9)
X, ROWS = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32), RNG.integers(-9, 9, (4, 5))
BYTES = RNG.integers(-128, 128, (3, 4), dtype=np.int8)
F32 = DType.FLOAT32
ZERO, NUMBERS = np.float32(0), np.array([[0, -1], [2, 9]])
MAX, MIN, SUM = ReduceFunction.MAX, ReduceFunction.MIN, ReduceFunction.SUM
WHOLE = np.stack([NUMBERS, NUMBERS[::-1]], -1)
MORE: list[tuple[TensorOperator, Arrays]] = [
    *((PadTensor((0, 1, 2, 0), (0, 0, 1, 3), mode), [X, ZERO]) for mode in PadMode),
    (Slice((3, 0), (-1, 2), (4, 2)), [ROWS]),
    (Slice((2, 4), (-1, -2), (2, 3)), [ROWS]),
    (Slice((0, 0), (1, 1), (4, 5)), [ROWS]),
    (Slice((1, 0), (1, 1), (0, 5)), [ROWS]),
    *((Gather(axis), [ROWS, NUMBERS]) for axis in (0, 1)),
    (GatherElements(1), [ROWS, NUMBERS]),
    (GatherNd(0), [ROWS, WHOLE]),
    (GatherNd(1), [X[:, :, 0], WHOLE[..., :1]]),
    *((Reduce(each, (0, 2), keep), [X]) for each in (MAX, MIN, SUM) for keep in (True, False)),
    (Reduce(SUM, (), True), [X]),
    (Reduce(SUM, (1,), False), [BYTES]),
    *((ArgReduce(each, 1, last), [BYTES % 3]) for each in (MAX, MIN) for last in (True, False)),
    *((Cumulative(SUM, 1, *how), [BYTES]) for how in ((True, False), (False, True), (True, True))),
    (WindowReduce((2, 3), (2, 3), (1, 2), (2, 1), ((1, 0), (0, 1)), WindowFunction.MAX), [X]),
    (WindowReduce((2, 3), (2, 3), (1, 2), (1, 1), ((1, 0), (0, 1)), WindowFunction.ADD), [X]),
    (Convolution((2, 1), (1, 2), ((1, 0), (0, 2)), (1, 1), 1, F32), [X, X[:, :, :2, :2]]),
    (
        TransposedConvolution((2, 3), (1, 1), ((1, 0), (0, 0)), (0, 4), 1, F32),
        [X, X[0, :, None, :2, :2].repeat(2, 1)],
    ),
    (
        TransposedConvolution((2, 1), (1, 1), ((-1, 0), (0, -2)), (0, 0), 1, F32),
        [X, X[0, :, None, :2, :2].repeat(2, 1)],
    ),
]  # fmt: skip


def both(operator: TensorOperator, arrays: Arrays) -> tuple[list[Any], list[Any]]:
    """The results by ONNX Runtime and by the operator's meaning."""
    builder, inputs = GraphBuilder(), {f"x{n}": np.asarray(each) for n, each in enumerate(arrays)}
    names = [
        builder.input(name, TensorType(each.shape, str(each.dtype)))
        for name, each in inputs.items()
    ]
    outputs = builder.node_outputs(operator, tuple(names), "y", "n")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    model = write_model(builder.build(tuple(outputs)))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    wanted = {each.name for each in session.get_inputs()}
    found = session.run(list(outputs), {name: inputs[name] for name in wanted})
    with np.errstate(all="ignore"):
        return list(found), list(operator.evaluate([*inputs.values()]))


@pytest.mark.parametrize("cases", [CASES, MORE], ids=["with loops", "more"])
def test_an_operator_is_written_with_its_meaning(cases: Any) -> None:
    tried = 0
    for operator, arrays in cases:
        dilated = isinstance(operator, WindowReduce) and max(operator.dilations) > 1
        if type(operator) not in WRITERS or (dilated and arrays[0].dtype != np.float32):
            continue  # ONNX Runtime has few types of these
        tried += 1
        for found, wanted in zip(*both(operator, arrays), strict=True):
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), operator
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=str(operator))
    assert tried >= 25


@pytest.mark.parametrize(
    ("operator", "arrays", "said"),
    [
        (
            Convolution((1, 1), (1, 1), ((0, 0), (0, 0)), (2, 1), 1, F32),
            [X, X[:, :, :2, :2]], "convolution of inputs that are spread out",
        ),
        (
            Convolution((1, 1), (1, 1), ((0, 0), (0, -1)), (1, 1), 1, F32),
            [X, X[:, :, :2, :2]], "convolution with negative pads",
        ),
        (Cumulative(ReduceFunction.PRODUCT, 0), [X], "running product"),
    ],
)  # fmt: skip
def test_what_onnx_has_no_operator_for_is_named(
    operator: TensorOperator, arrays: Arrays, said: str
) -> None:
    with pytest.raises(UnsupportedOperatorError, match=f"node 'n': .*{said}"):
        both(operator, arrays)


@pytest.mark.parametrize(
    ("name", "size", "options", "modes"),
    [
        ("bilinear2d", (8, 10), (False,), [("linear", "half_pixel")]),
        ("bilinear2d", (8, 10), (True,), [("linear", "align_corners")]),
        ("bilinear2d", (6, 7), (False,), [("linear", "half_pixel")]),
        ("nearest2d", (8, 10), (), [("nearest", "asymmetric")]),
        ("linear1d", (9,), (True,), [("linear", "align_corners")]),
    ],
)
def test_weighted_neighbours_are_a_resize(
    name: str, size: tuple[int, ...], options: tuple[bool, ...], modes: list[tuple[str, str]]
) -> None:
    context = Context(GraphBuilder())
    context.declared, context.origin = (DType.FLOAT32,), "n"
    given = X[:, :, :, :5] if len(size) == 2 else X[:, :, 0]
    x = context.builder.input("x", TensorType(given.shape, "float32"))
    own = Term(context, context.tensor(x))
    term: Any = CONVERTERS[f"aten.upsample_{name}"](context, own, size, *options)
    graph = context.builder.build((term.tensor.name,))
    model = write_model(graph)
    found = [{each.name: each.s.decode() for each in node.attribute} for node in model.graph.node]
    assert [(each["mode"], each["coordinate_transformation_mode"]) for each in found] == modes
    (y,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": given})
    np.testing.assert_allclose(y, run(graph, {"x": given})[graph.outputs[0]], atol=1e-5)
