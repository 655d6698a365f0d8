"""Instructions come back from their bytes; illegal ones are refused."""

from dataclasses import replace

import pytest
from hypothesis import given

from dovetail.isa.encoding import decode, encode
from dovetail.isa.errors import EncodingError
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory, Unit

from .strategies import instructions

NEST = {f"{name}_stride": (0,) * 6 for name in ("act", "wgt", "acc")}
GEMM = Gemm(act_address=0, wgt_address=0, acc_address=0, extent=(1,) * 6, **NEST)  # type: ignore[arg-type]
VECTOR = Vector(
    source=Memory.ACC,
    destination=Memory.ACC,
    source_address=0,
    destination_address=0,
    extent=(1,) * 5,
    source_stride=(0,) * 5,
    destination_stride=(0,) * 4,
)
LOAD = Load(memory=Memory.ACT, sram_address=0)
STORE = Store(dram_address=0, sram_address=0)


@given(instructions)
def test_every_instruction_decodes_what_it_encoded(instruction: Instruction) -> None:
    data = encode(instruction)
    assert len(data) == 64
    assert decode(data) == instruction


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (replace(GEMM, extent=(1, 0, 1, 1, 1, 1)), "required 1 and up"),
        (replace(GEMM, extent=(1, 1)), "extent has 2 levels; required 6"),
        (replace(GEMM, wait=frozenset({Unit.GEMM})), "neither wait for nor post to itself"),
        (replace(VECTOR, extent=(0, 1, 1, 1, 1)), "required 1 and up"),
        (replace(VECTOR, reduction_levels=0), "reduction_levels = 0; required 1 to 5"),
        (replace(VECTOR, rounding=4), "rounding = 4; required 0 to 3"),
        (replace(VECTOR, lookup=True), "lookup needs destination act"),
        (replace(VECTOR, tab_address=3), "required a multiple of 256"),
        (replace(VECTOR, low=5, high=4), "low = 5 is above high = 4"),
        (replace(LOAD, count_z=0), "the block has no cells"),
        (replace(LOAD, count_x=0), "the block has no cells"),
        (replace(STORE, count_y=0), "the block has no words"),
        (replace(STORE, sram_address=1 << 16), "sram_address = 65536; required 0 to 65535"),
    ],
)
def test_an_illegal_instruction_is_refused(instruction: Instruction, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        encode(instruction)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(64), "opcode 0; required 1 to 4"),
        (b"\x05" + bytes(63), "opcode 5; required 1 to 4"),
        (bytes(63), "an instruction has 64 bytes; found 63"),
        (encode(STORE)[:-1] + b"\x80", "reserved bits"),
    ],
)
def test_words_that_are_no_instruction_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        decode(data)


def test_enumerations_beyond_their_last_value_are_refused() -> None:
    word = int.from_bytes(encode(VECTOR), "little") | 7 << Vector.format.offset("fold")
    with pytest.raises(EncodingError, match="fold = 7; required 0 to 4"):
        decode(word.to_bytes(64, "little"))
