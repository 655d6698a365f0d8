"""STORE's writes on AXI: beats as announced, steady, and none that changes memory after a stop."""

from types import ModuleType

from amaranth.hdl import Cat, Mux, Signal, Value

from dovetail.isa.config import HardwareConfig

from .bench import Bench, Opened

SLOTS = 16
ROOM = [f"$signal#{number}" for number in range(2, 9)]
"""Names that ``room`` may have; it alone begins as 1."""


def beats(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """On W: a beat on offer stays as it is; each burst taken gets as many beats as announced, the
    last one marked; a beat first offered after a stop changes nothing.
    """
    bench = Bench(strengthen)
    store = bench.add(source.Store(config))
    port, m = store.component, bench.module
    enable = bench.before(port.enable, "enabled", init=1)
    bench.assume(~port.enable | enable)
    # The port takes only what is offered, and nothing once the run is stopped.
    bench.assume(~port.bursts.ready | (port.bursts.valid & port.enable))

    beats = port.bursts.payload.beats
    bench.assume(~port.bursts.valid | ((beats != 0) & (beats <= 256)))

    # Beats that are owed: announced and not yet sent; bursts begin one after the other.
    owed = [Signal(9, name=f"owed{place}") for place in range(SLOTS)]
    count, sent = Signal(range(SLOTS + 1)), Signal(9)
    takes, sends = port.bursts.ready, port.beat_valid & port.beat_ready
    ends = sends & (sent == owed[0] - 1)
    after = count - ends
    for place in range(SLOTS - 1):
        kept = Mux(ends, owed[place + 1], owed[place])
        new = takes & (after == place)
        m.d.sync += owed[place].eq(Mux(new, port.bursts.payload.beats, kept))
    m.d.sync += [count.eq(after + takes), sent.eq(Mux(ends, 0, sent + sends))]
    bench.check(port.beat_valid == (count != 0), "beats are offered while some are owed")
    last = sent == owed[0] - 1
    bench.check(~port.beat_valid | (port.last == last), "the last beat is marked")

    waits = bench.before(port.beat_valid & ~port.beat_ready, "waits")
    beside = Cat(port.last, port.writes)
    steady = beside == bench.before(beside, "beside")
    bench.check(~waits | (port.beat_valid & steady), "a beat on offer stays")
    first = port.beat_valid & ~waits
    bench.check(~first | (port.writes == port.enable), "no byte after a stop")
    bench.cover(port.beat_valid & (count == 2) & port.last & ~port.writes)

    # The queue of bursts taken is the list of what is owed.
    depth = config.store_slots
    read = store["taken.read__addr"]
    words = next(each for each in store.words if len(each[0]) == 9)
    bench.lemma(count <= depth, "no more than there are slots")
    bench.lemma((store["taken.held"] == count) & (store["taken.valid"] == (count != 0)), "held")
    bench.lemma(store["taken.$signal#2"] == (count > 1), "behind the head")
    bench.lemma(store["taken.room"] == (count < depth), "room")
    bench.lemma((count == 0) | (store["taken.head"] == owed[0] - 1), "the head")
    behind = Mux(count == 0, 0, count - 1)
    distance = (store["taken.$signature__addr"] - read)[: len(read)]
    bench.lemma(distance == behind[: len(read)], "the ring")
    for place in range(1, depth):
        at, word = (read + place - 1)[: len(read)], Signal(9, name=f"at{place}")
        with m.Switch(at):
            for number, each in enumerate(words):
                with m.Case(number):
                    m.d.comb += word.eq(each)
        bench.lemma((count <= place) | (word == owed[place] - 1), "the ring's words")
    bench.lemma(store["sent"] == sent, "beats sent")
    bench.lemma((count == 0) | (sent < owed[0]) | (owed[0] == 0), "beats left")
    bench.lemma((count != 0) | (sent == 0), "none sent of none")
    bench.lemma(store["kept"] == (waits & bench.before(port.writes, "wrote")), "what is kept")
    _slots(bench, store, count, depth)
    return bench


def _slots(bench: Bench, store: Opened, count: Value, depth: int) -> None:
    """A slot is filling, filled, waiting, or being sent."""
    waiting, filled = store["full.held"], store["filled"]
    bench.lemma(store["full.valid"] == (waiting != 0), "some are waiting")
    bench.lemma(store["full.$signal#2"] == (waiting > 1), "behind the head")
    bench.lemma(store["full.room"] == (waiting < depth), "room for those that wait")
    going = sum(filled, Value.cast(0)) + store["inside"]
    used = store["used"]
    bench.lemma(used == waiting + count + going, "every slot is somewhere")
    bench.lemma(used <= depth, "no more slots than there are")
    room = next(store[name] for name in ROOM if name in store and store[name].init == 1)
    bench.lemma(room == (used != depth), "whether a slot is free")
