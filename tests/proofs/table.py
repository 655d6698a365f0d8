"""The proofs there are, the most valuable first."""

from . import bursts, decoder, issue, memory_port, queues, walkers
from .run import Proof

__all__ = ["PROOFS"]

PLAIN, DEEP, FAST = "tiny", "deep", "fast_core"

PROOFS = (
    Proof(
        name="window",
        subject="memory_port",
        bench=memory_port.window,
        says="every burst on AR and AW, from its first byte to its last, lies in the DRAM window",
        configs=(PLAIN, DEEP),
        assumes="the window stays as it is during a run; a unit's burst has 1 to 256 beats, and "
        "stays until it is taken or the run is stopped (proofs `cuts` and, for FETCH, by reading)",
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
        says="AR and AW keep AXI's rules: valid and all beside it stay until ready; INCR bursts of "
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
        name="decoder",
        subject="legality",
        bench=decoder.legality,
        says="of all 2^512 words the decoder takes those that the manual's rules take, and gives "
        "them to the unit of their opcode",
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
        says="`HeadQueue` gives back what was pushed, in order, nothing lost or twice, and never "
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
        says="a wait takes a token that is there; tokens there are and those to come are never "
        "more than `token_max`, and counter + credit + in flight is always `token_max`; no bank "
        "is held by two units in one role; VECTOR starts reading no bank that it is to write",
        configs=(PLAIN, DEEP, FAST),
        assumes="a unit ends what it began, in order, is free until it is given something, and "
        "has no more in flight than its latency allows; the queue of instructions in flight gives "
        "back what was put in (proof `queue`)",
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
        "one; one operand (they do not see each other)",
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
        says="the cells of a block come x fastest, at `address + z * stride_z + y * stride_y + "
        "x * stride_x`, for all counts and strides; `last`, `x` and `y` are exact",
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
)
