"""Proof that the program of an accelerator's part computes its graph, for every input."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.runtime.accelerator.host_steps import (
    Halves,
    HostStep,
    Reshape,
    Select,
    Softmax,
    Transpose,
)
from dovetail.runtime.accelerator.part import AcceleratorPart, PartInput, PartOutput

from ..errors import TranslationError
from ..graph.ir import Graph
from ..graph.operators.integer.scaled_sum import ScalesOfWords
from .layers import evaluate, in_halves, softmax, unary
from .machine import execute
from .state import State
from .symbol_sums import chosen
from .symbols import Array, Symbols, constants, fresh, function

__all__ = ["Validated", "validate"]


@frozen
class Validated:
    """Result of a validation.  instructions, elements: of the program, of its outputs."""

    instructions: int
    elements: int


def validate(
    graph: Graph, part: AcceleratorPart, program: Sequence[Instruction] | None = None, seed: int = 0
) -> Validated:
    """Show that every element of every output is the function of the inputs that ``graph`` says.

    graph: of integer layers.  part: its compiled program.  program: another one in its place.
    Equal functions are found equal.  Functions that differ are found equal with a chance of about
    degree / 2**31 for each output; another ``seed`` decides then.  Not looked at: sums that
    leave int32, the order in which units run, and that words of the host have biases of 0.
    Raises TranslationError for the first output that differs, and for what there is no rule for.
    """
    inputs = {
        name: fresh(
            function(seed, number, np.arange(np.prod(graph.types[name].shape))).reshape(
                graph.types[name].shape
            )
        )
        for number, name in enumerate(graph.inputs)
    }
    for node in graph.nodes:
        if isinstance(node.operator, ScalesOfWords) and node.inputs[0] in inputs:
            inputs[node.inputs[0]] = _without_biases(inputs[node.inputs[0]])
    expected = evaluate(graph, inputs)
    dram = np.frombuffer(part.dram, np.uint8).copy()
    state = State(part.configuration, dram)
    for source in part.sources:
        _place(state, source, inputs[source.tensor.name])
    instructions = part.program if program is None else program
    for instruction in instructions:
        execute(state, instruction)
    elements = 0
    for result in part.results:
        found, wanted = _taken(state, result), expected[result.tensor.name]
        differs = found.values.reshape(-1) != wanted.values.reshape(-1)
        if differs.any():
            first = np.unravel_index(int(np.argmax(differs)), wanted.values.shape)
            raise TranslationError(
                f"output {result.tensor.name!r}: {int(differs.sum())} of {differs.size} elements "
                f"are another function of the inputs than the graph says, the first at "
                f"{[int(place) for place in first]}{_inexact(part)}"
            )
        elements += differs.size
    return Validated(len(instructions), elements)


def _inexact(part: AcceleratorPart) -> str:
    """Layers known to differ for some pairs of bytes, as a subordinate clause."""
    layers = [f"{x.name!r} (pairs: {x.inexact_pairs})" for x in part.layers if x.inexact_pairs]
    if not layers:
        return ""
    return f"; of 65,536 pairs of bytes, some are known to give another sum in {', '.join(layers)}"


def _without_biases(words: Symbols) -> Symbols:
    """Bytes of words for PAR, the biases in which are 0: so the host makes them."""
    half = np.broadcast_to((np.arange(words.values.shape[2]) % 8 < 4)[:, None], words.values.shape)
    return chosen(half, constants(np.zeros(half.shape, np.int8)), words)


def _step(x: Symbols, step: HostStep) -> Symbols:
    if isinstance(step, Reshape | Select | Transpose):
        return x.moved(step.run)
    if isinstance(step, Halves):
        return in_halves(step, x)
    return softmax(step, x) if isinstance(step, Softmax) else unary(step, x)


def _place(state: State, source: PartInput, x: Symbols) -> None:
    """Put an input where it is in DRAM, found by packing the digits of its elements' numbers."""
    x = reduce(_step, source.steps, x)
    numbers = np.arange(1, x.values.size + 1).reshape(x.values.shape)
    layout, fill = replace(source.layout, fill=0), source.layout.fill
    places = np.full(layout.size, -1)
    for shift in (0, 8, 16, 24):
        digits = (numbers >> shift & 0xFF).astype(np.uint8).view(np.int8)
        places += layout.pack(digits).reshape(-1).view(np.uint8).astype(np.int64) << shift
    border = constants(np.full(1, fill, np.int8))

    def spread(each: Array, beyond: Array) -> Array:
        return np.append(each.reshape(-1), beyond)[places]

    state.put(
        source.address + np.arange(len(places)),
        Symbols(
            spread(x.values, border.values),
            spread(x.roots, border.roots),
            spread(x.tables, border.tables),
        ),
    )


def _taken(state: State, result: PartOutput) -> Symbols:
    """An output, as the host takes it from DRAM."""
    layout, shape = result.layout, result.shape

    def unpacked(x: Array) -> Array:
        blocks = np.concatenate([x[at : at + size] for at, size in result.reads])
        blocks = blocks.reshape(layout.shape)
        _, height, width, _ = layout.shape
        image = blocks.transpose(1, 2, 0, 3).reshape(height, width, -1)
        return image[:, :, : shape[-1]].reshape(shape)

    return reduce(_step, result.steps, state.dram.moved(unpacked))
