"""Deciding what starts: tokens are never lost, taken twice or too many; no bank has two owners."""

from types import ModuleType

from amaranth.hdl import Cat, Signal, Value
from amaranth.lib import data

from dovetail.isa.config import HardwareConfig
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Unit
from dovetail.isa.priorities import ACCEPTING

from .bench import Bench, Opened

ROLES = {
    "act_read_banks": (Unit.GEMM, Unit.VECTOR, Unit.STORE),
    "act_write_banks": (Unit.LOAD, Unit.VECTOR),
    "acc_banks": (Unit.LOAD, Unit.GEMM, Unit.VECTOR),
    "par": (Unit.LOAD, Unit.VECTOR),
}
"""Who claims what, as docs/timing.md has it; PAR with ``row_parameters``."""
ROLE_BITS = {"act_read_banks": 8, "act_write_banks": 8, "acc_banks": 4, "par": 1}
PAR = 3
REQUANTIZE = 1
LESS = 1
MAX = 2
BITS = 8
"""Enough to count what is in flight."""


def _roles(config: HardwareConfig) -> dict[str, tuple[Unit, ...]]:
    return {role: units for role, units in ROLES.items() if role != "par" or config.row_parameters}


def _claim(head: Value, unit: Unit, role: str) -> Value:
    """The bits of what an instruction claims."""
    if role != "par":
        return head[role]
    claims = head.row != 0 if unit is Unit.VECTOR else head.memory == PAR
    return Value.cast(claims)


def _bench(
    source: ModuleType, config: HardwareConfig, strengthen: bool
) -> tuple[Bench, Opened, dict[Unit, Value]]:
    """Units that keep their word: they end what they began, in order, and stay free until they are
    given something; the head of a queue stays until it is accepted.  Whether LOAD is free may
    depend on the head.

    Also the entry of each unit's oldest instruction in flight.
    """
    bench = Bench(strengthen)
    issue = bench.add(source.Issue(config))
    port = issue.component
    enable = bench.before(port.enable, "enabled", init=1)
    bench.assume(~port.enable | enable)
    oldest = {}
    for unit in Unit:
        name = unit.name.lower()
        control, head = getattr(port, f"control_{name}"), getattr(port, f"head_{name}")
        roles = {role: ROLE_BITS[role] for role, units in _roles(config).items() if unit in units}
        layout = data.StructLayout({"index": 32, "post": 4, "writes_acc": 1, **roles})
        oldest[unit] = data.View(layout, issue[f"$signal#{2 * unit + 2}"])
        waits = port.head_valid[unit] & ~port.accept[unit]
        waited = bench.before(waits, f"{name}_waited")
        was = bench.before(head.as_value(), f"{name}_was")
        bench.assume(~waited | (port.head_valid[unit] & (head.as_value() == was)))
        free = control.free & ~port.accept[unit]
        if unit is Unit.LOAD and config.two_loads:
            free = free & port.head_valid[unit]
        idle = bench.before(free, f"{name}_idle")
        bench.assume(~idle | control.free)
        bench.assume(~control.done | port.in_flight[unit])
        bench.assume(~port.accept[unit] | issue[f"in_flight_{name}.room"])
        starts = control.start == port.accept[unit]
        bench.check(starts & (port.done[unit] == control.done), "as the unit sees it")
        could = port.head_valid[unit] & control.free & port.enable
        bench.check(~port.accept[unit] | could, "only what can start does")
    return bench, issue, oldest


def _in_flight(bench: Bench, name: str, begins: Value, ends: Value, most: int) -> Signal:
    """How many that ``begins`` have not ended yet.

    What the queue of instructions in flight gives back was put in: proof "queue"; and units take no
    more than it holds.
    """
    count = Signal(BITS, name=f"flying_{name}")
    bench.module.d.sync += count.eq(count + begins - ends)
    bench.assume((~ends | (count != 0)) & (count <= most))
    return count


