"""Sums with factors that the host gives for each run: programs that compute them, and mutants."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dovetail.compiler.errors import TranslationError
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.targets.vta.check import CheckError, check
from dovetail.compiler.translation.validate import validate
from dovetail.isa.instructions import Instruction, Load, Rounding, Vector
from dovetail.isa.memories import Memory
from dovetail.runtime.accelerator.part import AcceleratorPart

from ..targets.vta.test_parts import compiled
from ..targets.vta.test_rotary_floats import scaled


def sums(channels: int, repeats: int, lanes: int, config: str) -> tuple[Graph, AcceleratorPart]:
    graph = scaled(channels, repeats, lanes)
    return graph, compiled(graph, config)


@pytest.mark.parametrize(
    "case", [(4, 1, 4, "tiny"), (12, 1, 4, "tiny"), (12, 3, 4, "tiny"), (32, 2, 16, "zynq7020")]
)
def test_sums_are_the_functions_of_their_graph(case: tuple[int, int, int, str]) -> None:
    graph, part = sums(*case)
    assert validate(graph, part).elements == case[0]


def changed(part: AcceleratorPart) -> Iterator[tuple[Instruction, ...]]:
    """The program with one fault: factors of other terms, of other lanes, as another's biases, in
    another place; sums with another zero point.
    """
    word = part.configuration.word_bytes(Memory.PAR)
    for index, each in enumerate(part.program):
        faults: list[Instruction] = []
        if isinstance(each, Load) and each.memory is Memory.PAR and each.count_y > 1:
            moved = (word, -word, word // 2, part.configuration.bus_bytes)
            faults += [replace(each, dram_address=each.dram_address + by) for by in moved]
            faults += [replace(each, sram_address=each.sram_address + 1)]
            faults += [replace(each, count_y=each.count_y - 1)]
        if isinstance(each, Vector):
            faults += [replace(each, par_address=each.par_address + 1)]
            faults += [replace(each, zero_point=each.zero_point ^ 1)]
            faults += [replace(each, rounding=Rounding.FLOAT)] * (each.rounding is Rounding.WIDE)
        for fault in faults:
            yield (*part.program[:index], fault, *part.program[index + 1 :])


def test_no_fault_of_factors_is_missed() -> None:
    graph, part = sums(12, 1, 4, "tiny")
    found = 0
    for program in changed(part):
        try:
            check(program, part.configuration)
        except CheckError:
            continue  # It is no legal program.
        found += 1
        with pytest.raises(TranslationError, match=r"'y': .* another function"):
            validate(graph, part, program)
    assert found >= 8


def test_another_graph_is_told() -> None:
    _, part = sums(12, 3, 4, "tiny")
    with pytest.raises(TranslationError, match="another function of the inputs"):
        validate(_with_zero_point(scaled(12, 3)), part)


def _with_zero_point(graph: Graph) -> Graph:
    *before, last = graph.nodes
    operator = replace(last.operator, zero_point=-6)  # type: ignore[type-var]
    return replace(graph, nodes=(*before, replace(last, operator=operator)))
