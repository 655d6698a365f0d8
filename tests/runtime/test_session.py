"""Running modules: what goes in, what comes out, and every way to be refused."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.runtime import Module, Session, run
from dovetail.runtime.accelerator.part import AcceleratorPart, accelerator_part
from dovetail.runtime.device import PreparedPart
from dovetail.runtime.errors import DeviceError, InputError
from dovetail.runtime.parts import Part
from dovetail.runtime.result import RunResult
from dovetail.runtime.tensors import TensorSignature

from .sample import SHAPE, copy_module

X = np.random.default_rng(5).integers(-128, 128, SHAPE, dtype=np.int8)


def test_the_sample_copies_its_input_and_accounts_for_every_byte() -> None:
    result = run(copy_module(), {"x": X}, device="sim")
    np.testing.assert_array_equal(result.outputs["y"], X)
    assert result.dram_bytes_read == 2 * 64 + X.size
    assert result.dram_bytes_written == X.size
    assert result.gemm_busy_cycles == 0
    assert result.cycles is not None
    assert result.cycles > 0
    figures = result.figures()
    assert figures["device"] == "sim"
    assert {"wall_seconds", "host_seconds", "macs", "gemm_utilization"} <= set(figures)


def test_the_timeline_has_every_instruction_in_order() -> None:
    result = run(copy_module(), {"x": X})
    load, store = result.timeline
    assert [(e.index, e.unit, e.layer) for e in (load, store)] == [(0, "LOAD", 0), (1, "STORE", 0)]
    for entry in (load, store):
        assert 0 <= entry.queued < entry.start < entry.end < (result.cycles or 0)
    assert store.start > load.end, "STORE waits for the token of LOAD"
    assert store.waited_token
    assert load.waited_token == 0


def test_running_changes_neither_module_nor_input() -> None:
    module, given = copy_module(), X.copy()
    before = module.to_bytes()
    run(module, {"x": given})
    assert module.to_bytes() == before
    np.testing.assert_array_equal(given, X)


def test_inputs_may_be_strided() -> None:
    strided = np.asfortranarray(X)
    np.testing.assert_array_equal(run(copy_module(), {"x": strided}).outputs["y"], X)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"input 'x' is missing; required int8\[1, 2, 3, 8\]"),
        ({"z": X}, "no input 'z'; its inputs are: x"),
        ({"x": X, "z": X}, "no input 'z'"),
        ({"x": X[0]}, r"input 'x' is int8\[2, 3, 8\]; required int8\[1, 2, 3, 8\]"),
        ({"x": np.concatenate([X, X])}, r"is int8\[2, 2, 3, 8\]; required int8\[1, 2, 3, 8\]"),
        ({"x": X.astype(np.uint8)}, r"is uint8\[1, 2, 3, 8\]; required int8"),
        ({"x": X.astype(np.float32)}, r"is float32\[1, 2, 3, 8\]; required int8"),
        ({"x": X.tolist()}, r"input 'x' is a list; required an array, int8\[1, 2, 3, 8\]"),
    ],
)
def test_a_wrong_input_is_refused(inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(copy_module(), inputs)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "no device is called 'gpu'; there are: sim, rtl, board, cpu, opencl, cuda, webgpu"),
        ("", "no device is called ''"),
        ("cpu", "compiled for 'vta:tiny' cannot run on 'cpu'"),
        ("sim:zynq7020", "compiled for 'vta:tiny' cannot run on 'sim:zynq7020'"),
        ("sim:nonsense", "compiled for 'vta:tiny' cannot run on 'sim:nonsense'"),
    ],
)
def test_a_wrong_device_is_refused(device: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        run(copy_module(), {"x": X}, device=device)


def test_a_device_may_name_the_configuration() -> None:
    result = run(copy_module(), {"x": X}, device="sim:tiny")
    np.testing.assert_array_equal(result.outputs["y"], X)


def test_an_illegal_instruction_is_reported_with_its_index() -> None:
    code = bytearray(accelerator_part(copy_module()).code)
    code[64] = 0xFF
    with pytest.raises(DeviceError, match="ILLEGAL_INSTRUCTION at instruction 1 of 2"):
        run(copy_module(code=bytes(code)), {"x": X})


def test_an_access_out_of_the_window_is_reported_with_its_index() -> None:
    program = "load memory=act sram_address=0 dram_address=0x100000 count_x=4"
    with pytest.raises(DeviceError, match="WINDOW at instruction 0 of 1"):
        run(copy_module(program), {"x": X})


def test_a_program_that_waits_for_ever_is_stopped() -> None:
    program = "store sram_address=0 dram_address=64 count_x=1 wait=load"
    with pytest.raises(DeviceError, match="WATCHDOG at instruction 0 of 1"):
        run(copy_module(program), {"x": X})


def test_one_input_needs_no_name_and_outputs_come_as_asked() -> None:
    with Session(copy_module(), "sim") as session:
        for given in (X, {"x": X}):
            np.testing.assert_array_equal(session.run(given).outputs["y"], X)
            for names in (None, ["y"]):
                (found,) = session.run(names, given)
                np.testing.assert_array_equal(found, X)
        assert session.run([], X) == []
        with pytest.raises(InputError, match="no output 'z'; its outputs are: y"):
            session.run(["z"], X)
    with pytest.raises(DeviceError, match="the session is closed"):
        session.run(X)


def test_a_session_takes_a_file(tmp_path: Path) -> None:
    copy_module().save(tmp_path / "m.dvt")
    np.testing.assert_array_equal(Session(tmp_path / "m.dvt").run(X).outputs["y"], X)
    assert Session(str(tmp_path / "m.dvt")).inputs == copy_module().inputs


@dataclass(frozen=True, slots=True)
class SumPart:
    """A part for a device of this test: the sum of two tensors, and their difference."""

    kind: ClassVar[str] = "sum"
    target: ClassVar[str] = "toy"

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    added: int


class Toy:
    """Runs it, and is not in the table of devices."""

    name = target_kind = "toy"

    def prepare(self, part: Part) -> PreparedPart:
        assert isinstance(part, SumPart)
        return Adder(part)

    def close(self) -> None:
        self.closed = True


@dataclass
class Adder:
    part: SumPart

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> RunResult:
        a, b = (inputs[tensor.name] for tensor in self.part.inputs)
        values = (a + b + self.part.added, a - b)
        names = (tensor.name for tensor in self.part.outputs)
        return RunResult(dict(zip(names, values, strict=True)), "toy", 1.0, 0.0, 1.0)


def copying(x: str, y: str) -> AcceleratorPart:
    """The sample's part with other names for its tensors."""
    part = accelerator_part(copy_module())
    (source,), (result,) = part.sources, part.results
    return replace(
        part,
        sources=(replace(source, tensor=replace(source.tensor, name=x)),),
        results=(replace(result, tensor=replace(result.tensor, name=y)),),
    )