def rules(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """Starting instructions have their tokens and their banks."""
    bench, issue, oldest = _bench(source, config, strengthen)
    latency = compute_latency(config)
    most = {unit: latency.get(unit, 0) + 2 for unit in Unit}
    if config.two_loads:
        most[Unit.LOAD] = 3
    _tokens(bench, issue, oldest, config, most)
    _banks(bench, issue, oldest, config, most)
    _hazards(bench, issue, oldest[Unit.VECTOR], config, most[Unit.VECTOR])
    if config.deep_pipelines:
        _decided(bench, issue, config)
    return bench


def _tokens(
    bench: Bench,
    issue: Opened,
    oldest: dict[Unit, Value],
    config: HardwareConfig,
    most: dict[Unit, int],
) -> None:
    """For each pair of units: a wait takes a token that there is; tokens there are and tokens to
    come never exceed ``token_max``.
    """
    port, m = issue.component, bench.module
    full = Signal()
    for giver in Unit:
        for taker in Unit:
            if giver is taker:
                continue
            pair = f"{giver.name.lower()}_{taker.name.lower()}"
            heads = [getattr(port, f"head_{unit.name.lower()}") for unit in (giver, taker)]
            promised = port.accept[giver] & heads[0].instruction.post[taker]
            given = port.done[giver] & oldest[giver].post[taker]
            taken = port.accept[taker] & heads[1].instruction.wait[giver]
            flying = _in_flight(bench, pair, promised, given, most[giver])
            there = Signal(BITS, name=f"tokens_{pair}")
            m.d.sync += there.eq(there + given - taken)
            bench.check(~taken | (there != 0), "a wait takes what is there")
            bench.check(there + flying <= config.token_max, "no more than token_max")
            count, credit = issue[f"count_{pair}"], issue[f"credit_{pair}"]
            bench.lemma(count == there, "the counter")
            bench.lemma(there + flying + credit == config.token_max, "count, credit, in flight")
            bench.lemma(issue[f"count_{pair}_some"] == (count != 0), "whether there is one")
            bench.lemma(issue[f"credit_{pair}_some"] == (credit != 0), "whether there is room")
            if (giver, taker) == (Unit.LOAD, Unit.GEMM):
                m.d.sync += full.eq(full | (there == config.token_max))
                bench.cover(full & taken & given)


def _banks(
    bench: Bench,
    issue: Opened,
    oldest: dict[Unit, Value],
    config: HardwareConfig,
    most: dict[Unit, int],
) -> None:
    """No bank is held by two units in one role."""
    port = issue.component
    for role, units in _roles(config).items():
        for bank in range(ROLE_BITS[role]):
            holders = []
            for unit in units:
                name = unit.name.lower()
                head = getattr(port, f"head_{name}").instruction
                begins = port.accept[unit] & _claim(head, unit, role)[bank]
                ends = port.done[unit] & Value.cast(oldest[unit][role])[bank]
                flying = _in_flight(bench, f"{name}_{role}{bank}", begins, ends, most[unit])
                holders.append(flying != 0)
                own = f"{name}_{role}{bank}"
                count, some = issue[own], issue[f"{own}_some"]
                bench.lemma((count == flying) & (some == (flying != 0)), "held")
            for number, one in enumerate(holders):
                for other in holders[:number]:
                    bench.check(~(one & other), "one owner")
            if bank == 0:
                passed = Signal(name=f"passed_{role}")
                bench.module.d.sync += passed.eq(passed | holders[1])
                bench.cover(holders[0] & passed)


def _hazards(bench: Bench, issue: Opened, ending: Value, config: HardwareConfig, most: int) -> None:
    """VECTOR reads no bank that it is still to write."""
    port = issue.component
    head = port.head_vector.instruction
    accepted, done = port.accept[Unit.VECTOR], port.done[Unit.VECTOR]
    for bank in range(ROLE_BITS["act_write_banks"]):
        writes = accepted & head.act_write_banks[bank]
        flying = _in_flight(bench, f"act{bank}", writes, done & ending.act_write_banks[bank], most)
        bench.check(~(accepted & head.act_read_banks[bank] & (flying != 0)), "no word to come")
        _counted(bench, issue, f"vector_writes_act_write_banks{bank}", flying)
    for bank in range(ROLE_BITS["acc_banks"]):
        writes = accepted & head.acc_banks[bank] & head.destination
        ends = done & ending.acc_banks[bank] & ending.writes_acc
        flying = _in_flight(bench, f"acc{bank}", writes, ends, most)
        reads = accepted & head.acc_banks[bank] & head.source
        bench.check(~(reads & (flying != 0)), "no word to come")
        _counted(bench, issue, f"vector_writes_acc_banks{bank}", flying)
    if config.row_parameters:
        writes = accepted & (head.row != 0)
        flying = _in_flight(bench, "par", writes, done & ending.par, most)
        requantizes = (head.finish == REQUANTIZE) & (head.row == 0)
        reads = accepted & (
            requantizes | ((head.row != 0) & ~((head.row == LESS) & (head.fold == MAX)))
        )
        bench.check(~(reads & (flying != 0)), "no parameter to come")
        _counted(bench, issue, "vector_writes_par", flying)


def _counted(bench: Bench, issue: Opened, name: str, flying: Signal) -> None:
    bench.lemma((issue[name] == flying) & (issue[f"{name}_some"] == (flying != 0)), "written")


def _decided(bench: Bench, issue: Opened, config: HardwareConfig) -> None:
    """In a deep pipeline what was found out in the cycles before is still so."""
    port = issue.component
    starting = issue["$signal#10"]
    void = starting.any()
    for place, unit in enumerate(ACCEPTING):
        name = unit.name.lower()
        ready, was = issue[f"ready_{name}"], issue[unit.name]
        bench.lemma(~starting[unit] | ready | ~port.enable, "what starts is ready")
        bench.lemma(void | ~was | ready | ~port.enable, "what was ready is")
        for higher in ACCEPTING[:place]:
            roles = _roles(config)
            shared = [role for role, units in roles.items() if {unit, higher} <= set(units)]
            if not shared:
                continue
            masks = [
                _claim(getattr(port, f"head_{each.name.lower()}").instruction, each, role)
                for role in shared
                for each in (unit, higher)
            ]
            overlap = Cat(*(a & b for a, b in zip(masks[::2], masks[1::2], strict=True))).any()
            both = starting[unit] & starting[higher]
            bench.lemma(~both | ~overlap, "what starts together shares nothing")
            against = issue[f"{name}_against_{higher.name.lower()}"]
            known = was & issue[higher.name]
            bench.lemma(void | ~known | (against == overlap), "what they share")
