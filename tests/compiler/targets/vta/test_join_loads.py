"""LOADs of constants that may be one, and a program that LOAD sets the pace of."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.targets.vta import draft, last_changes
from dovetail.compiler.targets.vta.check import check
from dovetail.compiler.targets.vta.join_loads import join
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Instruction, Load
from dovetail.isa.memories import Memory
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part

TINY = find_config("tiny")
FIRST = Load(memory=Memory.WGT, sram_address=0, dram_address=0, count_x=1)
NOTHING: frozenset[int] = frozenset()


def joined(*loads: Load, needs: dict[int, set[int]] | None = None) -> list[list[int]]:
    before = [frozenset((needs or {}).get(place, NOTHING)) for place in range(len(loads))]
    return join(loads, before, TINY, lambda load: load.dram_address < 1 << 12)


def behind(load: Load, **changed: int) -> Load:
    return replace(load, sram_address=load.sram_address + load.count_x, **changed)


def test_words_behind_each_other_come_by_one_load() -> None:
    second = behind(FIRST, dram_address=1024)
    third = behind(second, count_x=2)
    assert joined(FIRST, second, third) == [[0, 1, 2]]
    other = replace(FIRST, memory=Memory.PAR)
    assert joined(FIRST, other, second, behind(other)) == [[1, 3], [0, 2]]


def test_words_that_are_given_come_by_one_load_where_they_lie_behind_each_other() -> None:
    first = replace(FIRST, dram_address=1 << 12)
    second = behind(first, dram_address=(1 << 12) + TINY.word_bytes(Memory.WGT))
    assert joined(first, second) == [[0, 1]]
    assert joined(first, second, behind(second, dram_address=0)) == [[0, 1]]


@pytest.mark.parametrize(
    "second",
    [
        replace(FIRST, sram_address=2),
        behind(FIRST, count_y=2),
        behind(FIRST, pad_x_after=1),
        behind(FIRST, dram_address=1 << 12),
        behind(FIRST, count_x=TINY.wgt_depth),
        replace(behind(FIRST), nibbles=True),
    ],
)
def test_others_come_by_themselves(second: Load) -> None:
    assert joined(FIRST, second) == []


def test_a_load_that_waits_for_what_is_between_stays() -> None:
    between = Load(memory=Memory.ACT, sram_address=0)
    second = behind(FIRST)
    assert joined(FIRST, between, second, needs={2: {0}}) == [[0, 2]]
    assert joined(FIRST, between, second, needs={2: {1}}) == []


def layers(count: int, width: int = 8) -> onnx.ModelProto:
    """Dense layers of one row: as many weights as products."""
    steps = "".join(f"y{n + 1} = MatMul(y{n}, w{n}) " for n in range(count))
    text = f"(float[1, {width}] y0) => (float[1, {width}] y{count}) {{ {steps} }}"
    rng = np.random.default_rng(3)
    graph = parser.parse_graph(f"dense {text}")
    for n in range(count):
        weights = rng.standard_normal((width, width)).astype(np.float32) / 4
        graph.initializer.append(numpy_helper.from_array(weights, f"w{n}"))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    return quantize_model(model, [{"y0": rng.standard_normal((1, width)).astype(np.float32)}]).model


def constant_loads(program: tuple[Instruction, ...]) -> int:
    return sum(isinstance(each, Load) and each.memory is not Memory.ACT for each in program)


def test_a_chain_of_dense_layers_takes_fewer_loads_and_cycles_for_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = layers(4)
    x = {"y0": np.linspace(-1, 1, 8, dtype=np.float32)[None]}
    found = []
    for pace in (2.0, 0.0):
        monkeypatch.setattr(draft, "PACE", pace)
        module = compile(model, "vta:tiny")
        part = accelerator_part(module)
        check(part.program, TINY)
        result = run(module, x, "sim")
        assert result.cycles == part.expected_cycles
        found.append((constant_loads(part.program), result.cycles, result.outputs["y4"]))
    (loads, cycles, expected), (fewer, less, own) = found
    assert fewer <= loads / 2
    assert less < cycles
    np.testing.assert_array_equal(own, expected)


def test_long_programs_try_few_pairs_of_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, made, model = list[int](), last_changes.joined, layers(3)
    monkeypatch.setattr(draft, "PACE", 0.0)
    monkeypatch.setattr(last_changes, "FEW_INSTRUCTIONS", 0)

    def counted(*given: object) -> draft.Draft:
        counts[-1] += 1
        return made(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(last_changes, "joined", counted)
    for most in (last_changes.MOST_JOINED, 0):
        monkeypatch.setattr(last_changes, "MOST_JOINED", most)
        counts.append(0)
        compile(model, "vta:tiny", CompileOptions(effort=0))
    assert counts[0] > counts[1] == 0


def test_loads_that_start_long_after_each_other_stay_where_only_near_ones_are_joined() -> None:
    second = behind(FIRST)
    program = [FIRST, second, behind(second)]
    found = join(
        program, [NOTHING] * 3, TINY, lambda load: True, near=lambda first, other: other - first < 2
    )
    assert found == [[0, 1]]
