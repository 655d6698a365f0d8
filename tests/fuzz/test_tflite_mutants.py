"""Damaged files of TensorFlow Lite: a graph or one clear error, soon, whatever their bytes are."""

import pytest

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.tflite.source import TfliteModel
from tests.compiler.front.tflite.build import Op, Tensor, write

from .tflite_mutants import read_mutant, tflite_models

RELU = [Op("RELU", (0,), (1,))]


def test_mutants_become_graphs_or_clear_errors() -> None:
    read = sum(read_mutant(seed) for seed in range(600))
    assert 20 < read < 400, "too few are damaged, or all of them"


def test_files_that_are_cut_off_are_refused() -> None:
    content = tflite_models()[0]
    for end in range(0, len(content) - 8, 7):
        with pytest.raises(ModelError):
            TfliteModel.of(content[:end]).to_graph()


def test_a_tensor_that_nothing_computes_is_named() -> None:
    content = write([Tensor("x", (2,)), Tensor("y", (2,))], RELU, [], [1])
    with pytest.raises(ModelError, match=r"node 'y' \(RELU\) reads 'x', which no node before it"):
        TfliteModel.of(content).to_graph()


def test_a_shape_beyond_all_memory_is_refused() -> None:
    sizes = (1 << 30, 1 << 30, 1 << 30)
    content = write([Tensor("x", sizes), Tensor("y", sizes)], RELU, [0], [1])
    with pytest.raises(ModelError, match=r"tensor 'x' has shape .*required less than 2\*\*40"):
        TfliteModel.of(content)


def test_a_window_beyond_all_memory_is_refused() -> None:
    window = {"FilterHeight": 1 << 24, "FilterWidth": 1, "StrideH": 1, "StrideW": 1}
    ops = [Op("MAX_POOL_2D", (0,), (1,), "Pool2DOptions", window)]
    content = write([Tensor("x", (1, 7, 6, 4)), Tensor("y", ())], ops, [0], [1])
    with pytest.raises(ModelError, match="required windows of at most 65536"):
        TfliteModel.of(content).to_graph()
