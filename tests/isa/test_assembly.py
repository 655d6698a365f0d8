from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.isa import assembly
from dovetail.isa.assembly import assemble, disassemble
from dovetail.isa.configs import find_config
from dovetail.isa.errors import AssemblyError, ProgramError
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Gemm, Instruction, Load, Store
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import check_program, program_from_bytes, program_to_bytes

from .strategies import instructions

TINY = find_config("tiny")
TEXT = """
.config tiny
.set weights 0x40
.set tile 16
# weights, then one tile
load memory=wgt sram_address=3 dram_address=weights+tile-0x10 post=gemm
gemm act_address=512 wgt_address=3 acc_address=0
     extent=2 act_stride=1   # levels left out: 1 and 0
     wgt_stride=0 acc_stride=1 wait=load
"""


@settings(deadline=None)
@given(st.lists(instructions, max_size=5))
def test_assembling_gives_back_what_was_disassembled(program: list[Instruction]) -> None:
    text = disassemble(program)
    assert assemble(text, TINY) == tuple(program)
    assert program_from_bytes(program_to_bytes(program)) == tuple(program)


def test_defaults_and_bank_masks_are_filled_in() -> None:
    load, gemm = assemble(TEXT, TINY)
    expected = Load(
        memory=Memory.WGT, sram_address=3, dram_address=0x40, post=frozenset({Unit.GEMM})
    )
    assert load == expected
    assert isinstance(gemm, Gemm)
    assert gemm.extent == (2, 1, 1, 1, 1, 1)
    assert gemm == with_bank_masks(gemm, TINY)
    assert gemm.act_read_banks == 0b10


def test_the_example_of_the_documentation_is_assembled() -> None:
    text = assembly.__doc__ or ""
    example = text.partition("\n\n")[2].partition("\n\nAn instruction")[0]
    load, gemm = assemble(dedent(example), TINY)
    assert isinstance(load, Load)
    assert load.dram_address == 0x1040
    assert isinstance(gemm, Gemm)
    assert gemm.reduction == 3


def test_fields_with_their_default_are_left_out() -> None:
    text = disassemble(assemble(TEXT, TINY))
    assert text.splitlines() == [
        "load   memory=wgt sram_address=3 dram_address=0x40 act_write_banks=0x0 acc_banks=0x0 "
        "post=gemm",
        "gemm   act_address=512 wgt_address=3 acc_address=0 extent=2 act_stride=1 wgt_stride=0 "
        "acc_stride=1 act_read_banks=0x2 acc_banks=0x1 wait=load",
    ]


def test_bank_masks_given_are_kept() -> None:
    line = "store sram_address=0 dram_address=0 act_read_banks=0b1111"
    (store,) = assemble(line, TINY)
    assert isinstance(store, Store)
    assert store.act_read_banks == 0b1111


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "jump",
            "line 2, column 1: no instruction is called 'jump'; there are: load, gemm, vector, "
            "store",
        ),
        ("load memory=wgt", "line 2, column 1: load needs sram_address"),
        (
            "load memory=wgt sram_address=x",
            "line 2, column 17: sram_address=x: 'x' is neither a number nor a name",
        ),
        ("load memory=wgt sram_address=", "line 2, column 17: sram_address=: '' is not a number"),
        ("load memory=wgt sram_address=3+", "column 17: .* '3\\+' is not a number"),
        (
            "load memory=moon sram_address=0",
            "column 6: memory=moon: 'moon' is none of act, wgt, acc, par, tap, tab",
        ),
        (
            "load memory=wgt sram_address=0 speed=3",
            "line 2, column 32: 'speed=3' in load; required field=value with a field of: memory",
        ),
        (
            "load memory=wgt sram_address=0\n sram_address=1",
            "line 3, column 2: field sram_address is given twice",
        ),
        ("load memory=wgt sram_address=0 wait=load", "neither wait for nor post to itself"),
        (
            "load memory=wgt sram_address=0 wait=fetch",
            "column 32: wait=fetch: 'fetch' is none of load, gemm, vector, store",
        ),
        (
            "load memory=wgt sram_address=0 count_x=4096",
            "line 2, column 32: load: count_x = 4096; required 0 to 4095",
        ),
        ("store sram_address=0 dram_address=0 count_x=0", "the block has no words"),
        (
            "vector source=act destination=act source_address=0 destination_address=0\n"
            "       extent=1,2,3,4,5,6 source_stride=0 destination_stride=0",
            "line 3, column 8: extent=1,2,3,4,5,6: 6 levels; required at most 5",
        ),
        (
            "gemm act_address=0 wgt_address=0 acc_address=0 extent=1,5000 act_stride=0 "
            "wgt_stride=0 acc_stride=0",
            "line 2, column 48: gemm: extent1 = 5000; required 0 to 4095",
        ),
        (
            "gemm act_address=0 wgt_address=0 acc_address=0 extent=1 act_stride=0 wgt_stride=0 "
            "acc_stride=0 accumulate=2",
            "column 96: accumulate=2: required 0 or 1",
        ),
        (".config large", "line 2, column 9: written for large; assembled for tiny"),
        (".set 3x 4", "line 2, column 6: '3x' is not a name; required letters, digits and _"),
        (".set x 4\n.set x 5", "line 3, column 6: x is set twice"),
        (".set x y", "column 8: 'y' is neither a number nor a name"),
        (".set x 4\n.set y z", "'z' is neither a number nor a name; names set so far: x"),
        (".org 4", "line 2, column 1: found '.org 4'; required .config NAME, .set NAME NUMBER or"),
        ("count_x=4", "line 2, column 1: no instruction is called 'count_x=4'"),
    ],
)
def test_an_error_names_its_place(line: str, message: str) -> None:
    with pytest.raises(AssemblyError, match=message):
        assemble(f"# first\n{line}\n", TINY)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "load memory=act sram_address=0 dram_address=0x2000",
            "instruction 0 .load.: DRAM bytes 0x2000 to 0x2003 leave the window 0x0 to 0xfff",
        ),
        (
            "load memory=act sram_address=0 count_y=2",
            "two cells of the block have one address",
        ),
        (
            "load memory=act sram_address=0 act_write_banks=2",
            "act_write_banks = 0x2; its addresses need 0x1",
        ),
        (
            "load memory=act sram_address=0 dram_address=2",
            "dram_address = 2; required a multiple of 4",
        ),
        (
            "vector source=act destination=act source_address=0 destination_address=1 extent=1,3 "
            "source_stride=0,1 destination_stride=1",
            "word 1 is read after this instruction wrote it",
        ),
    ],
)
def test_a_program_without_defined_result_is_refused(line: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        check_program(assemble(line, TINY), TINY, window=(0, 0xFFF))


def test_bytes_that_are_no_program_are_refused() -> None:
    with pytest.raises(ProgramError, match="a program of 65 bytes; required a multiple of 64"):
        program_from_bytes(bytes(65))
    with pytest.raises(ProgramError, match="instruction 0: opcode 0"):
        program_from_bytes(bytes(64))
