"""Why a unit does not start, from programs made by hand."""

from dataclasses import replace

from dovetail.isa.assembly import assemble
from dovetail.isa.configs import find_config
from dovetail.isa.memories import Unit
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
