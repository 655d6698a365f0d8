"""The proofs there are, the most valuable first."""

from dataclasses import replace

from . import (
    bursts,
    decoder,
    fetch,
    host,
    issue,
    memory_port,
    queues,
    requantise,
    sdram,
    store,
    walkers,
)
from .run import Proof

__all__ = ["PROOFS"]

PLAIN, DEEP, FAST = "tiny", "deep", "fast_core"

CHIP_RULES = (
    "at the chip's pins: tRP, tRC, tRFC, tRCD, tRAS and tWR of the data sheet; rows are opened in "
    "closed banks, columns are of open rows, refreshes find all rows closed; data of a READ and "
    "of a WRITE never meet; PRECHARGE, eight refreshes and the mode come before the first row"
)
SDRAM = Proof(
    name="sdram-133",
    subject="sdram",
    bench=sdram.at_133_mhz,
    says=f"at 133 MHz (CAS latency 3), {CHIP_RULES}",
    configs=("ecp5_85",),
    assumes="initialisation begins after a cycle, and refreshes are due every 50, so that they "
    "come within the cycles looked at",
    steps=2,
    cover=150,
    bugs=(
        ("hold.eq(cycles.ras - 1)", "hold.eq(cycles.ras - 2)"),
        ("hold.eq(cycles.wr - 1)", "hold.eq(0)"),
        ("wait.eq(cycles.rfc - 1)", "wait.eq(cycles.rfc - 2)"),
        ("m.d.sync += turn.eq(cycles.cas - 1)", "m.d.sync += turn.eq(0)"),
        ("~(held & opened).any()", "~held[0]"),
    ),
    found=160,
)

