"""Arguments and results as a caller sees them, and the tensors that carry them."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.errors import GraphError, ModelError, UnsupportedOperatorError
from dovetail.compiler.executor.values import arguments_key, flatten, restore
from dovetail.compiler.front.faults import faults_of
from dovetail.compiler.graph.types import TensorType

A, B = np.zeros((2, 3), np.float32), np.ones(4, np.int64)


def test_arguments_come_back_as_they_went() -> None:
    kinds = dict[str, TensorType]()

    def declare(name: str, kind: TensorType) -> str:
        kinds[name] = kind
        return name

    value, arrays = flatten("x", [[B], None, (A,), []], declare)
    found: Any = restore(value, arrays)
    assert found[0][0] is B
    assert found[2][0] is A
    assert (found[1], found[3], len(found[0]), len(found[2])) == (None, [], 1, 1)
    assert {name: str(kind) for name, kind in kinds.items()} == {
        "x.0.0": "int64[4]", "x.2.0": "float32[2, 3]",
    }  # fmt: skip
    value, arrays = flatten("y", True, declare)
    assert (str(kinds["y"]), restore(value, arrays)) == ("bool[]", np.True_)


def test_text_and_what_is_no_value_are_refused() -> None:
    for text in (np.array(["a"]), np.array([b"a"]), np.array([{}])):
        with pytest.raises(UnsupportedOperatorError, match=r"input 'x\.1' holds text; required"):
            flatten("x", [A, text], lambda name, kind: name)
    odd: Any = 7
    with pytest.raises(ModelError, match="7 is not a value"):
        restore(odd, {})


def test_arguments_of_the_same_shapes_and_types_have_one_key() -> None:
    assert arguments_key({"a": A, "b": [B]}) == arguments_key({"b": (B + 1,), "a": A + 1})
    keys = {
        arguments_key({"a": each}) for each in (A, A[:1], A.astype(np.float64), [A], None, [None])
    }
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (GraphError("node 'n': wrong"), "the node: wrong"),
        (GraphError("node 'm': wrong"), "the node: node 'm': wrong"),
        (MemoryError("64 GiB"), "the node needs more memory than there is: 64 GiB"),
        (ValueError("odd"), "the node is malformed: ValueError: odd"),
        (KeyError("odd"), "the node is malformed: KeyError: 'odd'"),
    ],
)
def test_faults_of_a_converter_are_errors_of_the_model(error: Exception, said: str) -> None:
    with pytest.raises(ModelError) as found, faults_of("the node", "n"):
        raise error
    assert str(found.value) == said
    with pytest.raises(ModelError, match="own"), faults_of("the node", "n"):
        raise ModelError("own")
