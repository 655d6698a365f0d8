"""Models of one operator against LiteRT: integers equal, floats within 1e-5 of the largest."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.graph.interpreter import run

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.front.tflite.source import TfliteModel
from tests.kept import check_kept
from tests.kept_forms import form

from .build import Op, Tensor, write
from .case import In, Out, case, i32
from .cases import FAMILIES, Case, cases
from .compare import difference
from .reference import litert

KEPT = Path(__file__).with_name("kept_forms.json")


def interpreted(case: Case) -> tuple[str, str]:
    """The form of a model's graph, and its fault; nothing if it gives LiteRT's results."""
    graph = TfliteModel.of(case.content).to_graph().graph
    values = run(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
    wanted = litert(case.content, case.inputs, case.kind)
    return form(graph), difference([values[name] for name in graph.outputs], wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_give_the_reference_results(family: str) -> None:
    forms, wrong = [], []
    for number, each in enumerate(cases(family)):
        own, said = interpreted(each)
        forms.append(f"{each.kind} of {each.dtype}: {own}")
        if said:
            wrong.append(f"{each.kind} of {each.dtype}, number {number}: {said}")
    assert not wrong, "\n".join(wrong)
    check_kept(KEPT, family, forms)


def test_sums_of_int8_are_those_of_uint8() -> None:
    """LiteRT 2.3 reads the bits of int8 as those of uint8: it gives -1 for -5 + 6."""
    values = np.random.default_rng(3).integers(-128, 128, (40, 5))
    axes = i32(1)
    found, wanted = [], []
    for dtype, zero in (("int8", 3), ("uint8", 131)):
        x = In(values.shape, dtype, scale=0.05, zero=zero)
        out = Out(dtype, 0.08, zero + 5)
        content = case("SUM", [x, axes], [out], "ReducerOptions").content
        inputs = ((values + zero - 3).astype(dtype),)
        graph = TfliteModel.of(content).to_graph().graph
        found.append(run(graph, dict(zip(graph.inputs, inputs, strict=True)))[graph.outputs[0]])
        wanted = litert(content, inputs, "SUM")
    np.testing.assert_array_equal(found[0].astype(int) + 128, wanted[0])
    np.testing.assert_array_equal(found[1], wanted[0])


def test_an_operator_without_a_converter_is_named_with_its_node() -> None:
    tensors = [Tensor("x", (2, 3)), Tensor("there", (2, 3))]
    content = write(tensors, [Op("MyOwn", (0,), (1,))], [0], [1])
    with pytest.raises(UnsupportedOperatorError, match=r"node 'there' \(MyOwn\): operator MyOwn"):
        TfliteModel.of(content).to_graph()


def test_operands_that_do_not_fit_are_named() -> None:
    tensors = [Tensor("x", (2, 3)), Tensor("z", (4, 5)), Tensor("there", (2, 3))]
    content = write(tensors, [Op("ADD", (0, 1), (2,), "AddOptions")], [0, 1], [2])
    with pytest.raises(ModelError, match=r"node 'there' \(ADD\): .*shapes that broadcast"):
        TfliteModel.of(content).to_graph()