PROOFS = (
    Proof(
        name="window",
        subject="memory_port",
        bench=memory_port.window,
        says="every burst on AR and AW, from its first byte to its last, is in the DRAM window",
        configs=(PLAIN, DEEP),
        assumes="the window stays as it is during a run; a unit's burst has 1 to 256 beats, and "
        "stays until it is taken or the run is stopped (proofs `cuts` and `fetch`)",
        steps=3,
        bugs=(
            ("(final <= self.window_limit)", "(final[:32] <= self.window_limit)"),
            ("burst.address >= self.window_base", "burst.address + 4 >= self.window_base"),
            ("(beyond - 1)[:33]", "(beyond - self._bus_bytes - 1)[:33]"),
            ("takes.eq(free & offered & inside)", "takes.eq(free & offered)"),
        ),
        quick=True,
    ),
    Proof(
        name="addresses",
        subject="memory_port",
        bench=memory_port.protocol,
        says="AR and AW keep AXI's rules: valid and its signals stay until ready; INCR bursts of "
        "whole beats; each burst that a unit hands over is announced once, as it is, with its "
        "unit's ID; none is announced after a stop; `quiet` exactly while none is unanswered",
        configs=(PLAIN, DEEP),
        assumes="as `window`; memory answers no burst that was not announced",
        steps=3,
        bugs=(
            ("with m.If(valid & ready):", "with m.If(valid):"),
            ("free = self.enable & ~valid", "free = ~valid"),
            ("free = free & ~offered", "free = free"),
            ("burst.beats - 1", "burst.beats"),
            ("(beat & bus.rlast)", "beat"),
        ),
        quick=True,
    ),
    Proof(
        name="writes",
        subject="store",
        bench=store.beats,
        says="each burst that STORE announces gets as many beats on W as announced, in the order "
        "of the bursts, the last one marked; a beat on offer keeps its place, its WLAST and WSTRB; "
        "WSTRB is 0 for beats first offered after a stop, and for no others; no slot is used twice",
        configs=(PLAIN, DEEP, "narrow"),
        assumes="the port takes only what is offered and nothing after a stop; bursts have 1 to "
        "256 beats (proof `cuts`)",
        steps=2,
        cover=24,
        bugs=(
            ("kept.eq(self.writes & self.beat_valid & ~self.beat_ready)", "kept.eq(0)"),
            ("self.writes.eq(self.enable | kept)", "self.writes.eq(1)"),
            ("self.bursts.payload.beats - 1", "self.bursts.payload.beats"),
            ("with m.Elif(self.beat_valid & self.beat_ready):", "with m.Elif(self.beat_ready):"),
        ),
        found=20,
        quick=True,
    ),
    Proof(
        name="cuts",
        subject="bursts",
        bench=bursts.cutter,
        says="the bursts of a LOAD's or STORE's block cover its rows exactly, in the order z, y, "
        "each byte once, at the addresses of the manual; none crosses a multiple of "
        "`burst_beats * bus_bytes` (so none crosses 4 KiB), none is shorter than it must be",
        configs=(PLAIN, DEEP, "large", "mixed"),
        assumes="addresses and strides are multiples of the bus; a block starts when the one "
        "before is over; a burst is taken only when offered",
        steps=2,
        cover=40,
        bugs=(
            ("ends_here = left <= to_boundary", "ends_here = left < to_boundary"),
            ("with m.If(y != 1):", "with m.If(y != 0):"),
            ("y.eq(rows), z.eq(z - 1)", "z.eq(z - 1)"),
            ("m.d.sync += left.eq(beats)", "m.d.sync += left.eq(left)"),
            ("for register in (plane, row, now)]", "for register in (plane, now)]"),
        ),
        found=25,
        quick=True,
    ),
    Proof(
        name="fetch",
        subject="fetch",
        bench=fetch.requests,
        says="FETCH's n-th burst is all of instruction n and nothing else, and stays until it is "
        "taken or the run is stopped; none comes after the last; at most `fetch_ahead` are under "
        "way",
        configs=(PLAIN, DEEP),
        assumes="program address and count stay as they are during a run; memory answers no burst "
        "that was not announced",
        steps=2,
        cover=70,
        bugs=(
            ("(ahead != config.fetch_ahead)", "(ahead != config.fetch_ahead + 1)"),
            ("(self.requested != self.count) & ", ""),
            ("ahead.eq(ahead + asked - dispatch)", "ahead.eq(ahead - dispatch)"),
            ("INSTRUCTION_BYTES // config.bus_bytes),", "INSTRUCTION_BYTES // 8),"),
        ),
        quick=True,
    ),
    Proof(
        name="decoder",
        subject="legality",
        bench=decoder.legality,
        says="of all 2^512 words the decoder accepts those that the manual's rules accept, and "
        "gives them to the unit of their opcode",
        configs=(PLAIN, "zynq7020", "ecp5_85", "large", "mixed"),
        steps=0,
        base=1,
        cover=1,
        found=1,
        bugs=(
            ("fields.low > fields.high", "fields.low >= fields.high"),
            ("(fields.step >= self._config.bus_bytes)", "(fields.step != 0)"),
            ("fields.reduction_levels > VECTOR_LEVELS", "fields.reduction_levels > 6"),
            ("own = fields.wait[unit] | fields.post[unit]", "own = fields.wait[unit]"),
        ),
        quick=True,
    ),
    Proof(
        name="queue",
        subject="head_queue",
        bench=queues.head_queue,
        says="`HeadQueue` returns what was pushed, in order, each word once, and never "
        "holds more than its depth; `room` and `valid` are exact",
        configs=(PLAIN, "narrow", "zynq7020"),
        assumes="words of 4 bits: the queue never looks into them",
        cover=40,
        bugs=(
            ("held > 2", "held > 3"),
            ("held < self._depth - 1", "held < self._depth"),
            ("(stored | (self.valid & ~pops))", "stored"),
        ),
        quick=True,
    ),
    Proof(
        name="issue",
        subject="issue",
        bench=issue.rules,
        says="a wait takes an existing token; tokens, existing and to come, are never "
        "more than `token_max`, and counter + credit + in flight is always `token_max`; no bank "
        "is held by two units in one role; VECTOR starts reading no bank that it will write",
        configs=(PLAIN, DEEP, FAST),
        assumes="a unit ends what it began, in order, is free until it is given something, and "
        "has no more in flight than its latency allows; the queue of instructions in flight "
        "returns what was put in (proof `queue`)",
        steps=2,
        cover=18,
        bugs=(
            ("takes = self.accept[target] & waits", "takes = self.done[target] & waits"),
            ("gives = self.accept[source] & will_post", "gives = self.done[source] & will_post"),
            ("if other is not unit:", "if other > unit:"),
        ),
        found=12,
    ),
    Proof(
        name="nest",
        subject="affine",
        bench=walkers.nest,
        says="a loop nest of six levels visits each iteration once, level 0 fastest, at `base + "
        "sum(index * stride)`, for all extents of 12 bits, strides and bases; its flags are exact",
        configs=(PLAIN, DEEP),
        assumes="extents are not 0; a nest starts when none is visited, or in the last cycle of "
        "one; one operand (operands are independent)",
        cover=36,
        bugs=(
            ("at_end.eq(left == 1)", "at_end.eq(left == 2)"),
            ("chosen_begin = Mux(at_end[level]", "chosen_begin = Mux(at_end[0]"),
            ("at_end.eq(zero)", "at_end.eq(0)"),
        ),
        quick=True,
    ),
    Proof(
        name="block",
        subject="walker",
        bench=walkers.block,
        says="the cells of a block come with x fastest, at `address + z * stride_z + "
        "y * stride_y + x * stride_x`, for all counts and strides; `last`, `x` and `y` are exact",
        configs=(PLAIN,),
        assumes="counts are not 0",
        cover=20,
        bugs=(
            ("end_z.eq(left_z == 2)", "end_z.eq(left_z == 1)"),
            ("row.eq(next_row), self.cell.eq(next_row)", "self.cell.eq(next_row)"),
            ("last.eq(only)", "last.eq(0)"),
        ),
        quick=True,
    ),
    replace(
        SDRAM,
        name="sdram-50",
        bench=sdram.at_50_mhz,
        says=f"at 50 MHz (CAS latency 2), {CHIP_RULES}",
        bugs=(
            ("hold.eq(cycles.ras - 1)", "hold.eq(cycles.ras - 2)"),
            ("wait.eq(cycles.rfc - 1)", "wait.eq(cycles.rfc - 2)"),
            ("m.d.sync += turn.eq(cycles.cas - 1)", "m.d.sync += turn.eq(0)"),
        ),
    ),
    SDRAM,
    Proof(
        name="registers",
        subject="registers",
        bench=host.registers,
        says="the register port keeps AXI4-Lite's rules: one steady OKAY answer for each request, "
        "none without; settings change only by writes to their address, byte by byte; a start "
        "is asked for only while nothing runs, a stop only while something does",
        configs=(PLAIN,),
        steps=2,
        bugs=(
            ("host.awvalid & host.wvalid & ~host.bvalid", "host.awvalid & host.wvalid"),
            ("host.arvalid & ~host.rvalid & ~asked & ~found", "host.arvalid & ~asked & ~found"),
            ("(target & ~mask) | (host.wdata & mask)", "host.wdata"),
            ("host.wdata[Control.START] & ~self.busy", "host.wdata[Control.START]"),
        ),
        quick=True,
    ),
    Proof(
        name="stopping",
        subject="control",
        bench=host.control,
        says="the first error of a run stops it (of errors in one cycle, the first in the order of "
        "`isa/priorities.py`); its code and index stay until the next start, whatever follows; "
        "a stopped run ends as failed, once no burst is left, and any other as finished",
        configs=(PLAIN, DEEP),
        assumes="a start comes only while nothing runs (proof `registers`)",
        steps=2,
        bugs=(
            ("with m.Elif(self.enable & found):", "with m.Elif(self.running & found):"),
            ("for source in reversed(Source):", "for source in Source:"),
            ("self.running & stopped & self.quiet", "self.running & stopped"),
            ("for unit in reversed(Unit):", "for unit in Unit:"),
        ),
        quick=True,
    ),
    Proof(
        name="requantise-front",
        subject="requantize",
        bench=requantise.front,
        says="before its product, requantisation rounds every int32 to 24 bits, half to even, "
        "takes the scale's 24 bits, and adds their exponents; in fixed point it takes 24 bits of "
        "the value, doubled or not, or all ones, and 31 of the multiplier",
        configs=(PLAIN, DEEP),
        steps=0,
        base=9,
        cover=9,
        found=9,
        bugs=(
            ("normal[7] & (normal[:7].any() | normal[8])", "normal[7]"),
            ('"zeros") - 94', '"zeros") - 93'),
            ("top = rounded_value[-2] | rounded_value[-1]", "top = rounded_value[-2]"),
            ("lost | (fixed & wanted & ~empty)", "lost"),
            ("take = empty & (wanted | ~fixed)", "take = empty"),
            ("Mux(power_shift > FIXED_MOST_LEFT, ", "Mux(power_shift > 9, "),
        ),
    ),
    Proof(
        name="requantise-back",
        subject="requantize",
        bench=requantise.back,
        says="after its product, requantisation rounds the product to 24 bits and, once shifted, "
        "to an integer, half to even both times, and adds sign and zero point: exact where "
        "results have 20 bits, and elsewhere once clipped to int8, for every product, exponent "
        "and zero point; in fixed point it rounds half up, and then half away from 0",
        configs=(PLAIN, DEEP),
        assumes="the product is 0 or has 47 or 48 bits, as of two mantissas; in fixed point it is "
        "at most that of the largest factors",
        steps=0,
        base=6,
        cover=6,
        found=6,
        bugs=(
            ("half & (sticky | upper[0])", "half"),
            ("(left > whole_bits", "(left > 8"),
            ("high & product[22]", "high"),
            ("placed[: point - 1].any() | placed[point]", "placed[point]"),
            (" | fixed[placed_in]", ""),
            (".any() | ~negative[product_in]", ".any()"),
            ('"beyond").any()', '"beyond")[0]'),
        ),
    ),
)
