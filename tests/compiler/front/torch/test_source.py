"""Facts of a torch file about its program before anything is compiled."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.source import InputSignature
from dovetail.compiler.front.torch.source import TorchModel

from .mutate import packed, unpacked

FOLDER = Path(__file__).parent / "models"


@pytest.fixture(scope="module")
def counter() -> TorchModel:
    """Two layers, 6 to 8 to 4, with an open batch of 1 to 64, and a buffer that counts."""
    return TorchModel.of(FOLDER / "counter.pt2")


def test_signatures_are_those_of_the_program(counter: TorchModel) -> None:
    assert counter.inputs == (
        InputSignature("x", (None, 6), "float32"),
        InputSignature("count", (1,), "float32"),
    )
    assert [each.shape for each in counter.outputs] == [(None, 4), (1,)]
    assert counter.parameters == (6 * 8 + 8) + (8 * 4 + 4) + 4 + 1
    assert counter.open_sizes() == counter.inputs[:1]
    assert {"aten.linear", "aten.relu"} < set(counter.operators)
    assert counter.state()["count"].tolist() == [0]
    quantised = TorchModel.of(FOLDER / "quantised.pt2")
    assert (counter.quantizes, quantised.quantizes) == (False, True)


def test_a_batch_is_known_from_inputs_or_given(counter: TorchModel) -> None:
    (name,) = counter.symbols()
    assert counter.dimensions({"x": np.zeros((5, 6), np.float32)}) == {name: 5}
    assert counter.dimensions({"count": np.zeros(1, np.float32)}) == {}
    bound = counter.bind({name: 64})
    assert [each.shape for each in bound.outputs] == [(64, 4), (1,)]
    assert bound.open_sizes() == ()
    graph = counter.to_graph(batch=3).graph
    assert [graph.types[each].shape for each in graph.inputs] == [(3, 6), (1,)]
    # What is bound already stays.
    graph = bound.to_graph(batch=3).graph
    assert graph.types["x"].shape == (64, 6)
    with pytest.raises(ModelError, match=r"is 65; the model takes 1 to 64"):
        counter.bind({name: 65})
    with pytest.raises(ModelError, match=r"is 0; the model takes 1 to 64"):
        counter.bind({name: 0})
    with pytest.raises(ModelError, match=rf"no input has a dimension 'rows'.*'{name}'"):
        counter.bind({"rows": 1})
    with pytest.raises(ModelError, match=rf"shape \[\?, 6\]; bind .*names: {name}\)"):
        counter.to_graph()


def test_a_size_that_is_more_than_a_symbol_says_nothing_of_it(counter: TorchModel) -> None:
    (name,) = counter.symbols()
    members = unpacked((FOLDER / "counter.pt2").read_bytes())
    symbol = f"Symbol('{name}', positive=True, integer=True)"
    for size in (f"Mul(Integer(2), {symbol})", f"Add({symbol}, Symbol('s1', integer=True))"):
        changed = {
            path: content.replace(symbol.encode(), size.encode())
            for path, content in members.items()
        }
        model = TorchModel.of(packed(changed))
        assert model.symbols()[0] == name
        assert model.dimensions({"x": np.zeros((6, 6), np.float32)}) == {}
        with pytest.raises(ModelError, match="bind its open sizes"):
            model.to_graph(batch=6)
