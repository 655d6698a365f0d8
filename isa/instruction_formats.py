"""Bits of the four instructions.

Loop levels count from the innermost: level 0 varies fastest.
"""

from .config import INSTRUCTION_BYTES
from .formats import Field, Format

__all__ = [
    "GEMM_FORMAT",
    "GEMM_LEVELS",
    "LOAD_FORMAT",
    "STORE_FORMAT",
    "VECTOR_FORMAT",
    "VECTOR_LEVELS",
]

GEMM_LEVELS = 6
VECTOR_LEVELS = 5
WORD_BITS = 8 * INSTRUCTION_BYTES


def _levels(
    name: str, count: int, width: int, doc: str, *, signed: bool = True, first: int = 0
) -> tuple[Field, ...]:
    return tuple(
        Field(f"{name}{level}", width, f"{doc}, level {level}", signed)
        for level in range(first, first + count)
    )


_OPCODE = Field("opcode", 4, "unit number plus one")
_HEADER = (
    _OPCODE,
    Field(
        "wait",
        4,
        "units whose token is taken before the start: bit 0 LOAD, 1 GEMM, 2 VECTOR, 3 STORE",
    ),
    Field("post", 4, "units that are given a token at the end, same bits"),
)


def _dram_place(address: str, stride: str) -> tuple[Field, ...]:
    return (
        Field("dram_address", 32, f"byte address of the first word, {address}"),
        Field("dram_stride_y", 32, f"bytes from one row to the next, {stride}", True),
        Field("dram_stride_z", 32, f"bytes from one plane to the next, {stride}", True),
    )


_WHOLE = "a multiple of the word size"
_SRAM_STRIDES = (
    Field("sram_stride_y", 16, "words from one row to the next", True),
    Field("sram_stride_z", 16, "words from one plane to the next", True),
)

LOAD_FORMAT = Format(
    "load",
    WORD_BITS,
    (
        *_HEADER,
        Field("memory", 3, "destination: 0 ACT, 1 WGT, 2 ACC, 3 PAR, 4 TAP, 5 TAB"),
        Field("act_write_banks", 8, "ACT banks written"),
        Field("acc_banks", 4, "ACC banks written"),
        *_dram_place(
            f"{_WHOLE}; with nibbles of `bus_bytes`; with a step any",
            f"{_WHOLE}; with a step or nibbles a multiple of `bus_bytes`",
        ),
        Field("sram_address", 16, "word address of the corner of the padded block"),
        *_SRAM_STRIDES,
        Field("count_x", 12, "words read in a row"),
        Field("count_y", 12, "rows read in a plane"),
        Field("count_z", 12, "planes"),
        Field("pad_x_before", 8, "padding words before each row; with a step 0"),
        Field("pad_x_after", 8, "padding words after each row; with a step 0"),
        Field("pad_y_before", 8, "padding rows before each plane"),
        Field("pad_y_after", 8, "padding rows after each plane"),
        Field("pad_value", 8, "every byte of padding", True),
        Field("step", 8, "0: words follow each other in DRAM; else bytes from a word to the next"),
        Field(
            "gap",
            8,
            "with a step: words left free between two words of a row; with nibbles and PAR not 0: "
            "words are one bias and one scale",
        ),
        Field("row_first", 20, "with a step: bytes of a row before this one count as padding"),
        Field("row_end", 20, "with a step: bytes of a row from this one on count as padding"),
        Field(
            "nibbles",
            1,
            "1: words have a short form in DRAM: of WGT nibbles and multipliers, of PAR scales or "
            "one of each, of TAB a quarter of a beat",
        ),
    ),
)

