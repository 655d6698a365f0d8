"""Prose and pseudo-code of the manual; ``document`` puts them between the generated tables."""

from .config import SHORT_ROWS
from .instruction_formats import VECTOR_LEVELS
from .instructions import Finish, Fold, Rounding, Row
from .memories import Memory
from .requantize import FIXED_BIAS_BITS, FIXED_MOST_LEFT

__all__ = [
    "BUS",
    "FIXED_FORMULA",
    "FORMULA",
    "LOOPS",
    "MEMORY_NOTES",
    "OVERVIEW",
    "REGISTERS_NOTE",
    "RULES",
    "RUNNING",
    "STOPPING",
    "SYNCHRONISATION",
    "UNITS_NOTE",
]

OVERVIEW = """
# Instruction set manual

Generated from `isa/` by `make docs`; edit there. Cycles are specified in [timing.md](timing.md).

## Machine

Five units: FETCH reads the program, in order, and puts each instruction into the queue of its unit:
LOAD, GEMM, VECTOR or STORE. These four work at the same time, each on its own instructions in
order. Their data is in six scratchpads on chip and in DRAM. `block` (B below) is the number of
lanes; it and all other sizes are those of a [configuration](#configurations).

All numbers are two's complement, little-endian; bit 0 is the least significant. A word in DRAM has
the same bytes as in its scratchpad, at ascending addresses; lane 0 comes first. DRAM addresses are
32-bit byte addresses, computed modulo 2^32. **Scratchpad addresses are word addresses and are taken
modulo the depth of their memory**, after all indices are added; depths are powers of two.
"""

MEMORY_NOTES = {
    Memory.ACT: ("B int8", "B", "LOAD, VECTOR", "GEMM, VECTOR, STORE"),
    Memory.WGT: ("B x B int8, `[output lane][input lane]`", "B * B", "LOAD", "GEMM"),
    Memory.ACC: ("B int32", "4 * B", "LOAD, GEMM, VECTOR", "GEMM, VECTOR"),
    Memory.PAR: (
        "B int32 biases, then B float32 scales; for FIXED other numbers in these bits",
        *("8 * B", "LOAD", "VECTOR"),
    ),
    Memory.TAP: ("B int8", "B", "LOAD", "VECTOR"),
    Memory.TAB: ("B int8; a table is 256 consecutive words", "B", "LOAD", "VECTOR"),
}

UNITS_NOTE = """
Bit i of an instruction's fields `wait` and `post` stands for unit i; its opcode is i + 1.
"""

SYNCHRONISATION = """
## Tokens

Every ordered pair of the four units has a counter. An instruction starts when, for each unit in its
`wait` field, the counter from that unit to its own is at least 1; it takes one from each. When it
ends it adds one to the counter from its own unit to each unit in its `post` field. An instruction
that posts does not start while that could make a counter exceed the configuration's `token_max`,
counting what earlier instructions in flight will post: a poster waits, a counter never saturates.
All counters are 0 when a program starts; what they hold when it ends is of no account. A unit can
neither wait for nor post to itself.

LOAD ends when its last word is written, GEMM and VECTOR when their last result is written, STORE
when memory has answered its last burst. So a token from STORE to LOAD orders DRAM.

A program whose waits are never served, or whose posts never find room, does not end: it runs until
the watchdog or the host stops it. An instruction is in the queue of its unit until it starts. A
queue that holds `queue_depth` is full, and holds up all instructions behind it, also those of other
units.

## Banks

ACT and ACC are split into banks of equal size, bank 0 first. An instruction states the banks it
uses: `act_read_banks`, `act_write_banks`, `acc_banks` (reads and writes), bit i for bank i. It
starts when no other unit holds one of them in the same role, and holds all to its end. A VECTOR
instruction also waits while an earlier one that writes a bank it reads is in flight. The masks are
taken as they are: more banks than needed, also those beyond the last bank, are held all the same.
Bank locks keep the machine's timing simple; **they are no substitute for tokens**: which of two
units gets a bank first depends on memory's timing.
"""

