"""Words and parts that the runtime refuses, each in one sentence that says what to give instead."""

import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.isa.errors import DovetailError
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.accelerator.host_steps import Dequantize, Quantize, Select
from dovetail.runtime.accelerator.host_steps import Image as BatchImage
from dovetail.runtime.accelerator.host_steps import Softmax as HostSoftmax
from dovetail.runtime.board.device import BoardName
from dovetail.runtime.debug.machines import snapshot_device
from dovetail.runtime.debug.moments import Event
from dovetail.runtime.debug.session import Session
from dovetail.runtime.debug.stops import AtCycle, AtInstruction, AtLayer, AtToken, Watch, positions
from dovetail.runtime.debug.walk import listed
from dovetail.runtime.errors import DeviceError, InputError, ModuleError
from dovetail.runtime.native import host as native_host
from dovetail.runtime.native.host import host_flags, require_flags
from dovetail.runtime.native.image import Image
from dovetail.runtime.native.pool import PoolCode
from dovetail.runtime.native.program import ProgramCode
from dovetail.runtime.trust.sandbox import SandboxLimits, _require_ended

from .sample import SHAPE, copy_module

CODE = ProgramCode(Image(bytes(16), {"main": 8, "other": 15}), "main", 0, 1, None, 0, ())
POOL = PoolCode("main", "other", "1", 0, 0)
LIMITS = SandboxLimits(cpu_seconds=7, wall_seconds=9.5)
CASES: list[tuple[Callable[[], object], type[DovetailError], str]] = [
    *(
        (
            lambda text=text: BoardName.parse(text),
            DeviceError,
            f"'board:{text or ''}' names no serial port",
        )
        for text in (None, "", "ulx3s", "ulx3s@", "@/dev/tty", "ulx3s@/dev/tty,fast")
    ),
    (lambda: snapshot_device("cpu", object()), DeviceError, "'cpu' does not show its memories"),
    (lambda: replace(CODE, main="none"), ModuleError, "machine code without its symbol 'none'"),
    (
        lambda: replace(CODE, memory_bytes=-1),
        ModuleError,
        "machine code for 1 threads and -1 bytes",
    ),
    (lambda: replace(CODE, threads=0), ModuleError, "machine code for 0 threads and 0 bytes"),
    (lambda: replace(CODE, most_work=-1), ModuleError, "machine code for 1 threads"),
    (lambda: replace(CODE, pool=POOL._replace(start="a")), ModuleError, "without its symbol 'a'"),
    (lambda: replace(CODE, pool=POOL._replace(stop="b")), ModuleError, "without its symbol 'b'"),
    (lambda: replace(CODE, pool=POOL._replace(field_bytes=-1)), ModuleError, "for 1 threads"),
    (lambda: replace(CODE, pool=POOL._replace(thread_bytes=-1)), ModuleError, "for 1 threads"),
    *(
        (lambda make=make, pair=pair: make(*pair), ModuleError, "required scale > 0, int32")
        for make in (
            Quantize,
            Dequantize,
            lambda scale, zero: HostSoftmax(scale, zero, 0.5, 0),
            lambda scale, zero: HostSoftmax(0.5, 0, scale, zero),
        )
        for pair in (
            (0.0, 0),
            (-1.0, 0),
            (float("inf"), 0),
            (float("nan"), 0),
            (1.0, 1 << 31),
            (1.0, -(1 << 31) - 1),
        )
    ),
    (lambda: Image(bytes(8), {"a": 8}).check(), ModuleError, "symbol 'a' at 8 of 8 bytes"),
    (lambda: Image(bytes(8), {"a": -1}).check(), ModuleError, "symbol 'a' at -1 of 8 bytes"),
    (lambda: Image(bytes(8), {}, ("f", "g")).check(), ModuleError, "2 imports in 8 bytes"),
    (lambda: _require_ended(0, True, LIMITS), DeviceError, "stopped after 9.5 s"),
    (lambda: _require_ended(-signal.SIGXCPU, False, LIMITS), DeviceError, "more than 7 s of proc"),
    (lambda: _require_ended(-signal.SIGKILL, False, LIMITS), DeviceError, "more than 7 s of proc"),
]


