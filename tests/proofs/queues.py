"""Queues: ``HeadQueue`` against a list of what is in it."""

from types import ModuleType

from amaranth.hdl import Mux, Signal

from dovetail.isa.config import HardwareConfig

from .bench import Bench

WIDTH = 4


def head_queue(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """The queue holds what was pushed and not popped, in order, and says so."""
    bench = Bench(strengthen)
    depth = config.queue_depth
    queue = bench.add(source.HeadQueue(WIDTH, depth))
    port = queue.component
    m = bench.module
    # What is in it, the oldest first: the definition of a queue.
    held = [Signal(WIDTH, name=f"model{place}") for place in range(depth + 1)]
    count = Signal(range(depth + 2))
    pushes = port.push & (count < depth)
    pops = port.pop & (count > 0)
    after_pop = count - pops
    for place in range(depth):
        kept = Mux(pops, held[place + 1], held[place])
        m.d.sync += held[place].eq(Mux(pushes & (after_pop == place), port.push_data, kept))
    m.d.sync += count.eq(after_pop + pushes)
    bench.check(port.room == (count < depth), "room says whether fewer than its depth are held")
    bench.check(port.valid == (count > 0), "valid says whether something is held")
    bench.check(~port.valid | (port.head == held[0]), "the head is the oldest")
    read, write = queue["read__addr"], queue["$signature__addr"]
    bench.lemma(queue["held"] == count, "held")
    bench.lemma(count <= depth, "no overflow")
    bench.lemma(queue["$signal#2"] == (count > 1), "stored")
    behind = Mux(count > 0, count - 1, 0)
    bench.lemma((write - read)[: len(write)] == behind[: len(write)], "ring")
    for place in range(depth - 1):
        words = queue.words[0]
        at = (read + place)[: len(read)]
        word = Signal(WIDTH, name=f"at{place}")
        with m.Switch(at):
            for number, each in enumerate(words):
                with m.Case(number):
                    m.d.comb += word.eq(each)
        bench.lemma((behind <= place) | (word == held[place + 1]), f"place {place}")
    full = Signal()
    m.d.sync += full.eq(full | (count == depth))
    bench.cover(full & (count == 0) & (port.head != 0))
    return bench
