"""``torch.compile(model, backend="dovetail")``: graphs of torch on this CPU, for inference.

torch finds it by the entry point ``torch_dynamo_backends``; nothing here imports torch before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from dovetail.runtime.session import Session

from ..driver import compile_model
from ..errors import ModelError
from ..front.torch.live import exported
from ..front.torch.source import TorchModel
from ..targets.table import HOST

__all__ = ["backend"]


def backend(
    graph: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """A function that runs ``graph``, a ``torch.fx.GraphModule``.

    It is compiled when it is first called with inputs of other shapes or types; parameters are
    constants of it, with the values that they have then.
    options: ``target``, by default ``cpu``.
    """
    return _Compiled(graph, dict(options or {}).get("target", HOST))


@dataclass
class _Compiled:
    graph: Any
    target: str
    known: dict[Any, "_Program"] = field(default_factory=dict)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        torch: Any = import_module("torch")
        fixed = [isinstance(each, torch.nn.Parameter) for each in inputs]
        key = tuple(_key(each, frozen) for each, frozen in zip(inputs, fixed, strict=True))
        if key not in self.known:
            self.known[key] = _Program(self.graph, inputs, fixed, self.target)
        return self.known[key].run(inputs)


def _key(given: Any, frozen: bool) -> Any:
    """Key of a program: parameters themselves, shapes and types of tensors, numbers."""
    if frozen:
        return id(given)
    return (tuple(given.shape), given.dtype) if hasattr(given, "shape") else given


class _Program:
    """A graph for inputs of certain shapes."""

    def __init__(
        self, graph: Any, inputs: Sequence[Any], fixed: Sequence[bool], target: str
    ) -> None:
        torch: Any = import_module("torch")
        self.places = [
            place
            for place, each in enumerate(inputs)
            if isinstance(each, torch.Tensor) and not fixed[place]
        ]
        module = _frozen(graph, inputs, self.places)
        program = exported(module, tuple(inputs[place] for place in self.places))
        model = TorchModel.of(program)
        self.state = model.state()
        self.session = Session(compile_model(model, target))
        own = [each.name for each in model.inputs if each.name not in self.state]
        self.inputs = dict(zip(own, self.places, strict=True))
        self.results = [
            None if hasattr(each.arg, "name") else getattr(each.arg, "value", None)
            for each in program.graph_signature.output_specs
            if each.kind.name == "USER_OUTPUT"
        ]
        self.tensors = [
            hasattr(each.arg, "name") and not hasattr(each.arg, "value")
            for each in program.graph_signature.output_specs
            if each.kind.name == "USER_OUTPUT"
        ]

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The graph's results; inputs that it writes to get their new values."""
        torch: Any = import_module("torch")
        given = {name: inputs[place].detach().cpu().numpy() for name, place in self.inputs.items()}
        found = self.session.run({**given, **self.state}).outputs
        names = iter(found)
        results = [
            torch.from_numpy(found[next(names)].copy()) if tensor else value
            for value, tensor in zip(self.results, self.tensors, strict=True)
        ]
        for name in names:
            own = name.removesuffix(".updated")
            if own not in self.inputs:
                raise ModelError(f"the graph writes to {own!r}, which is not an input of it")
            inputs[self.inputs[own]].copy_(torch.from_numpy(found[name]))
        return tuple(results)


def _frozen(graph: Any, inputs: Sequence[Any], places: Sequence[int]) -> Any:
    """A module that calls the graph with the inputs at ``places``; the others are constants."""
    torch: Any = import_module("torch")

    class Frozen(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.graph = graph
            self.rest = torch.nn.ParameterDict()
            self.given = [None if place in places else each for place, each in enumerate(inputs)]
            for place, each in enumerate(self.given):
                if isinstance(each, torch.Tensor):
                    self.rest[str(place)] = torch.nn.Parameter(each.detach(), requires_grad=False)

        def forward(self, *given: Any) -> Any:
            arguments = [self.rest.get(str(n), x)
                         for n, x in enumerate(self.given)]  # fmt: skip
            for place, each in zip(places, given, strict=True):
                arguments[place] = each
            return tuple(self.graph(*arguments))

    return Frozen().eval()