RULES = f"""
## Rules for programs

The hardware refuses an instruction that is not legal (error ILLEGAL_INSTRUCTION):

- the opcode is not 1 to 4, or a reserved bit is 1;
- `wait` or `post` names the instruction's own unit;
- LOAD: `memory` is above {len(Memory) - 1}; `count_z`, the rows or the columns of the padded block
  are 0;
- STORE: a count is 0;
- STORE, and LOAD without a `step`: `dram_address`, `dram_stride_y` or `dram_stride_z` is not a
  multiple of the bytes of a word, with `nibbles` of `bus_bytes`;
- LOAD with a `step`: `memory` is not ACT, `pad_x_before` or `pad_x_after` is not 0, `step` is less
  than `bus_bytes`, or `dram_stride_y` or `dram_stride_z` is not a multiple of `bus_bytes`
  (`dram_address` may be any);
- LOAD with `nibbles`: `memory` is not WGT, PAR or TAB; or it is WGT and the configuration's
  `nibble_weights` is False; or PAR or TAB and its `short_constants` is False; or TAB, and
  `sram_address`, `sram_stride_y`, `sram_stride_z`, `count_x` or `pad_x_before` is not a multiple
  of {SHORT_ROWS};
- GEMM and VECTOR: an extent is 0;
- VECTOR: `fold` is above {max(Fold)}, `finish` above {Finish.CUSTOM:d}
  (where the configuration's `finish` is empty: above {Finish.CUSTOM - 1}),
  `rounding` above {max(Rounding)}, or {Rounding.FIXED:d} where the configuration's
  `fixed_rounding` is False, or {Rounding.WIDE:d} where its `row_parameters` is False or the
  destination is ACT,
  `row` above {max(Row)} (where the configuration's `row_parameters` is False: not 0),
  `reduction_levels` not 1 to {VECTOR_LEVELS}, `lookup` is 1 with destination ACC, `tab_address` is
  not a multiple of 256, or `low` is above `high`. These rules hold whether or not the instruction
  uses the field.

What follows has no defined result: the simulator and the hardware may leave different memory.
`dovetail assemble` refuses what can be seen in one instruction (the second, third and fourth), the
compiler's checker all but the last two:

- two instructions of different units touch one word, at least one writes it, and no chain of tokens
  orders them;
- an instruction touches a bank that its masks do not name;
- a LOAD addresses one scratchpad word twice;
- a VECTOR reads a word after the same instruction wrote it, of PAR too;
- a REQUANTIZE with the rounding FLOAT or WIDE and a scale that is infinite or not a number, or
  negative where the configuration's `row_parameters` is False (0 and subnormal scales are defined:
  every product is 0);
- a program that writes over its own instructions.

Instructions of one unit need no tokens between them: they take effect in order.
"""

FORMULA = """
## Requantisation

`finish = 1` with `rounding = 0` or 2 computes, lane by lane, with `bias` and `scale` from PAR:

    total  = (v + bias) modulo 2^32, as int32
    a      = total rounded to a float32 (24 significant bits, half to even)
    p      = a * scale rounded to a float32, half to even
    i      = p rounded to an integer, half to even
    result = clip(i + zero_point, low, high)
             with rounding = 2: clip(i, -2^19, 2^19) + zero_point

In integers: write |total| = m * 2^e with m of 24 bits after rounding; multiply m by the 24-bit
significand of the scale; round the product to 24 bits; shift it right with rounding. A product
below 2^-126 rounds to 0; one above every int8 limit is clipped, an infinite one too.

In NumPy:
"""

FIXED_FORMULA = f"""
With `rounding = 1` the same bits of PAR hold other numbers. The low {FIXED_BIAS_BITS} bits of the
int32 are a signed bias; above them is `s`, without a sign. The low 31 bits of the float32 are a
multiplier; its highest bit is ignored. Every value of them is defined:

    total  = (v + bias) modulo 2^32, as int32
    power  = {FIXED_MOST_LEFT} - s
    a      = min(|total| * 2^max(power, 0), 2^24 - 1)
    x      = (a * multiplier + 2^30 - (1 if total < 0 else 0)) >> 31
    r      = max(-power, 0)
    y      = (x + (2^r >> 1)) >> r
    result = clip((-y if total < 0 else y) + zero_point, low, high)

So the product is rounded to an integer, half up, and then divided, half away from 0. In NumPy:
"""

RUNNING = """
## Running a program

1. Put program and data into DRAM. Instruction i is at `PROGRAM_ADDRESS + 64 * i`.
2. Compare `FINGERPRINT` with the one the program was made for.
3. Write `PROGRAM_ADDRESS`, `PROGRAM_COUNT`, `WINDOW_BASE`, `WINDOW_LIMIT` and `WATCHDOG`.
4. Write START to `CONTROL`. Counters, tokens, queues and the last error are cleared; scratchpads
   keep what they hold, which is anything before the first program. A program of 0 instructions ends
   at once.
5. Read `STATUS` until BUSY is 0: then DONE or ERROR is 1. Settings may be written again only now.

The low 6 bits of `PROGRAM_ADDRESS` are ignored.

FETCH, LOAD and STORE may touch only bytes from `WINDOW_BASE` to `WINDOW_LIMIT`, both included. A
row of a LOAD with a step is read in whole beats, from that of its first window's first byte to that
of its last window's last, whether or not its bytes count as padding.
"""

