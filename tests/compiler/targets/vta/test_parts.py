"""Parts with any number of inputs and outputs, whole: their bytes and their cycles."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.front.source import Imported
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.conversions import Dequantize, Quantize
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Softmax
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import Slice, Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.compiler.targets.vta.target import Vta
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.accelerator.part import AcceleratorPart
from dovetail.runtime.module import Module
from dovetail.runtime.session import run
from dovetail.vta_sim.timing import time_program
from tests.kept_costs import check_costs

from .integer_graphs import inputs_of, random_integer_graph
from .programs import TINY

CONFIGS = {
    "tiny": TINY,
    "cramped": replace(TINY, name="cramped", act_depth=256, act_banks=4),
    "zynq7020": find_config("zynq7020"),
}
"""``cramped`` has so little ACT that most activations stay in DRAM."""

POOL = MaxPool2d((2, 2), (1, 1), (0, 0, 0, 0))


def compiled(graph: Graph, config: str) -> AcceleratorPart:
    options = CompileOptions(verify=True)
    return compile_accelerated(graph, CONFIGS[config], options, Trace(options), time_program)


def assert_exact(graph: Graph, part: AcceleratorPart, *devices: str) -> None:
    """Every device gives the interpreter's bytes in the expected cycles."""
    check_costs([part])
    inputs = inputs_of(graph, 1)
    expected = interpret(graph, inputs)
    given = {each.name: inputs[each.name] for each in part.inputs}
    for device in devices:
        found = run(Module.of_part(part), given, device)
        assert found.cycles == part.expected_cycles
        assert list(found.outputs) == list(graph.outputs)
        for name, array in found.outputs.items():
            np.testing.assert_array_equal(array, expected[name], name)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_give_the_interpreters_bytes(seed: int, config: str) -> None:
    graph = random_integer_graph(seed, CONFIGS[config].block)
    assert_exact(graph, compiled(graph, config), "sim")


def test_hardware_runs_a_graph_of_several_inputs_and_outputs() -> None:
    graph = random_integer_graph(17, TINY.block, layers=5)
    part = compiled(graph, "tiny")
    assert (len(part.inputs), len(part.sources), len(part.results)) == (2, 3, 4)
    assert_exact(graph, part, "sim", "rtl")