def test_parts_of_several_targets_pass_tensors_by_name() -> None:
    """Two programs of an accelerator, whose results two parts of another device join."""
    tensors = {name: TensorSignature(name, SHAPE, "int8") for name in "abcdefgh"}
    parts = (
        copying("a", "c"),
        copying("b", "d"),
        SumPart((tensors["c"], tensors["b"]), (tensors["e"], tensors["f"]), 1),
        SumPart((tensors["e"], tensors["d"]), (tensors["g"], tensors["h"]), 0),
    )
    module = Module("toy", (tensors["a"], tensors["b"]), (tensors["h"], tensors["f"]), parts)
    module = Module.from_bytes(module.to_bytes(), kinds={"sum": SumPart})
    toy = Toy()
    a, b = X, X[:, ::-1]
    with pytest.raises(DeviceError, match="compiled for 'vta:tiny' cannot run on 'toy'"):
        Session(module, toy)
    with pytest.raises(DeviceError, match="compiled for 'toy' cannot run"):
        Session(module)
    outputs = (tensors["g"], tensors["d"])
    alone = Session(Module("toy", (tensors["e"], tensors["d"]), outputs, parts[3:]), toy)
    found = alone.run(None, {"e": a, "d": b})
    np.testing.assert_array_equal(found, [a + b, b])
    alone.close()
    assert toy.closed
    with Session(module, (toy, "sim:tiny")) as session:
        result = session.run({"a": a, "b": b})
    np.testing.assert_array_equal(result.outputs["f"], a - b)
    np.testing.assert_array_equal(result.outputs["h"], a + 1)
    assert list(result.outputs) == ["h", "f"]
    once = run(copy_module(), X)
    assert result.cycles == 2 * (once.cycles or 0)
    assert result.dram_bytes_read == 2 * (once.dram_bytes_read or 0)
    assert [each.index for each in result.timeline] == [*range(2 * len(once.timeline))]
    assert result.timeline[len(once.timeline)].start == (once.cycles or 0) + once.timeline[0].start
