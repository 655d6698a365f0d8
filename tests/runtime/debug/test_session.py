"""Going through a run in both directions, and what is seen on the way."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.compiler.debug.expected import reference
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.isa.configs import find_config
from dovetail.isa.footprint import scratchpad_reads, scratchpad_writes
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.debug.moments import Event
from dovetail.runtime.debug.session import Session
from dovetail.runtime.debug.stops import AtInstruction, AtLayer
from dovetail.runtime.debug.walk import listed
from dovetail.runtime.errors import DeviceError, InputError, ModuleError
from dovetail.runtime.module import Module

from ..sample import SHAPE, copy_module


@pytest.fixture(scope="module")
def module(digits_model: Path) -> Module:
    return compile(digits_model, target="vta:tiny")


@pytest.fixture
def session(module: Module) -> Session:
    return Session(module, random_inputs(module))


@pytest.fixture(scope="module")
def truth(digits_model: Path, module: Module) -> dict[str, NDArray[Any]]:
    return dict(
        reference(SourceModel.load(digits_model), random_inputs(module), find_config("tiny")).values
    )


def test_an_instruction_is_reached_before_it_starts_and_after_it_ended(session: Session) -> None:
    place = session.run_to_instruction(40)
    assert place.next is not None
    assert (place.next.event, place.next.index) == (Event.STARTED, 40)
    info = session.instruction(40)
    assert session.cycle < info.start == place.next.cycle
    session.run_to_instruction(40, Event.ENDED)
    assert session.cycle == info.end


def test_every_layer_leaves_the_interpreters_tensor(
    session: Session, truth: dict[str, NDArray[Any]]
) -> None:
    for number, layer in enumerate(session.layers):
        session.run_to_layer(str(number), end=True)
        made = {
            frame.tensor
            for i, frames in session.record.frames.items()
            for frame in frames
            if session.layer_of[i] == number and session.program[i].unit is Unit.VECTOR
        }
        names = [session.record.tensors[n] for n in made]
        (name,) = (each.name for each in names if not each.addend)
        view = session.tensor(name)
        assert view.present.all(), layer
        assert np.array_equal(view.values, truth[name][0])
        if view.values.ndim == 3:
            assert np.array_equal(view.nchw, truth[name][0].transpose(2, 0, 1))


def test_the_input_is_in_dram_first_and_the_result_last(
    session: Session, truth: dict[str, NDArray[Any]]
) -> None:
    tensors = session.record.tensors
    first = session.tensor(tensors[0].name)
    assert first.in_dram
    assert np.array_equal(first.values, truth[tensors[0].name][0])
    result = next(t for t in tensors[1:] if t.address is not None)
    assert not session.tensor(result.name).present.any()
    session.resume()
    assert session.ended
    place = session.part.results[0].address
    dram = session.dram(place, 10)
    assert np.array_equal(dram, truth[result.name].reshape(-1))


@settings(max_examples=15)
@given(data=st.data())
def test_going_back_and_forth_leads_to_the_same_memories(module: Module, data: Any) -> None:
    there = Session(module, random_inputs(module))
    places = st.integers(0, len(there.moments))
    for position in data.draw(st.lists(places, min_size=1, max_size=4)):
        there.position = position
        fresh = Session(module, random_inputs(module))
        fresh.position = position
        assert np.array_equal(there.state.act, fresh.state.act)
        assert np.array_equal(there.state.acc, fresh.state.acc)
        assert np.array_equal(there.shadow.writers[Memory.ACT], fresh.shadow.writers[Memory.ACT])
        assert there.units() == fresh.units()


def test_steps_are_taken_back(session: Session) -> None:
    session.run_to_instruction(60)
    session.step()
    before = session.position
    session.step(Unit.GEMM, 2)
    assert session.moments[session.position - 1].event is Event.ENDED
    assert session.program[session.moments[session.position - 1].index].unit is Unit.GEMM
    session.back(Unit.GEMM, 2)
    assert before <= session.position
    session.restart()
    assert (session.cycle, session.position) == (-1, 0)
    session.step(count=10_000)
    assert session.ended


def test_a_watch_stops_at_every_access_and_nowhere_else(session: Session) -> None:
    first, last = 520, 523
    session.watch(Memory.ACT, first, last)
    config, seen = session.config, set()
    while session.resume().next is not None:
        before = session.moments[session.position]
        after = session.moments[session.position - 1]
        seen |= {(before.index, False)} if before.event is Event.STARTED else set()
        seen |= {(after.index, True)} if after.event is Event.ENDED else set()
    wanted = set()
    for index, instruction in enumerate(session.program):
        for touches, writes in (
            (scratchpad_reads(instruction, config), False),
            (scratchpad_writes(instruction, config), True),
        ):
            for touch in touches:
                inside = (touch.addresses >= first) & (touch.addresses <= last)
                if touch.memory is Memory.ACT and inside.any():
                    wanted.add((index, writes))
    assert wanted
    assert wanted <= seen


def test_tokens_are_counted(session: Session) -> None:
    while not session.ended:
        session.position = min(session.position + 25, len(session.moments))
        assert all(0 <= n <= session.config.token_max for n in session.tokens().values())
    assert not any(session.tokens().values())
    session.restart()
    session.run_to_token(Unit.GEMM, Unit.VECTOR, 3)
    ended = [m.index for m in session.moments[: session.position] if m.event is Event.ENDED]
    gave = [
        i
        for i in ended
        if Unit.VECTOR in session.program[i].post and session.program[i].unit is Unit.GEMM
    ]
    assert len(gave) == 3
    assert ended[-1] == gave[-1]


def test_who_waits_is_who_the_simulator_says_waited(session: Session) -> None:
    result = session.result
    assert result.waited_token is not None
    assert result.dispatched is not None
    assert result.accepted is not None
    waited = int(np.argmax(result.waited_token))
    start, unit = int(result.accepted[waited]), session.program[waited].unit
    session.run_to_cycle(start - 2)
    status = next(each for each in session.units() if each.unit is unit)
    assert status.queue[0] == waited
    assert f"{waited}: a token from" in status.waits_for


def test_breakpoints_are_listed_and_removed(session: Session) -> None:
    one = session.add_stop(AtInstruction(30))
    two = session.add_stop(AtLayer(2, end=True))
    assert session.resume().reasons == ("instruction 30 start",)
    assert session.resume().reasons == ("layer 2 end",)
    assert session.reverse().reasons == ("instruction 30 start",)
    session.delete_stop(one)
    assert list(session.breakpoints) == [two]
    with pytest.raises(InputError, match=f"no breakpoint {one}; there are: {two}"):
        session.delete_stop(one)


def test_writers_and_constants_are_known(session: Session) -> None:
    gemm = next(
        index
        for index, each in enumerate(session.program)
        if each.unit is Unit.GEMM and session.layer_of[index] == session.layer("a1")
    )
    session.run_to_instruction(gemm)
    constant = session.constant("a1", "weights")
    assert constant.memory is Memory.WGT
    assert constant.values.shape == (144, 4, 4)
    loaded = [part for part in constant.parts if part.on_chip.all()]
    assert loaded
    for part in loaded:
        words = session.words(Memory.WGT, part.first_word, len(part.data)).arrays["wgt"]
        assert np.array_equal(words.reshape(len(words), -1).view(np.uint8), part.data)
        who = session.writer(Memory.WGT, part.first_word)
        assert who.instruction is not None
        assert who.instruction.index == part.instruction
        assert who.loaded_from == part.address


def test_weights_are_the_models(session: Session, digits_model: Path, module: Module) -> None:
    found = reference(SourceModel.load(digits_model), random_inputs(module), find_config("tiny"))
    compared = 0
    for number, layer in enumerate(found.partition.layers):
        operator = layer.nodes[0].operator
        if not isinstance(operator, Conv2d) or operator.groups > 1 or not number:
            continue
        weights = found.graph.constants[layer.nodes[0].inputs[1]]
        outputs, _, _, inputs = weights.shape
        whole = session.constant(str(number), "weights").ohwi
        assert np.array_equal(whole[:outputs, ..., :inputs], weights)
        compared += 1
    assert compared >= 5
    bias = session.constant("a1", "bias")
    with pytest.raises(InputError, match="bias has no rows and columns; required weights"):
        assert bias.ohwi.size


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.run_to_instruction(999), "no instruction 999; the program has 2"),
        (lambda s: s.run_to_layer("nothing"), "no layer called 'nothing'; there are: first, a1"),
        (lambda s: s.run_to_token(Unit.STORE, Unit.GEMM), "STORE gives GEMM 0 tokens"),
        (lambda s: s.tensor("nothing"), "no tensor called 'nothing'; there are: image"),
        (lambda s: s.constant("a1", "taps"), "has no constant 'taps'; it has: bias, weights"),
        (lambda s: s.words(Memory.ACT, 2047, 2), "act 2047, 2 words; required within 0 to 2047"),
        (lambda s: s.dram(-1, 4), "4 elements of int8 at -0x1"),
        (lambda s: s.dram(0, 4, "object"), "4 elements of object"),
        (lambda s: s.dram(0, 4, "int7"), "no element type 'int7'"),
        (lambda s: s.watch(None, 0, 1 << 40), "dram 0 to 1099511627776; required within 0 to"),
        (lambda s: s.writer(Memory.TAB, -1), "tab -1; required 0 to"),
        (lambda s: s.waves(Path("x.png"), 0, 1), "required FILE.fst or FILE.vcd"),
        (lambda s: s.waves(Path("/nowhere/x.vcd"), 0, 1), "folder /nowhere of x.vcd"),
    ],
)
def test_what_there_is_not_is_said_in_one_sentence(
    session: Session, call: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        call(session)


def test_waveforms_are_the_rtls(session: Session, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="'sim' has no waveforms; use --device rtl"):
        session.waves(tmp_path / "x.vcd", 0, 1)


def test_a_module_without_names_is_run_through_all_the_same() -> None:
    session = Session(copy_module(), {"x": np.arange(48, dtype=np.int8).reshape(SHAPE)})
    session.resume()
    assert session.registers()["STATUS"] == "DONE"
    assert session.words(Memory.ACT, 0, 12).arrays["act"].any()
    with pytest.raises(ModuleError, match="compile it again"):
        session.tensor("x")


def test_a_module_for_the_cpu_is_refused(digits_model: Path) -> None:
    module = compile(digits_model, target="cpu")
    with pytest.raises(DeviceError, match="compiled for 'cpu'; required one for vta:CONFIG"):
        Session(module, random_inputs(module))


def test_of_many_names_the_first_are_listed() -> None:
    names = [f"n{place}" for place in range(9)]
    assert listed(names[:8]) == "n0, n1, n2, n3, n4, n5, n6, n7"
    assert listed(names) == "n0, n1, n2, n3, n4, n5, n6, n7, ... (9 in all)"
    assert listed(()) == ""
