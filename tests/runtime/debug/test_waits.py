"""Why a unit does not start, from programs made by hand."""

from dataclasses import replace

import pytest

from dovetail.isa.assembly import assemble, disassemble
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Gemm, Load, Store, Vector
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.debug.moments import Event, Moment
from dovetail.runtime.debug.waits import Issue

CONFIG = replace(find_config("tiny"), token_max=2, queue_depth=4)


def after(program: str, *events: tuple[Event, int]) -> Issue:
    issue = Issue(assemble(program, CONFIG), CONFIG)
    for cycle, (event, index) in enumerate(events):
        issue.apply(Moment(cycle, event, index))
    return issue


def test_a_poster_waits_for_room_counting_tokens_under_way() -> None:
    loads = "\n".join(
        f"load memory=act sram_address={word} dram_address=0 count_x=1 post=gemm"
        for word in range(4)
    )
    begun = [*((Event.QUEUED, index) for index in range(4)), (Event.STARTED, 0)]
    # A token is under way: there is room for one more.
    assert after(loads, *begun).status(Unit.LOAD).waits_for == "1: its unit, which works on 0"
    begun.append((Event.ENDED, 0))
    assert after(loads, *begun).status(Unit.LOAD).waits_for == "1: nothing, it starts next"
    # One is given, and one under way.
    begun.append((Event.STARTED, 1))
    full = "2: GEMM to take a token: it has 2, the most there can be"
    assert after(loads, *begun).status(Unit.LOAD).waits_for == full
    begun.append((Event.ENDED, 1))
    assert after(loads, *begun).status(Unit.LOAD).waits_for == full


def test_tokens_for_other_units_take_no_room() -> None:
    loads = "\n".join(
        f"load memory=act sram_address={word} dram_address=0 count_x=1 post={unit}"
        for word, unit in enumerate(("store", "store", "gemm"))
    )
    begun = [*((Event.QUEUED, index) for index in range(3))]
    begun += [(Event.STARTED, 0), (Event.ENDED, 0), (Event.STARTED, 1)]
    waits = after(loads, *begun).status(Unit.LOAD).waits_for
    assert waits == "2: its unit, which works on 1"


def test_the_giver_of_the_next_token_is_named() -> None:
    program = """
    load memory=act sram_address=0 dram_address=0 count_x=1 post=store
    load memory=act sram_address=1 dram_address=0 count_x=1
    load memory=act sram_address=2 dram_address=0 count_x=1 post=store
    store sram_address=0 dram_address=64 count_x=1 wait=load
    store sram_address=2 dram_address=64 count_x=1 wait=load
    store sram_address=2 dram_address=64 count_x=1 wait=load
    """
    queued = [(Event.QUEUED, index) for index in range(6)]
    first = after(program, *queued)
    assert first.status(Unit.STORE).waits_for == "3: a token from LOAD, which 0 gives"
    done = [(event, 0) for event in (Event.STARTED, Event.ENDED)]
    done += [(event, 3) for event in (Event.STARTED, Event.ENDED)]
    second = after(program, *queued, *done)
    assert second.status(Unit.STORE).waits_for == "4: a token from LOAD, which 2 gives"
    for index in (1, 2, 4):
        done += [(event, index) for event in (Event.STARTED, Event.ENDED)]
    third = after(program, *queued, *done)
    assert third.status(Unit.STORE).waits_for == "5: a token from LOAD, which no instruction gives"


INSTRUCTIONS = (
    Load(memory=Memory.ACT, sram_address=0, dram_address=0, act_write_banks=2),
    Gemm(
        act_address=0,
        wgt_address=0,
        acc_address=0,
        extent=(1,) * 6,
        act_stride=(0,) * 6,
        wgt_stride=(0,) * 6,
        acc_stride=(0,) * 6,
        act_read_banks=2,
        acc_banks=4,
    ),
    Vector(
        source=Memory.ACC,
        destination=Memory.ACT,
        source_address=0,
        destination_address=0,
        extent=(1,) * 5,
        source_stride=(0,) * 5,
        destination_stride=(0,) * 4,
        act_read_banks=6,
        act_write_banks=2,
        acc_banks=4,
    ),
    Store(sram_address=0, dram_address=64, act_read_banks=2),
)
UNITS = {each.unit.name.lower(): disassemble((each,)) for each in INSTRUCTIONS}


@pytest.mark.parametrize(
    ("holder", "waiter", "banks"),
    [
        ("load", "vector", ["ACT write bank 1"]),
        ("load", "gemm", []),
        ("load", "store", []),
        ("gemm", "store", ["ACT read bank 1"]),
        ("gemm", "vector", ["ACC bank 2", "ACT read bank 1"]),
        ("vector", "load", ["ACT write bank 1"]),
        ("vector", "gemm", ["ACC bank 2", "ACT read bank 1"]),
        ("vector", "store", ["ACT read bank 1"]),
        ("store", "gemm", ["ACT read bank 1"]),
        ("store", "load", []),
    ],
)
def test_a_bank_is_waited_for_while_another_unit_holds_it_in_the_same_role(
    holder: str, waiter: str, banks: list[str]
) -> None:
    program = "\n".join((UNITS[holder], UNITS[waiter]))
    begun = [(Event.QUEUED, 0), (Event.QUEUED, 1), (Event.STARTED, 0)]
    found = after(program, *begun).status(Unit[waiter.upper()]).waits_for
    held = [f"{bank}, which {holder.upper()} 0 holds" for bank in banks]
    why = sorted(found.removeprefix("1: ").split(" and "))
    assert why == (held or ["nothing, it starts next"])
    ended = after(program, *begun, (Event.ENDED, 0)).status(Unit[waiter.upper()])
    assert ended.waits_for == "1: nothing, it starts next"


def test_of_two_units_one_may_go_on_with_other_banks() -> None:
    other = UNITS["store"].replace("0x2", "0x4")
    begun = [(Event.QUEUED, 0), (Event.QUEUED, 1), (Event.STARTED, 0)]
    found = after("\n".join((UNITS["gemm"], other)), *begun).status(Unit.STORE)
    assert found.waits_for == "1: nothing, it starts next"
    assert (found.working, found.queue) == ((), (1,))


def test_a_unit_without_a_queue_waits_for_what_is_before_in_the_program() -> None:
    program = "\n".join((*[UNITS["load"]] * 5, UNITS["store"]))
    begun = [(Event.QUEUED, index) for index in range(3)]
    assert after(program, *begun).status(Unit.STORE).waits_for == "5: to be fetched"
    assert after(program, *begun).status(Unit.GEMM).waits_for == "no more instructions"
    begun.append((Event.QUEUED, 3))
    full = "5: room in the queue of LOAD, for 4 before it"
    assert after(program, *begun).status(Unit.STORE).waits_for == full
    begun.append((Event.STARTED, 0))
    assert after(program, *begun).status(Unit.STORE).waits_for == "5: to be fetched"
