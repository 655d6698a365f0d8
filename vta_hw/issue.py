"""Deciding which instructions start: tokens, memory banks, and what is in flight.

The rules are those of docs/timing.md, "Accepting an instruction".  All that a choice depends on is
in registers, flags of counters included, and the units decide at the same time: only one bit a
unit, whether it is accepted, passes from one to the next.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Finish, Fold, Row
from dovetail.isa.latency import compute_latency, pipeline_stages
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.priorities import ACCEPTING

from . import layouts
from .head_queue import HeadQueue
from .pipeline import delayed
from .ports import UnitControl

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

ROLES = {"act_read_banks": 8, "act_write_banks": 8, "acc_banks": 4, "par": 1}
"""Resources that a unit can hold, and how many banks each has at most.  Writers hold PAR, where
there are two such units.
"""


@frozen
class _Flying:
    """Instructions that a unit has in flight.

    held: by role, whether each bank is held (registers).  oldest: the entry that ends next.
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
        self._token_max, self._rows = config.token_max, config.row_parameters
        self._accept = pipeline_stages(config).accept
        assert self._accept in (0, 2)
        # Room for the instructions in flight: one accepted a cycle, until its end.
        latency = compute_latency(config)
        self._in_flight = {unit: latency.get(unit, 0) + 2 for unit in Unit}
        if config.two_loads:
            # One that ends, one whose data arrives, and the one accepted meanwhile.
            self._in_flight[Unit.LOAD] = 3
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
        claims = {unit: self._claims(unit, heads[unit].instruction) for unit in Unit}
        flying = {unit: self._track(m, unit, heads[unit], claims[unit]) for unit in Unit}
        tokens = self._tokens(m, heads, flying)
        hazard = self._hazard(m, heads[Unit.VECTOR].instruction, flying[Unit.VECTOR].oldest)
        # Ready except for the other units' choice in this cycle, all units side by side.
        ready: dict[Unit, Value] = {}
        for unit in ACCEPTING:
            control = controls[unit]
            blocked: Value = hazard if unit is Unit.VECTOR else Const(0)
            for other in Unit:
                if other is not unit:
                    blocked = blocked | _overlap(claims[unit], flying[other].held)
            could = self.enable & self.head_valid[unit] & control.free
            permitted = could & tokens[unit]
            ready[unit] = Signal(name=f"ready_{unit.name.lower()}")
            m.d.comb += [
                ready[unit].eq(permitted & ~blocked),
                self.stall_token[unit].eq(could & ~tokens[unit]),
                self.stall_port[unit].eq(permitted & ~self.accept[unit]),
                control.start.eq(self.accept[unit]),
                control.instruction.eq(heads[unit].instruction),
                self.done[unit].eq(control.done),
                self.busy[unit].eq(control.busy),
            ]
        self._choose(m, ready, claims)
        return m

    def _choose(
        self, m: Module, ready: dict[Unit, Value], claims: dict[Unit, dict[str, Value]]
    ) -> None:
        """Accept what is ready, except for banks that a unit of higher priority claims with it.

        In a deep pipeline it is known a cycle later what was ready, another one later what of it is
        accepted.  What was found out in or before a cycle in which something starts is void.
        """
        chosen, starting = Signal(len(Unit)), Signal(len(Unit))
        deep = self._accept > 0
        if deep:
            m.d.sync += starting.eq(Mux(starting.any(), 0, chosen))
            m.d.comb += self.accept.eq(Mux(self.enable, starting, 0))
        else:
            m.d.comb += self.accept.eq(chosen)

        def known(value: Value, name: str) -> Value:
            return delayed(m, value, name, reset=True) if deep else value

        was_ready = {unit: known(ready[unit] & ~starting.any(), unit.name) for unit in Unit}
        for place, unit in enumerate(ACCEPTING):
            claimed: Value = Const(0)
            for higher in ACCEPTING[:place]:
                if claims[unit].keys() & claims[higher].keys():
                    name = f"{unit.name.lower()}_against_{higher.name.lower()}"
                    overlap = known(_overlap(claims[unit], claims[higher]), name)
                    claimed = claimed | (overlap & chosen[higher])
            m.d.comb += chosen[unit].eq(was_ready[unit] & ~claimed)

    def _claims(self, unit: Unit, instruction: Value) -> dict[str, Value]:
        names = dict(instruction.shape()).keys()
        claims = {role: instruction[role] for role in ROLES if role in names}
        if self._rows and unit is Unit.LOAD:
            claims["par"] = Value.cast(instruction.memory == Memory.PAR.code)
        if self._rows and unit is Unit.VECTOR:
            claims["par"] = instruction.row.any()
        return claims

    def _track(self, m: Module, unit: Unit, head: Value, claims: dict[str, Value]) -> _Flying:
        """Remember what is in flight, and count who holds each bank."""
        entry = data.StructLayout(
            {"index": 32, "post": 4, "writes_acc": 1, **{role: ROLES[role] for role in claims}}
        )
        fifo = HeadQueue(entry.size, self._in_flight[unit])
        m.submodules[f"in_flight_{unit.name.lower()}"] = fifo
        new, old = Signal(entry), Signal(entry)
        m.d.comb += [
            new.index.eq(head.index),
            new.post.eq(head.instruction.post),
            *(new[role].eq(banks) for role, banks in claims.items()),
            fifo.push_data.eq(new),
            fifo.push.eq(self.accept[unit]),
            old.eq(fifo.head),
            fifo.pop.eq(self.done[unit]),
            self.in_flight[unit].eq(fifo.valid),
            self.index[unit].eq(head.index),
        ]
        with m.If(fifo.valid):
            m.d.comb += self.index[unit].eq(old.index)
        if unit is Unit.VECTOR:
            m.d.comb += new.writes_acc.eq(head.instruction.destination)
        held: dict[str, Value] = {}
        for role in claims:
            counts = []
            for bank in range(ROLES[role]):
                up = self.accept[unit] & claims[role][bank]
                down = self.done[unit] & old[role][bank]
                name = f"{unit.name.lower()}_{role}{bank}"
                counts.append(_count(m, name, self._in_flight[unit], up, down))
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
                waits = heads[target].instruction.wait[source]
                will_post = heads[source].instruction.post[target]
                takes = self.accept[target] & waits
                gives = self.accept[source] & will_post
                posts = self.done[source] & flying[source].oldest.post[target]
                count = _count(m, f"count_{pair}", limit, posts, takes)
                credit = _count(m, f"credit_{pair}", limit, takes, gives, init=limit)
                enough[target] = enough.get(target, 1) & (~waits | count)
                enough[source] = enough.get(source, 1) & (~will_post | credit)
        return enough

    def _hazard(self, m: Module, head: Value, ending: Value) -> Value:
        """True if VECTOR's head reads a bank that VECTOR instructions in flight write."""
        writes = {}
        for role, field in (("act_write_banks", None), ("acc_banks", "destination")):
            counts = []
            for bank in range(ROLES[role]):
                up = self.accept[Unit.VECTOR] & head[role][bank]
                down = self.done[Unit.VECTOR] & ending[role][bank]
                if field:
                    up, down = up & head[field], down & ending.writes_acc
                name = f"vector_writes_{role}{bank}"
                counts.append(_count(m, name, self._in_flight[Unit.VECTOR], up, down))
            writes[role] = Cat(*counts)
        reads_acc = head.acc_banks & head.source.replicate(4)
        reads_row: Value = Const(0)
        if self._rows:
            up = self.accept[Unit.VECTOR] & head.row.any()
            down = self.done[Unit.VECTOR] & ending.par
            writes_par = _count(m, "vector_writes_par", self._in_flight[Unit.VECTOR], up, down)
            requantizes = (head.finish == Finish.REQUANTIZE) & (head.row == Row.NONE)
            largest = (head.row == Row.LESS) & (head.fold == Fold.MAX)
            reads_row = (requantizes | (head.row.any() & ~largest)) & writes_par
        return (
            reads_row
            | (head.act_read_banks & writes["act_write_banks"]).any()
            | (reads_acc & writes["acc_banks"]).any()
        )


def _overlap(claims: dict[str, Value], others: dict[str, Value]) -> Value:
    """True if a bank is in both."""
    return Cat(*(claims[role] & others[role] for role in claims if role in others)).any()


def _count(m: Module, name: str, most: int, up: Value, down: Value, *, init: int = 0) -> Signal:
    """Count ``up`` and ``down``, from ``init``, never below 0 nor above ``most``; return a register
    that says whether the count is above 0.
    """
    count = Signal(range(most + 1), name=name, init=init)
    some = Signal(name=f"{name}_some", init=init > 0)
    m.d.sync += count.eq(count + up - down)
    m.d.sync += some.eq(up | (count > 1) | ((count == 1) & ~down))
    return some
