"""Programs that compute what their graphs say, and mutants of them that do not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.errors import TranslationError
from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.targets.table import find_target
from dovetail.compiler.targets.vta.check import CheckError, check
from dovetail.compiler.translation.validate import validate
from dovetail.isa.instructions import Gemm, Instruction, Load, Row, Store, Vector
from dovetail.isa.program import program_to_bytes
from dovetail.runtime.accelerator.part import AcceleratorPart, accelerator_part
from dovetail.runtime.session import Session
from tests.end_to_end.models import Network, random_network
from tests.end_to_end.test_attention import F32, NETWORKS, WIDTH, Rows

TARGET = "vta:tiny"


def varied(seed: int) -> onnx.ModelProto:
    """Every kind of layer: windows, sums and products of two, tables, pools, moved pixels."""
    net = Network(np.random.default_rng(seed))
    x = net.conv(net.input(3, 8, 8), 12, pads=(1, 1, 1, 1), activation="Relu")
    y = net.conv(x, 12, (3, 5), pads=(1, 2, 1, 2), depthwise=True)
    y = net.unary(y, "HardSwish")
    x = net.add(net.conv(y, 12, (1, 1)), x, relu=True)
    gate = net.unary(net.conv(net.global_average(x), 12, (1, 1)), "Sigmoid")
    x = net.multiply(x, gate)
    x = net.concat(net.part(x, 2, 6), net.part(x, 0, 5))
    x = net.conv(net.resize(x, 2, 2), 8, (5, 5), strides=(2, 2), pads=(2, 2, 2, 2))
    return net.model(net.dense(net.average_pool(net.max_pool(x, 2, 2), 2), 7))


def compiled(model: onnx.ModelProto) -> tuple[Graph, AcceleratorPart]:
    return integer_graph(open_model(model)), accelerator_part(compile(model, TARGET))


def test_all_kinds_of_layers_are_the_functions_of_their_graph() -> None:
    graph, part = compiled(varied(0))
    found = validate(graph, part)
    assert (found.instructions, found.elements) == (part.instruction_count, 7)


@pytest.mark.parametrize("seed", range(2, 5))
def test_random_networks_are_the_functions_of_their_graphs(seed: int) -> None:
    validate(*compiled(random_network(seed)))


def products(name: str, rows: int) -> onnx.ModelProto:
    net = Rows(rows)
    x = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.quantize(NETWORKS[name](net, x), F32(0.2), np.int8(-9))
    return net.build({"x": ("int8", (1, rows, WIDTH))}, y)


def test_a_difference_is_a_sum_with_a_turned_byte() -> None:
    """As the graph has it: the program subtracts, and looks nothing up."""
    net = Rows(4)
    x = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.node("Sub", [net.linear(x, WIDTH, WIDTH), net.linear(x, WIDTH, WIDTH)])
    y = net.quantize(net.node("Abs", [net.again(y, 0.1)]), F32(0.1), np.int8(0))
    graph, part = compiled(net.build({"x": ("int8", (1, 4, WIDTH))}, y))
    validate(graph, part)
    (place,) = (n for n, i in enumerate(part.program) if isinstance(i, Vector) and i.m1 < 0)
    other = replace(part.program[place], m1=-part.program[place].m1)
    with pytest.raises(TranslationError, match="another function"):
        validate(graph, part, [*part.program[:place], other, *part.program[place + 1 :]])


@pytest.mark.parametrize(("name", "rows"), [("scores", 16), ("gated_heads", 9)])
def test_products_of_two_activations_are_those_of_their_graph(name: str, rows: int) -> None:
    validate(*compiled(products(name, rows)))


def test_softmax_is_that_of_its_graph_and_other_parameters_of_rows_are_told() -> None:
    model = products("attention", 9)
    graph, part = compiled(model)
    validate(graph, part)
    target = find_target(part.configuration)
    imported = target.load(open_model(model), {})
    assert imported is not None
    (piece,) = target.plan(imported).pieces
    validate(piece.graph, part)
    for row, field in ((Row.LESS, "m1"), (Row.OVER, "par_address"), (Row.OVER, "m1")):
        program = list(part.program)
        place = next(n for n, i in enumerate(program) if isinstance(i, Vector) and i.row is row)
        other = getattr(program[place], field) + 1
        program[place] = replace(program[place], **{field: other})
        with pytest.raises(TranslationError, match=r"another function|no rule"):
            validate(graph, part, program)


def divided() -> onnx.ModelProto:
    """Rows over their deviation, whose square is quantised, and so is its sum with epsilon."""
    net = Rows(6)
    y = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.node("Sub", [y, net.node("ReduceMean", [y], axes=[-1])])
    mean = net.node("ReduceMean", [net.node("Mul", [y, y])], axes=[-1])
    total = net.node("Add", [net.again(mean, 0.02), net.constant(F32(1e-5))])
    y = net.node("Div", [y, net.node("Sqrt", [net.again(total, 0.02)])])
    return net.build({"x": ("int8", (1, 6, WIDTH))}, net.quantize(y, F32(0.02), np.int8(1)))


def test_a_normalisation_with_a_byte_inside_is_that_of_its_graph() -> None:
    validate(*compiled(divided()))


UNEVEN = 18
"""Channels that fill no blocks."""


def normalised(rms: bool) -> onnx.ModelProto:
    """Rows of a layer, normalised, and a layer of them."""
    net, channels = Rows(6), WIDTH if rms else UNEVEN
    y = net.linear(net.dequantize("x", F32(0.02), np.int8(3)), WIDTH, channels)
    scale, bias = (net.constant(net.rng.normal(0, 1, channels).astype(F32)) for _ in range(2))
    if rms:
        power = net.node("Pow", [y, net.constant(F32(2))])
        mean = net.node("ReduceMean", [power], axes=[-1])
        root = net.node("Sqrt", [net.node("Add", [mean, net.constant(F32(1e-5))])])
        y = net.node("Mul", [net.node("Div", [y, root]), scale])
    else:
        y = net.node("LayerNormalization", [y, scale, bias])
    y = net.quantize(net.linear(net.again(y, 0.03), channels, WIDTH), F32(0.2), np.int8(-9))
    return net.build({"x": ("int8", (1, 6, WIDTH))}, y, opset=17)


@pytest.mark.parametrize("rms", [False, True])
def test_normalisations_are_those_of_their_graph(rms: bool) -> None:
    graph, part = compiled(normalised(rms))
    validate(graph, part)
    program = list(part.program)
    rows = [n for n, i in enumerate(program) if isinstance(i, Vector) and i.row is not Row.NONE]
    wide = [n for n, i in enumerate(program) if isinstance(i, Vector) and i.m0 in (WIDTH, UNEVEN)]
    assert len(rows) == len(wide) or rms
    cases = [(place, field) for place in rows[:2] for field in ("m1", "source_address", "shift")]
    cases += [(place, field) for place in wide[:2] for field in ("m0", "par_address")]
    for place, field in cases:
        instruction = program[place]
        if field == "shift" and instruction.row is not Row.ROOT:
            continue
        other = replace(instruction, **{field: getattr(instruction, field) + 1})
        with pytest.raises(TranslationError, match="another function"):
            validate(graph, part, [*program[:place], other, *program[place + 1 :]])


def changed(instruction: Instruction, rng: np.random.Generator) -> Instruction:
    """With one field a little different."""
    fields = {
        Load: ("dram_address", "sram_address", "pad_value"),
        Gemm: ("act_address", "wgt_address", "acc_address", "weight_offset", "accumulate"),
        Vector: ("source_address", "par_address", "zero_point", "low", "m0", "tap_address"),
        Store: ("dram_address", "sram_address"),
    }[type(instruction)]
    field = str(rng.choice(fields))
    value = getattr(instruction, field)
    if field == "accumulate":
        return replace(instruction, **{field: not value})
    return replace(instruction, **{field: value + (4 if field == "dram_address" else 1)})


def test_what_no_race_tells_of_is_told_here() -> None:
    """A program that passes leaves what the sound one leaves; most others do not pass."""
    net, rng = Network(np.random.default_rng(3)), np.random.default_rng(0)
    y = net.conv(net.input(3, 6, 6), 8, pads=(1, 1, 1, 1), activation="Relu")
    y = net.add(net.conv(y, 8, pads=(1, 1, 1, 1), depthwise=True), y)
    model = net.model(net.conv(net.unary(y, "Sigmoid"), 6, (1, 1)))
    module = compile(model, TARGET)
    graph, part = integer_graph(open_model(model)), accelerator_part(module)
    program = list(part.program)
    x = {"x": rng.integers(-128, 128, (1, 3, 6, 6), np.int8)}
    (sound,) = Session(module).run(x).outputs.values()
    told = 0
    for _ in range(60):
        place = int(rng.integers(len(program)))
        mutant = [*program]
        mutant[place] = changed(program[place], rng)
        try:
            check(mutant, part.configuration)
        except CheckError:
            continue
        try:
            validate(graph, part, mutant)
        except TranslationError:
            told += 1
            continue
        code = program_to_bytes(mutant)
        first = part.program_address
        dram = part.dram[:first] + code + part.dram[first + len(code) :]
        other = replace(module, parts=(replace(part, dram=dram),))
        (found,) = Session(other).run(x).outputs.values()
        np.testing.assert_array_equal(found, sound)
    assert told >= 15


def test_a_weight_that_differs_is_told() -> None:
    model = random_network(3)
    graph, part = compiled(model)
    name, weights = next(
        (name, array) for name, array in graph.constants.items() if array.ndim == 4
    )
    other = weights.copy()
    other.flat[-1] ^= 1
    wrong = Graph(
        graph.inputs, graph.outputs, graph.nodes, {**graph.constants, name: other}, graph.types
    )
    with pytest.raises(TranslationError, match=r"another function of the inputs .* the first at"):
        validate(wrong, part)


def test_the_command_holds_a_module_to_its_model(tmp_path: Path) -> None:
    model, other, module = (tmp_path / name for name in ("a.onnx", "b.onnx", "a.dvt"))
    onnx.save(random_network(2), model)
    onnx.save(random_network(3), other)
    compile(model, TARGET).save(module)
    done = CliRunner().invoke(main, ["validate", str(module), str(model), "--json"])
    assert done.exit_code == 0, done.output
    assert '"instructions"' in done.stdout
    assert CliRunner().invoke(main, ["validate", str(module), str(other)]).exit_code == 1
    compile(model, "cpu").save(module)
    done = CliRunner().invoke(main, ["validate", str(module), str(model)])
    assert done.exit_code == 1
    assert "required one for vta:CONFIG" in done.output.replace("\n", " ")
