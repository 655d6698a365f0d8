"""Deciding which instructions start: tokens, memory banks, and what is in flight.

The rules are those of docs/timing.md, "Accepting an instruction".
"""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Unit

from . import layouts
from .gemm import Gemm
from .ports import UnitControl
from .vector import Vector

__all__ = ["QUEUED", "Issue"]

LAYOUTS = {
    Unit.LOAD: layouts.LOAD,
    Unit.GEMM: layouts.GEMM,
    Unit.VECTOR: layouts.VECTOR,
    Unit.STORE: layouts.STORE,
}
QUEUED = {
    unit: data.StructLayout({"instruction": layout, "index": 32})
    for unit, layout in LAYOUTS.items()
}
"""Entry of each unit's queue: an instruction and its index in the program."""

PRIORITY = (Unit.GEMM, Unit.VECTOR, Unit.STORE, Unit.LOAD)
ROLES = {"act_read_banks": 8, "act_write_banks": 8, "acc_banks": 4}
"""What a unit can hold, and how many banks each has at most."""

IN_FLIGHT = {
    Unit.LOAD: 2,
    Unit.GEMM: Gemm.LATENCY + 2,
    Unit.VECTOR: Vector.LATENCY + 2,
    Unit.STORE: 2,
}
"""Room for the instructions of a unit that are in flight: one accepted a cycle, until its end."""


@dataclass(frozen=True, slots=True)
class _Flying:
    """What a unit has in flight.

    held: by role, whether each bank is held.  oldest: the entry that ends next.
    """

    held: dict[str, Value]
    oldest: Value


