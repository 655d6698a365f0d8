"""TensorFlow Lite's files whose tables contradict themselves, and four-bit constants."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.errors import ModelError

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.front.tflite.read_file import _Reader, read_file
from dovetail.compiler.front.tflite.source import TfliteModel

from .build import Op, Tensor, write, write_subgraphs

Y = Tensor("y", (2, 3))


def relu(x: Tensor, inputs: tuple[int, ...] = (0,), outputs: tuple[int, ...] = (1,)) -> bytes:
    """A model of one operator that reads ``x``."""
    return write([x, Y], [Op("RELU", inputs, (1,))], [0], outputs)


def scaled(scales: tuple[float, ...], zeros: tuple[int, ...] = ()) -> bytes:
    return relu(Tensor("x", (2, 3), "int8", None, scales, zeros))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"TFL3", "required the identifier TFL3"),
        (relu(Y).replace(b"TFL3", b"TFL2"), "required the identifier TFL3"),
        (write_subgraphs([]), "no subgraph"),
        (relu(Tensor("x", (1,) * 33)), "tensor 'x' has shape"),
        (relu(Tensor("x", (2, -2))), r"tensor 'x' has shape \[2, -2\]"),
        (relu(Y, inputs=(2,)), r"tensors \[2\] of 2"),
        (relu(Y, inputs=(-2,)), r"tensors \[-2\] of 2"),
        (relu(Y, outputs=(-1,)), "an input or output of a subgraph is left out"),
        (scaled((0.1,) * 3, (1, 2)), "tensor 'x': 3 scales, 2 zero points"),
        (scaled((0.1,), (1 << 31,)), "tensor 'x': zero points must be of int32"),
        (scaled((0.1, float("inf"))), "tensor 'x': scales must be finite and 0 or more"),
        (scaled((-0.5,)), "tensor 'x': scales must be finite and 0 or more"),
        (relu(Y)[:-20], "the file is damaged or cut off|beyond the end|longer than the file"),
        (relu(Tensor("x", (1 << 20, 1 << 21))), r"required less than 2\*\*40"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read_file(content)


def test_what_is_at_its_limit_is_read() -> None:
    (graph,) = read_file(relu(Tensor("x", (1,) * 30 + (-1, 0)))).subgraphs
    assert graph.tensors[0].shape == (*(1,) * 31, 0)
    (graph,) = read_file(scaled((0.0, 0.5), ((1 << 31) - 1,))).subgraphs
    quantization = graph.tensors[0].quantization
    assert quantization is not None
    assert quantization.zero_points == ((1 << 31) - 1,) * 2


def test_lists_that_share_their_elements_are_together_no_longer_than_the_file() -> None:
    reader = _Reader(b"", left=10)
    assert [reader.each(int, 6), reader.each(int, 4)] == [[*range(6)], [*range(4)]]
    for count in (1, -1):
        with pytest.raises(ModelError, match=f"a list of {count} elements is longer than the file"):
            reader.each(int, count)


def test_a_constant_has_as_many_bytes_as_its_shape_asks_for() -> None:
    short = Tensor("c", (5,), data=np.zeros(4, np.float32))
    long = Tensor("d", (3,), data=np.arange(4, dtype=np.float32))
    flags = Tensor("e", (3,), "bool", np.asarray([0, 2, 255], np.uint8))
    file = read_file(write([short, long, flags, Y], [], [], [3]))
    first, second, third = file.subgraphs[0].tensors[:3]
    with pytest.raises(ModelError, match=r"'c' of shape \[5\] needs 20 bytes; its buffer has 16"):
        file.constant(first)
    np.testing.assert_array_equal(file.constant(second), np.arange(3.0))
    np.testing.assert_array_equal(file.constant(third), [False, True, True])


def test_four_bits_are_signed_and_the_lower_half_of_a_byte_comes_first() -> None:
    values = np.asarray([[-8, 7, -1], [0, 1, -7], [3, -4, 5]], np.int8)
    pairs = np.append(values.reshape(-1), 0).astype(np.uint8).reshape(-1, 2) & 15
    packed = Tensor("c", values.shape, "int4", pairs[:, 0] | pairs[:, 1] << 4)
    file = read_file(write([packed, Y], [], [], [1]))
    found = file.constant(file.subgraphs[0].tensors[0])
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, values)


def test_a_path_is_named_where_there_is_no_file_or_another(tmp_path: Path) -> None:
    path = tmp_path / "a.tflite"
    with pytest.raises(ModelError, match=rf"no model file {path}"):
        TfliteModel.of(path)
    with pytest.raises(ModelError, match=rf"{tmp_path} cannot be read"):
        TfliteModel.of(tmp_path)
    path.write_bytes(b"something else")
    with pytest.raises(ModelError, match=rf"{path} is not a TensorFlow Lite model: required"):
        TfliteModel.of(path)
    path.write_bytes(relu(Y))
    model = TfliteModel.of(path)
    assert TfliteModel.of(model) is model
    assert (model.name, model.quantizes, model.constant_shapes) == ("main", False, ())
    assert TfliteModel.of(scaled((0.5,))).quantizes
    fixed = TfliteModel.of(relu(Tensor("x", (2, 3), data=np.zeros((2, 3), np.float32))))
    assert fixed.constant_shapes == ((2, 3),)
    assert [(each.name, each.shape) for each in (*model.inputs, *model.outputs)] == [
        ("y", (2, 3)), ("y", (2, 3)),
    ]  # fmt: skip
    with pytest.raises(ModelError, match=r"dimensions \['n'\] are bound"):
        model.bind({"n": 1})


def test_options_of_a_custom_operator_that_are_no_numbers_by_name_are_refused() -> None:
    tensors = [Tensor("a", (1, 3, 4)), Tensor("b", (1, 3, 2)), Tensor("c", (3, 4)), Y]
    for options in (b"\xff\xff\xff", b"\x00", bytes(range(64))):
        op = Op("TFLite_Detection_PostProcess", (0, 1, 2), (3,), custom=options)
        with pytest.raises(ModelError, match=r"PostProcess\): its options are damaged \("):
            TfliteModel.of(write(tensors, [op], [0, 1, 2], [3])).to_graph()


def test_a_tensor_that_nothing_computes_is_empty_or_refused() -> None:
    for shape in ((2, 3), (1, 3)):
        given, made = Tensor("x", shape), Tensor("z", shape)
        nothing = write([given, made, Tensor("y", shape)], [Op("RELU", (1,), (2,))], [0], [2])
        with pytest.raises(ModelError, match="reads 'z', which no node before it computes"):
            TfliteModel.of(nothing).to_graph()
    empty = write([Y, Tensor("z", (0, 3)), Tensor("e", (0, 3))], [Op("RELU", (1,), (2,))], [0], [2])
    assert [each.shape for each in TfliteModel.of(empty).outputs] == [(0, 3)]
    assert TfliteModel.of(empty).to_graph().graph.outputs == ("e",)


def test_an_element_type_without_meaning_is_named() -> None:
    with pytest.raises(ModelError, match="tensor 'x' has elements of type COMPLEX64"):
        TfliteModel.of(relu(Tensor("x", (2, 3), "complex64"))).to_graph()


def test_a_call_of_a_subgraph_with_other_inputs_is_refused() -> None:
    one = Tensor("c", (), "bool", np.asarray(True)), Tensor("x", (3,)), Tensor("y", (3,))
    branches = {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 1}
    main = one, [Op("IF", (0, 1), (2,), "IfOptions", branches)], [1], [2]
    other = one[1:], [Op("NEG", (0,), (1,))], [0, 0], [1]
    with pytest.raises(ModelError, match="a subgraph of 2 inputs is given 1"):
        TfliteModel.of(write_subgraphs([main, other])).to_graph()
