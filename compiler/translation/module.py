"""Validation of a module's programs against the model that it was compiled from."""

from collections.abc import Iterator

from dovetail.isa.frozen import frozen
from dovetail.runtime.accelerator.part import AcceleratorPart
from dovetail.runtime.module import Module

from ..errors import TranslationError
from ..front.source import Source
from ..graph.ir import Graph
from ..graph.passes.integer_layers.recognition import integer_layers
from ..graph.replicate import replicate
from ..targets.table import find_target
from .validate import Validated, validate

__all__ = ["ValidatedPart", "validate_module"]


@frozen
class ValidatedPart:
    """A part of a module, by its number; found: None for one that no accelerator runs."""

    part: int
    target: str
    found: Validated | None


def validate_module(module: Module, model: Source, seed: int = 0) -> Iterator[ValidatedPart]:
    """Validate every program in ``module``, part by part.

    A module of one part is held to the model's integer layers as they were recognised, any other
    to the layers that each part was given.
    Raises TranslationError for a program that differs, or a module of another model.
    """
    own = [part for part in module.parts if isinstance(part, AcceleratorPart)]
    if not own:
        raise TranslationError(
            f"the module was compiled for {module.target!r}; required one for vta:CONFIG"
        )
    target = find_target(own[0].configuration)
    imported = target.load(model, {})
    assert imported is not None
    pieces = target.plan(imported).pieces
    if len(pieces) > len(module.parts):
        raise TranslationError(
            f"the module has {len(module.parts)} parts, the model makes {len(pieces)}; required "
            "the model that the module was compiled from"
        )
    for number, part in enumerate(module.parts):
        if not isinstance(part, AcceleratorPart):
            yield ValidatedPart(number, part.target, None)
            continue
        graph = pieces[number].graph
        if len(module.parts) == 1:
            graph = integer_layers(imported.graph, imported.kinds).graph
        graph = replicate(graph, _images(graph, part))
        yield ValidatedPart(number, part.target, validate(graph, part, seed=seed))


def _images(graph: Graph, part: AcceleratorPart) -> int:
    """Number of images that a run of ``part`` computes."""
    tensor = part.inputs[0]
    rows = graph.types[tensor.name].shape[0] if tensor.name in graph.inputs else 0
    return tensor.shape[0] // rows if rows and tensor.shape else 1