BUS = """
## Memory bus

An AXI4 manager with 32-bit addresses, `bus_bytes` of data and a 1-bit ID. All bursts are INCR, of
whole beats, at most `burst_beats` long, and cross no multiple of `burst_beats * bus_bytes`. FETCH
reads with ID 0, LOAD with ID 1, STORE writes with ID 0; beats of the two read IDs may come
interleaved, bursts of one ID come in order. Read data and write responses are always accepted at
once. A burst is written only when all of its data is at hand. WSTRB is all ones, except in the
beats of a stopped program (below).
"""

REGISTERS_NOTE = """
AXI4-Lite, 32-bit registers, 10 bits of byte address. Writes honour WSTRB byte by byte. A write to a
register that is not listed, or only read, changes nothing; one that is not listed reads as 0, as
does CONTROL. Every answer is OKAY. After reset all settings and counters are 0 and STATUS is 0.
"""

STOPPING = """
## Errors

The first error fixes ERROR_CODE and ERROR_INDEX and stops the machine: no instruction starts after
it, no burst is announced after it, and write beats first offered after it carry no byte (WSTRB 0).
When the bursts already announced are answered BUSY falls and ERROR rises. DRAM then holds what was
written before the error, and the beat on offer in its cycle; scratchpads hold anything.

The index is that of the instruction concerned, counted from 0; for WATCHDOG and STOPPED it is the
oldest instruction that has not ended, as [timing.md](timing.md) defines it.
"""

