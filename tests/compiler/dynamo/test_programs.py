"""Inputs and results of graphs that the backend of ``torch.compile`` gets, by a small stand-in for
torch, and a model of ONNX in place of the exported program.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.dynamo import backend as module
from dovetail.compiler.errors import ModelError

TEXT = """<ir_version: 9, opset_import: ["": 18]>
m (float[{n}] x, float[{n}] b) => (float[{n}] y, float[{n}] "{written}") {{
  y = Mul (x, b) "{written}" = Sub (x, b)
}}"""


class Tensor:
    """An array with the few methods of torch's that are asked for."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array, np.float32)
        self.shape, self.dtype = self.array.shape, self.array.dtype

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> np.ndarray:
        return self.array

    def copy_(self, other: "Tensor") -> None:
        self.array[...] = other.array


class Parameter(Tensor):
    def __init__(self, given: Any, requires_grad: bool = True) -> None:
        super().__init__(getattr(given, "array", given))
        self.requires_grad = requires_grad


class Module:
    def eval(self) -> "Module":
        return self


TORCH = SimpleNamespace(
    Tensor=Tensor,
    from_numpy=Tensor,
    nn=SimpleNamespace(Module=Module, Parameter=Parameter, ParameterDict=dict),
)
SPECS = [
    ("USER_INPUT_MUTATION", SimpleNamespace(name="x")),
    ("USER_OUTPUT", SimpleNamespace(name="y")),
    ("USER_OUTPUT", SimpleNamespace(value=7)),
    ("USER_OUTPUT", SimpleNamespace()),
]


class World:
    """called: the arguments of the graph, each time it is exported.  targets: of compilations."""

    def __init__(self, patch: pytest.MonkeyPatch, written: str = "x.updated") -> None:
        self.called: list[tuple[Any, ...]] = []
        self.targets: list[str] = []
        self.written = written
        patch.setattr(module, "import_module", lambda name: {"torch": TORCH}[name])
        patch.setattr(module, "exported", self.exported)
        patch.setattr(module, "TorchModel", SimpleNamespace(of=self.model))
        patch.setattr(module, "compile_model", self.compiled)

    def graph(self, *given: Any) -> list[Any]:
        self.called.append(given)
        return list(given)

    def exported(self, own: Any, inputs: tuple[Any, ...]) -> Any:
        assert isinstance(own.forward(*inputs), tuple)
        specs = [SimpleNamespace(kind=SimpleNamespace(name=kind), arg=arg) for kind, arg in SPECS]
        signature = SimpleNamespace(output_specs=specs)
        return SimpleNamespace(graph_signature=signature, size=inputs[0].shape[0])

    def model(self, program: Any) -> Any:
        inputs = [SimpleNamespace(name=name) for name in ("b", "x")]
        state = {"b": np.full(program.size, 3, np.float32)}
        return SimpleNamespace(inputs=inputs, state=lambda: state, size=program.size)

    def compiled(self, model: Any, target: str) -> Any:
        self.targets.append(target)
        text = TEXT.format(n=model.size, written=self.written)
        return compile(onnx.parser.parse_model(text), target)


def test_tensors_are_inputs_and_the_rest_of_a_program_is_constant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    run = module.backend(world.graph, ())
    own, x = Parameter([1, 2]), Tensor([1, 2, 4])
    y, value, nothing = run(own, x, 5)
    np.testing.assert_array_equal(y.array, [3, 6, 12])
    assert (value, nothing) == (7, None)
    np.testing.assert_array_equal(x.array, [-2, -1, 1], "the input that the graph writes to")
    ((first, second, third),) = world.called
    np.testing.assert_array_equal(first.array, own.array)
    assert not first.requires_grad
    assert (second, third) == (x, 5)


def test_a_program_is_made_for_each_shape_number_and_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    run = module.backend(world.graph, (), options={"target": "cpu"})
    own, other = Parameter([1]), Parameter([1])
    for arguments, programs in (
        ((own, Tensor([1, 2]), 5), 1),
        ((own, Tensor([3, 4]), 5), 1),
        ((own, Tensor([3, 4]), 6), 2),
        ((own, Tensor([3]), 5), 3),
        ((other, Tensor([3]), 5), 4),
        ((own, Tensor([1, 2]), 5), 4),
    ):
        run(*arguments)
        assert len(world.called) == programs
    assert world.targets == ["cpu"] * 4


def test_what_is_written_has_to_be_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, written="c.updated")
    with pytest.raises(ModelError, match="writes to 'c', which is not an input of it"):
        module.backend(world.graph, ())(Tensor([1, 2]))