GEMM_FORMAT = Format(
    "gemm",
    WORD_BITS,
    (
        *_HEADER,
        Field("act_read_banks", 8, "ACT banks read"),
        Field("acc_banks", 4, "ACC banks read and written"),
        Field(
            "accumulate", 1, "1: add to what ACC holds; 0: the first tile of a reduction overwrites"
        ),
        Field("reduction", 6, "levels (bit per level) over which a result accumulates"),
        Field("act_address", 16, "first ACT word"),
        Field("wgt_address", 16, "first WGT word"),
        Field("acc_address", 16, "first ACC word"),
        *_levels("extent", GEMM_LEVELS, 12, "iterations", signed=False),
        *_levels("act_stride", GEMM_LEVELS, 16, "ACT words a step"),
        *_levels("wgt_stride", GEMM_LEVELS, 16, "WGT words a step"),
        *_levels("acc_stride", GEMM_LEVELS, 16, "ACC words a step"),
        Field("weight_offset", 9, "added to every weight before it is multiplied", True),
        Field("act_zero_point", 8, "taken from every input before it is multiplied", True),
    ),
)

VECTOR_FORMAT = Format(
    "vector",
    WORD_BITS,
    (
        *_HEADER,
        Field("source", 1, "memory read: 0 ACT, 1 ACC"),
        Field("destination", 1, "memory written: 0 ACT, 1 ACC"),
        Field("fold", 3, "0 ADD, 1 SUB, 2 MAX, 3 MIN, 4 MAC"),
        Field("multiplier", 2, "of MAC: 0 TAP, 1 IMMEDIATE, 2 PAIR, 3 WINDOW"),
        Field("finish", 2, "0 NONE, 1 REQUANTIZE, 2 SHIFT, 3 CUSTOM"),
        Field("lookup", 1, "1: the int8 result is replaced from TAB; destination ACT only"),
        Field("rounding", 2, "of REQUANTIZE: 0 FLOAT, 1 FIXED; to ACC also 2 WIDE"),
        Field("reduction_levels", 3, "levels 0 to reduction_levels - 1 are folded (1 to 5)"),
        Field("act_read_banks", 8, "ACT banks read"),
        Field("act_write_banks", 8, "ACT banks written"),
        Field("acc_banks", 4, "ACC banks read or written"),
        Field("zero_point", 8, "added after REQUANTIZE", True),
        Field("low", 8, "smallest int8 result", True),
        Field("high", 8, "largest int8 result", True),
        Field("shift", 5, "bits of SHIFT; an operand of CUSTOM; of ROOT, a power of two"),
        Field(
            "m0",
            24,
            "immediate multiplier at level-0 index 0; its low 9 bits are added to taps, "
            "and to even elements of PAIR",
            True,
        ),
        Field(
            "m1",
            24,
            "immediate multiplier elsewhere; low 9 bits: added to odd elements of PAIR, and with "
            "`short_constants` to elements of TAP, where `row` is 0",
            True,
        ),
        Field("source_address", 16, "first word read"),
        Field("destination_address", 16, "first word written"),
        Field("par_address", 12, "first PAR word"),
        Field("tap_address", 12, "first TAP word"),
        Field("tab_address", 12, "first TAB word of the table; a multiple of 256"),
        *_levels("extent", VECTOR_LEVELS, 12, "iterations", signed=False),
        *_levels("source_stride", VECTOR_LEVELS, 16, "source words a step"),
        *_levels("tap_stride", VECTOR_LEVELS, 12, "TAP words, of PAIR source words, a step"),
        *_levels("destination_stride", VECTOR_LEVELS - 1, 16, "destination words a step", first=1),
        *_levels("par_stride", VECTOR_LEVELS - 1, 12, "PAR words a step", first=1),
        Field("window_skip", 2, "of WINDOW: first results of each run that are not written"),
        Field("row", 2, "0 NONE; the parameters of a row go to PAR: 1 LESS, 2 OVER, 3 ROOT"),
        Field("wide_window", 1, "of WINDOW: 1: level 1 is of the column too, if it is folded"),
    ),
)

STORE_FORMAT = Format(
    "store",
    WORD_BITS,
    (
        *_HEADER,
        Field("act_read_banks", 8, "ACT banks read"),
        *_dram_place(_WHOLE, _WHOLE),
        Field("sram_address", 16, "first ACT word"),
        *_SRAM_STRIDES,
        Field("count_x", 12, "words in a row"),
        Field("count_y", 12, "rows in a plane"),
        Field("count_z", 12, "planes"),
    ),
)