LOOPS = {
    "load": """
    rows = pad_y_before + count_y + pad_y_after;  columns = pad_x_before + count_x + pad_x_after
    for z in count_z: for row in rows: for column in columns:
        cell = sram_address + z * sram_stride_z + row * sram_stride_y + column
        y, x = row - pad_y_before, column - pad_x_before
        if 0 <= y < count_y and 0 <= x < count_x:
            memory[cell] = DRAM word at
                dram_address + z * dram_stride_z + y * dram_stride_y + x * word size
        else:
            every byte of memory[cell] = pad_value

    Without a step, row_first and row_end are ignored, and, but with nibbles and PAR, gap.
    With one, pad_x_before and pad_x_after are 0, and
        cell = sram_address + z * sram_stride_z + row * sram_stride_y + x * (1 + gap)
        byte b of ACT[cell] = DRAM byte at
                dram_address + z * dram_stride_z + y * dram_stride_y + x * step + b
            if 0 <= y < count_y and row_first <= x * step + b < row_end, else pad_value

    With nibbles and WGT, nibble n of some bytes are bits 4 * (n % 2) to 4 * (n % 2) + 3 of byte
    n // 2, and
        head = max(bus_bytes, B / 2);  word size = head + B * B / 2 bytes
        WGT[cell][l][k] = (nibble B * l + k of the word's bytes from head on, signed)
                * (1 + nibble l of the word's first bytes)
    What is left of the first head bytes is ignored.
    With nibbles and PAR, and gap = 0, word size = 4 * B, and
        bias of PAR[cell][l] = 0;  scale of PAR[cell][l] = float32 l of the word's bytes
    with another gap, word size = max(bus_bytes, 8), and
        bias of PAR[cell][l] = the word's first int32;  scale of PAR[cell][l] = the float32 behind
    With nibbles and TAB, word size = bus_bytes / 4, and
        TAB[cell][l] = byte l % (bus_bytes / 4) of the word's bytes
""",
    "gemm": """
    for i5 in extent5: ... for i0 in extent0:
        a = act_address + sum(i * act_stride)
        w = wgt_address + sum(i * wgt_stride)
        o = acc_address + sum(i * acc_stride)
        first = not accumulate and every level of `reduction` has index 0
        for lane l:
            old = 0 if first else ACC[o][l]
            ACC[o][l] = old + (sum over k of (WGT[w][l][k] + weight_offset)
                * (ACT[a][k] - act_zero_point))        modulo 2^32
""",
    "vector": """
    for the indices i of levels 4 to reduction_levels (outermost first), for each lane l:
        v = fold, over the indices of levels reduction_levels - 1 to 0 (level 0 fastest), of
            source[source_address + sum(i * source_stride)][l]              modulo 2^32
            (MAC: of the element's low 16 bits, signed, times the multiplier;
             the multiplier TAP is TAP[tap_address + sum(i * tap_stride)][l] + offset,
             offset the low 9 bits of m0, signed; PAIR: see below.  With TAP, `row` = 0 and
             `short_constants`, the low 9 bits of m1, signed, are added to the element first)
        r = finish(v), with PAR[par_address + sum(i * par_stride)][l]
        if the destination is ACT: r = clip(r, low, high)
        if lookup: r = TAB[tab_address + 128 + r][l]
        destination[destination_address + sum(i * destination_stride)][l] = r

    With a `row`, in place of r, the bias and the scale of every lane of
    PAR[destination_address + sum(i * destination_stride)]:
        LESS, fold MAX: m1 - max over l of (v[l]'s low 8 bits, signed), and 1.0
        LESS, other folds: m1 - s, and p.scale[0], where
            p = PAR[par_address + sum(i * par_stride)], its scales without their signs
            s = sum over l of v[l]                      modulo 2^32
        OVER: m1, and the float32 quotient p.scale[0] / float32(max(1, s + p.bias[0]))
        ROOT: p.bias[0], and p.scale[0] * 2^shift / sqrt(max(1, s + m1)), as below
    The destination's memory, finish, limits and lookup are ignored then. Sums are modulo 2^32.
    Conversion and quotient are rounded half to even. Of OVER and ROOT, any exponent but 0 of
    p.scale[0] is taken as that of a normal number; it is 0 if subnormal, as is a result that would
    be subnormal.

    ROOT finds the inverse root of t = max(1, s + m1) by a table of 256 rows, and cuts off what it
    does not keep. With isqrt the whole part of a root, and // dividing downwards:

        T(o, j) = isqrt(2^47 // ((128 + j) * 2^o))      about 2^20 / sqrt((1 + j / 128) * 2^o)
        t = 2^e + rest, rest < 2^e;  f = rest * 2^17 // 2^e
        j, k = f // 1024, f % 1024;  o = e % 2
        r = (min(T(o, j) + 2, 2^20 - 1) - ((T(o, j) - T(o, j + 1)) * k // 1024)) // 8
        n = r * the 24-bit significand of p.scale[0]    40 or 41 bits
        the result's significand is n's upper 24 bits; its exponent is that of p.scale[0]
        + shift - e // 2, and 1 less if n has 40 bits, but at most that of the largest float32

    A sum is over all five levels; those for PAR and the destination are over the levels that are
    not folded. Elements of ACT are sign-extended to 32 bits, and so is an int8 result in ACC.
    What the fold, the multiplier, the finish or `lookup` does not use is ignored: the multiplier
    and `window_skip` count for MAC alone, `window_skip` and `wide_window` for WINDOW alone.

With MAC and the multiplier PAIR the elements of odd level-0 index are read elsewhere, so that two
operands move apart, or one stays while the other moves:

    source[source_address + source_stride0 + sum(i * tap_stride)][l]

Each of them is multiplied with the one before it, which is of even index; offset(m) are the low 9
bits of m, signed, and low(n, s) the low n bits of the sum s, signed:

    v = sum over odd elements of low(16, element + offset(m1))
            * low(24, element before + offset(m0))          modulo 2^32

With a `row`, which has an m1 of its own, offset(m0) takes the place of offset(m1).

An element of even index that none follows counts for nothing.

So a product of two quantised tensors is exact: an offset is a zero point, taken away.

With MAC and the multiplier WINDOW the elements of level 0 are a *column*; with ``wide_window``
those of level 1 too, if that is folded. The columns of one pass over level ``reduction_levels`` and
those below it are a *run* (with 5 of them folded, all columns are one run).
An element counts with its low 8 bits, signed. Element e of column n counts three times, with three
taps of its own:

    t = (tap_address + sum(i * tap_stride)) rounded down to a multiple of 4
    c[j][n] = sum over the elements e of column n of e[l] * (TAP[t + j][l] + offset), j = 0, 1, 2
    v = c[2][n] + c[1][n - 1] + c[0][n - 2]         modulo 2^32, c[j][n] = 0 before the run's first

As always there is one result for each iteration of the levels that are not folded: v of the last
column it visits. The first ``window_skip`` results of each run are not written. So a 3x3 depthwise
convolution takes 3 cycles a word instead of 9, and 3 cycles for each column at the edges.
A wider window is the sum of some of three columns each: with ``wide_window``, level 1 goes from one
to the next. A 5x5 convolution is two of them, 2 columns apart, and takes 10 cycles a word.
""",
    "store": """
    for z in count_z: for y in count_y: for x in count_x:
        DRAM word at dram_address + z * dram_stride_z + y * dram_stride_y + x * word size
            = ACT[sram_address + z * sram_stride_z + y * sram_stride_y + x]
""",
}