@pytest.mark.parametrize(("make", "kind", "message"), CASES)
def test_a_word_or_part_of_another_form_is_refused(
    make: Callable[[], object], kind: type[DovetailError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_what_is_at_its_limit_is_taken() -> None:
    assert BoardName.parse("ulx3s@/dev/tty") == BoardName("ulx3s", "/dev/tty")
    assert BoardName.parse("a@b,9600") == BoardName("a", "b", 9600)
    assert replace(CODE, pool=POOL).pool == POOL
    for zero in (-(1 << 31), (1 << 31) - 1):
        assert (Quantize(1e-9, zero).zero_point, Dequantize(1e9, zero).zero_point) == (zero, zero)
    Image(bytes(8), {"a": 0, "b": 7}, ("f",)).check()
    _require_ended(0, False, LIMITS)


def test_stops_that_are_never_reached_are_said() -> None:
    x: Any = np.zeros(SHAPE, np.int8)
    session = Session(copy_module(), {"x": x})
    for stop, words in (
        (Watch(Memory.ACT, 12, 99), "watch act 12..99 rw"),
        (Watch(None, 112, 127, writes=False), "watch dram 0x70..0x7f r"),
        (Watch(Memory.ACC, 0, 9, reads=False), "watch acc 0..9 w"),
    ):
        with pytest.raises(InputError, match=f"^the run never reaches {re.escape(words)}$"):
            session.go_to(stop)
    for token, words in (
        (AtToken(Unit.GEMM, Unit.LOAD), "GEMM gives LOAD 0 tokens"),
        (AtToken(Unit.LOAD, Unit.STORE, 2), "LOAD gives STORE 1 tokens"),
        (AtToken(Unit.LOAD, Unit.STORE, 0), "LOAD gives STORE 1 tokens"),
    ):
        with pytest.raises(InputError, match=f"{words}; required a number of one of them, from 1"):
            session.go_to(token)
    assert session.go_to(AtToken(Unit.LOAD, Unit.STORE, 1)).next is not None
    last = session.go_to(AtInstruction(1, Event.ENDED))
    assert session.go_to(AtInstruction(0)) != last, "back, as it is over"
    for word in ("nothing", "1"):
        with pytest.raises(InputError, match=f"no layer called '{word}'; there are: copy; or"):
            session.layer(word)
    assert [session.layer(word) for word in ("0", "copy", "opy")] == [0, 0, 0]


def test_words_are_watched_where_they_are_read_and_written() -> None:
    """LOAD writes words 0 to 11 of ACT, which STORE reads and writes to bytes 64 to 111."""
    x: Any = np.zeros(SHAPE, np.int8)
    session = Session(copy_module(), {"x": x})
    loaded = [
        place + 1
        for place, each in enumerate(session.moments)
        if (each.index, each.event) == (0, Event.ENDED)
    ]
    read = [
        place
        for place, each in enumerate(session.moments)
        if (each.index, each.event) == (1, Event.STARTED)
    ]
    stored = [len(session.moments)]
    for word in (0, 11):
        assert positions(Watch(Memory.ACT, word, word), session.run) == sorted({*loaded, *read})
        assert positions(Watch(Memory.ACT, word, word, reads=False), session.run) == loaded
        assert positions(Watch(Memory.ACT, word, 99, writes=False), session.run) == read
    for byte in (64, 111):
        assert positions(Watch(None, byte, byte), session.run) == stored
    assert positions(Watch(None, 0, 0), session.run)[-1] != stored[0]
    for watch in (Watch(Memory.ACT, 12, 12), Watch(Memory.WGT, 0, 9), Watch(None, 112, 127)):
        assert positions(watch, session.run) == []


def test_stops_have_names() -> None:
    named = (AtCycle(3), AtLayer(2), AtLayer(2, True), AtInstruction(4, Event.QUEUED))
    named += (AtToken(Unit.GEMM, Unit.LOAD), AtToken(Unit.LOAD, Unit.STORE, 2))
    assert list(map(str, named)) == [
        "cycle 3", "layer 2 start", "layer 2 end", "instruction 4 queued", "token gemm load",
        "token load store 2",
    ]  # fmt: skip
    names = [f"n{place}" for place in range(9)]
    assert listed(names[:8]) == ", ".join(names[:8])
    assert listed(names) == ", ".join(names[:8]) + ", ... (9 in all)"


def test_flags_of_the_processor_are_those_of_its_list(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "model name\t: a b\nflags\t\t: fpu avx2 sse\nbugs\t: spectre\nflags\t: other\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert host_flags.__wrapped__() == {"fpu", "avx2", "sse"}
    text = "Features\t: fp asimd\n"
    assert host_flags.__wrapped__() == frozenset()
    monkeypatch.setattr(native_host, "host_flags", lambda: frozenset({"sse"}))
    require_flags(["sse"], "old")
    with pytest.raises(DeviceError, match="this CPU lacks avx2, fma, which the code for new uses"):
        require_flags(["fma", "sse", "avx2"], "new")


def test_parts_of_images_and_batches_are_there_or_said() -> None:
    x = np.arange(24).reshape(1, 3, 4, 2)
    found = Select((1, 0), (1, 3), (2, 2), (1,)).run(x)
    np.testing.assert_array_equal(found, x[:, 1:3, ::3, 1:])
    for steps, size in (((2, 3), (2, 2)), ((1, 4), (2, 2))):
        with pytest.raises(ModuleError, match=r"an image of shape \[1, 3, 4, 2\] has no part"):
            Select((1, 0), steps, size, (1,)).run(x)
    batch = x.reshape(3, 8)
    np.testing.assert_array_equal(BatchImage(2).run(batch), batch[2:])
    for place in (3, -1):
        with pytest.raises(ModuleError, match=f"a batch of 3 has no image {place}; compile it"):
            BatchImage(place).run(batch)