class Issue(wiring.Component):
    """Start the head of each queue when unit, tokens and banks are free for it.

    Members
    -------
    enable : In(1)
        A program runs and has not been stopped.
    head_<unit> : In(QUEUED), head_valid : In(4)
        Heads of the queues.
    control_<unit> : Out(UnitControl)
    accept : Out(4)
        The head is taken in this cycle.
    done : Out(4)
        The oldest instruction in flight ends in this cycle.
    busy, stall_token, stall_port : Out(4)
        For the counters.
    in_flight : Out(4)
        Whether the unit has an instruction in flight.
    index : Out(array of 32 bits)
        Index of each unit's oldest instruction: in flight, or else at the head of its queue.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._token_max = config.token_max
        ports = {}
        for unit in Unit:
            name = unit.name.lower()
            ports[f"head_{name}"] = In(QUEUED[unit])
            ports[f"control_{name}"] = Out(UnitControl(LAYOUTS[unit]))
        flags = ("accept", "done", "busy", "stall_token", "stall_port", "in_flight")
        super().__init__(
            {
                "enable": In(1),
                "head_valid": In(4),
                **ports,
                **{name: Out(len(Unit)) for name in flags},
                "index": Out(data.ArrayLayout(unsigned(32), len(Unit))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        heads = {unit: getattr(self, f"head_{unit.name.lower()}") for unit in Unit}
        controls = {unit: getattr(self, f"control_{unit.name.lower()}") for unit in Unit}
        claims = {unit: self._claims(heads[unit].instruction) for unit in Unit}
        flying = {unit: self._track(m, unit, heads[unit], claims[unit]) for unit in Unit}
        tokens = self._tokens(m, heads, flying)
        hazard = self._hazard(m, heads[Unit.VECTOR].instruction, flying[Unit.VECTOR].oldest)
        taken: dict[str, Value] = {}
        for unit in PRIORITY:
            control, claim = controls[unit], claims[unit]
            blocked: Value = hazard if unit is Unit.VECTOR else Const(0)
            for role, banks in claim.items():
                busy = taken.get(role, 0)
                for other in Unit:
                    if other is not unit and role in flying[other].held:
                        busy = busy | flying[other].held[role]
                blocked = blocked | (banks & busy).any()
            accept = self.accept[unit]
            could = self.enable & self.head_valid[unit] & control.free
            m.d.comb += [
                accept.eq(could & tokens[unit] & ~blocked),
                self.stall_token[unit].eq(could & ~tokens[unit]),
                self.stall_port[unit].eq(could & tokens[unit] & blocked),
                control.start.eq(accept),
                control.instruction.eq(heads[unit].instruction),
                self.done[unit].eq(control.done),
                self.busy[unit].eq(control.busy),
            ]
            for role, banks in claim.items():
                taken[role] = taken.get(role, 0) | (banks & accept.replicate(len(banks)))
        return m

    def _claims(self, instruction: Value) -> dict[str, Value]:
        names = dict(instruction.shape()).keys()
        return {role: instruction[role] for role in ROLES if role in names}

    def _track(self, m: Module, unit: Unit, head: Value, claims: dict[str, Value]) -> _Flying:
        """Remember what is in flight, and count who holds each bank."""
        entry = data.StructLayout(
            {"index": 32, "post": 4, "writes_acc": 1, **{role: ROLES[role] for role in claims}}
        )
        fifo = SyncFIFO(width=entry.size, depth=IN_FLIGHT[unit])
        m.submodules[f"in_flight_{unit.name.lower()}"] = fifo
        new, old = Signal(entry), Signal(entry)
        m.d.comb += [
            new.index.eq(head.index),
            new.post.eq(head.instruction.post),
            *(new[role].eq(banks) for role, banks in claims.items()),
            fifo.w_data.eq(new),
            fifo.w_en.eq(self.accept[unit]),
            old.eq(fifo.r_data),
            fifo.r_en.eq(self.done[unit]),
            self.in_flight[unit].eq(fifo.r_rdy),
            self.index[unit].eq(head.index),
        ]
        with m.If(fifo.r_rdy):
            m.d.comb += self.index[unit].eq(old.index)
        if unit is Unit.VECTOR:
            m.d.comb += new.writes_acc.eq(head.instruction.destination)
        held: dict[str, Value] = {}
        for role in claims:
            counts = []
            for bank in range(ROLES[role]):
                count = Signal(range(IN_FLIGHT[unit] + 1), name=f"{unit.name.lower()}_{role}{bank}")
                up = self.accept[unit] & claims[role][bank]
                down = self.done[unit] & old[role][bank]
                m.d.sync += count.eq(count + up - down)
                counts.append(count != 0)
            held[role] = Cat(*counts)
        return _Flying(held, old)

    def _tokens(
        self, m: Module, heads: dict[Unit, Value], flying: dict[Unit, _Flying]
    ) -> dict[Unit, Value]:
        """Count tokens and credits of each ordered pair; return whether each head may take its."""
        enough: dict[Unit, Value] = {}
        for source in Unit:
            for target in Unit:
                if source is target:
                    continue
                pair = f"{source.name.lower()}_{target.name.lower()}"
                limit = self._token_max
                count = Signal(range(limit + 1), name=f"count_{pair}")
                credit = Signal(range(limit + 1), name=f"credit_{pair}", init=limit)
                waits = heads[target].instruction.wait[source]
                will_post = heads[source].instruction.post[target]
                takes = self.accept[target] & waits
                gives = self.accept[source] & will_post
                posts = self.done[source] & flying[source].oldest.post[target]
                m.d.sync += [
                    count.eq(count + posts - takes),
                    credit.eq(credit + takes - gives),
                ]
                there, room = ~waits | (count != 0), ~will_post | (credit != 0)
                enough[target] = enough.get(target, 1) & there
                enough[source] = enough.get(source, 1) & room
        return enough

    def _hazard(self, m: Module, head: Value, ending: Value) -> Value:
        """Whether VECTOR's head reads a bank that VECTOR instructions in flight write."""
        writes = {}
        for role, field in (("act_write_banks", None), ("acc_banks", "destination")):
            counts = []
            for bank in range(ROLES[role]):
                count = Signal(
                    range(IN_FLIGHT[Unit.VECTOR] + 1), name=f"vector_writes_{role}{bank}"
                )
                up = self.accept[Unit.VECTOR] & head[role][bank]
                down = self.done[Unit.VECTOR] & ending[role][bank]
                if field:
                    up, down = up & head[field], down & ending.writes_acc
                m.d.sync += count.eq(count + up - down)
                counts.append(count != 0)
            writes[role] = Cat(*counts)
        reads_acc = head.acc_banks & head.source.replicate(4)
        return (head.act_read_banks & writes["act_write_banks"]).any() | (
            reads_acc & writes["acc_banks"]
        ).any()