def drawn(*shape: int) -> tuple[GraphBuilder, str]:
    """A graph of one float input, and this quantised."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, "float32"))
    return builder, builder.node(Quantize(0.5, 3), (x,), "q", "q")


def test_one_input_may_come_in_two_forms() -> None:
    builder, q = drawn(1, 3, 3, 3)
    finer = builder.node(Quantize(0.25, -1), ("x",), "finer", "finer")
    sums = builder.node(Add(0.75, 0.5, 3, -4, 1, -128, 127), (q, finer), "y", "y")
    graph = builder.build((sums,))
    part = compiled(graph, "tiny")
    assert [each.name for each in part.inputs] == ["x"]
    assert len(part.sources) == 2
    assert_exact(graph, part, "sim")


def test_one_tensor_may_go_out_in_several_forms() -> None:
    builder, q = drawn(1, 3, 3, 6)
    y = builder.node(POOL, (q,), "y", "y")
    real = builder.node(Dequantize(0.5, 1), (y,), "real", "real")
    turned = builder.node(Transpose((0, 3, 1, 2)), (real,), "turned", "turned")
    z = builder.node(POOL, (y,), "z", "z")
    graph = builder.build((turned, z, y, real))
    part = compiled(graph, "tiny")
    assert len({each.address for each in part.results}) == 2
    assert_exact(graph, part, "sim")


def test_channels_of_an_input_may_be_an_output() -> None:
    builder, q = drawn(1, 2, 2, 7)
    part = builder.node(Slice((0, 0, 0, 3), (1, 1, 1, 1), (1, 2, 2, 3)), (q,), "part", "part")
    graph = builder.build((builder.node(POOL, (q,), "y", "y"), part))
    assert_exact(graph, compiled(graph, "tiny"), "sim")


def test_a_sum_of_a_tensor_with_itself_runs_strip_by_strip() -> None:
    builder, q = drawn(1, 12, 9, 8)
    y = builder.node(POOL, (q,), "y", "y")
    twice = builder.node(Add(0.75, 0.5, 3, -4, 1, -128, 127), (y, y), "twice", "twice")
    graph = builder.build((builder.node(POOL, (twice,), "z", "z"),))
    assert_exact(graph, compiled(graph, "cramped"), "sim")


def test_a_result_is_stored_when_it_is_made_and_an_input_loaded_when_it_is_read() -> None:
    builder, q = drawn(1, 6, 6, 4)
    late = builder.input("late", TensorType((1, 2, 2, 4), "int8"))
    x, early = q, ""
    for number in range(4):
        x = builder.node(POOL, (x,), f"y{number}", f"n{number}")
        early = early or x
    y = builder.node(Add(0.75, 0.5, 3, -4, 1, -128, 127), (x, late), "y", "sum")
    graph = builder.build((early, y))
    part = compiled(graph, "tiny")
    assert_exact(graph, part, "sim")
    program = part.program
    stores = [n for n, each in enumerate(program) if each.unit is Unit.STORE]
    assert [part.layer_of[n] for n in stores] == [0, 4]
    assert stores[0] < max(n for n, each in enumerate(program) if each.unit is Unit.VECTOR)
    loads = [part.layer_of[n] for n, each in enumerate(program) if each.unit is Unit.LOAD]
    assert max(loads) == 4


def test_an_output_of_the_host_alone_is_refused() -> None:
    builder, q = drawn(1, 3, 3, 4)
    real = builder.node(Dequantize(0.5, 1), (q,), "real", "real")
    graph = builder.build((builder.node(POOL, (q,), "y", "y"), real))
    reason = "output 'real' is made of 'x' without the accelerator; leave it to another part"
    with pytest.raises(UnsupportedOperatorError, match=reason):
        compiled(graph, "tiny")


def test_a_function_that_changes_nothing_is_left_to_the_cpu() -> None:
    b, q = drawn(1, 8)
    ramp = np.arange(-128, 128)
    same, other = (b.constant("t", np.roll(ramp, n).astype(np.int8)) for n in (0, 1))
    y = b.node(Lookup(), (q, same), "y", "same")
    graph = b.build((y, b.node(Lookup(), (y, other), "z", "other"), q))
    # Without it the host makes an output that no layer makes, which a part cannot have.
    pieces = Vta(TINY).plan(Imported(graph, {})).pieces
    assert [(each.own, each.graph.outputs) for each in pieces] == [(False, (y, q)), (True, ("z",))]


def test_a_host_operator_between_layers_is_refused() -> None:
    builder, q = drawn(1, 3, 3, 4)
    y = builder.node(POOL, (q,), "y", "y")
    soft = builder.node(Softmax(0.1, 0, 1 / 256, -128), (y,), "soft", "soft")
    graph = builder.build((soft, builder.node(POOL, (soft,), "z", "z")))
    with pytest.raises(UnsupportedOperatorError, match="node 'soft': Softmax between layers"):
        compiled(graph, "tiny")


def test_a_graph_without_layers_is_refused() -> None:
    builder, q = drawn(1, 3, 3, 4)
    graph = builder.build((builder.node(Transpose((0, 2, 1, 3)), (q,), "y", "y"),))
    with pytest.raises(UnsupportedOperatorError, match="no node of the model runs on the acc"):
        compiled(graph, "tiny")


def test_parameters_that_are_there_do_not_come_again() -> None:
    """Sums of one form after each other: their bias and scale are one word of PAR."""
    builder, q = drawn(1, 4, 4, 4)
    for number in range(3):
        total = Add(0.5, 0.5, 0, 0, number % 2, -128, 127)
        q = builder.node(total, (q, "q"), f"sum{number}", f"sum{number}")
    graph = builder.build((q,))
    part = compiled(graph, "tiny")
    loads = [each for each in part.program if isinstance(each, Load)]
    assert sum(each.count_x for each in loads if each.memory is Memory.PAR) == 2
    assert_exact(graph, part, "sim")
