"""Walkers: addresses of loop nests and of blocks, in the documented order."""

from types import ModuleType

from amaranth.hdl import Cat, Mux, Signal, Value

from dovetail.isa.config import HardwareConfig

from .bench import Bench

LEVELS = 6
EXTENT_BITS = 12


def nest(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """Each iteration once, level 0 fastest, at ``base + sum(index * stride)``.

    A product is the stride added as often as the index was raised.
    """
    bench = Bench(strengthen)
    cycles = config.vector_cycles
    walker = bench.add(source.NestWalker(LEVELS, EXTENT_BITS, ("place",), cycles))
    port, m = walker.component, bench.module
    for level in range(LEVELS):
        bench.assume(~port.start | (port.extents[level] != 0))
    bench.assume(~port.start | ~port.valid | port.last)
    levels = range(LEVELS)
    extent = [Signal(EXTENT_BITS, name=f"extent{level}") for level in levels]
    stride = [Signal(16, name=f"stride{level}") for level in levels]
    index = [Signal(EXTENT_BITS, name=f"index{level}") for level in levels]
    moved = [Signal(16, name=f"moved{level}") for level in levels]
    base, visiting, turn = Signal(16), Signal(), Signal(range(cycles))
    at_end = [index[level] + 1 == extent[level] for level in levels]
    over = Cat(*at_end).all()
    with m.If(port.start):
        m.d.sync += [base.eq(port.place_base), visiting.eq(1), turn.eq(0)]
        for level in levels:
            m.d.sync += [
                extent[level].eq(port.extents[level]),
                stride[level].eq(port.place_strides[level]),
                index[level].eq(0),
                moved[level].eq(0),
            ]
    with m.Elif(visiting & (turn != cycles - 1)):
        m.d.sync += turn.eq(turn + 1)
    with m.Elif(visiting):
        m.d.sync += [turn.eq(0), visiting.eq(~over)]
        lower: Value = Cat(1)
        for level in levels:
            with m.If(lower.all() & at_end[level]):
                m.d.sync += [index[level].eq(0), moved[level].eq(0)]
            with m.Elif(lower.all()):
                m.d.sync += [
                    index[level].eq(index[level] + 1),
                    moved[level].eq(moved[level] + stride[level]),
                ]
            lower = Cat(lower, at_end[level])
    last_turn = turn == cycles - 1
    place = (base + sum(moved, Value.cast(0)))[:16]
    bench.check(port.valid == visiting, "as many iterations as there are")
    bench.check(~visiting | (port.place == place), "the address")
    bench.check(~visiting | (port.index_odd == index[0][0]), "whether level 0 is odd")
    bench.check(port.last == (visiting & over & last_turn), "the last one")
    bench.check(~visiting | (port.turn == (1 << turn)[:cycles]), "the cycle of the iteration")
    for level in levels:
        zero, end = port.index_zero[level], port.index_last[level]
        bench.check(~visiting | (zero == (index[level] == 0)), "whether an index is 0")
        bench.check(~visiting | (end == at_end[level]), "whether an index is its last")
        left, steps = walker[f"left{level}"], walker[f"steps{level}"]
        bench.lemma(~visiting | (steps == extent[level] - 1), "steps of a level")
        bench.lemma(~visiting | (left == extent[level] - 1 - index[level]), "steps left")
        bench.lemma(~visiting | (index[level] < extent[level]), "indices are in their extents")
        higher = (base + sum(moved[level:], Value.cast(0)))[:16]
        bench.lemma(~visiting | (walker[f"place_begin{level}"] == higher), "where a level is")
        bench.lemma(~visiting | (walker[f"place_stride{level}"] == stride[level]), "its stride")
    if cycles > 1:
        begin, step = walker[f"place_begin{LEVELS - 1}"], walker[f"place_stride{LEVELS - 1}"]
        for level in reversed(levels[:-1]):
            begin = Mux(at_end[level], begin, walker[f"place_begin{level}"])
            step = Mux(at_end[level], step, walker[f"place_stride{level}"])
        chosen = (walker["place_chosen_begin"] == begin) & (walker["place_chosen_stride"] == step)
        bench.lemma(~visiting | (turn == 0) | chosen, "the choice is of this iteration")
        for level in levels:
            moves = last_turn & Cat(1, *at_end[:level]).all()
            bench.lemma(~visiting | (walker[f"moves{level}"] == moves), "what moves")
    bench.cover(port.last & (index[0] == 1) & (index[1] == 1) & (index[2] == 1))
    return bench


def block(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """The cells of a block, x fastest, at ``address + z * stride_z + y * stride_y + x * stride_x``;
    each is current until a ``step``.
    """
    bench = Bench(strengthen)
    walker = bench.add(source.BlockWalker())
    port, m = walker.component, bench.module
    names = ("x", "y", "z")
    for name in names:
        bench.assume(~port.start | (getattr(port, f"count_{name}") != 0))
    count = {name: Signal(13, name=f"count_{name}") for name in names}
    stride = {name: Signal(16, name=f"stride_{name}") for name in names}
    index = {name: Signal(13, name=f"index_{name}") for name in names}
    moved = {name: Signal(16, name=f"moved_{name}") for name in names}
    at_end = {name: index[name] + 1 == count[name] for name in names}
    base, visiting = Signal(16), Signal()
    with m.If(port.start):
        m.d.sync += [base.eq(port.address), visiting.eq(1)]
        for name in names:
            m.d.sync += [
                count[name].eq(getattr(port, f"count_{name}")),
                stride[name].eq(getattr(port, f"stride_{name}")),
                index[name].eq(0),
                moved[name].eq(0),
            ]
    with m.Elif(visiting & port.step):
        m.d.sync += visiting.eq(~Cat(*at_end.values()).all())
        lower: Value = Cat(1)
        for name in names:
            with m.If(lower.all() & at_end[name]):
                m.d.sync += [index[name].eq(0), moved[name].eq(0)]
            with m.Elif(lower.all()):
                m.d.sync += [index[name].eq(index[name] + 1)]
                m.d.sync += moved[name].eq(moved[name] + stride[name])
            lower = Cat(lower, at_end[name])
    now = ~visiting
    bench.check(now | (port.cell == (base + sum(moved.values(), Value.cast(0)))[:16]), "the cell")
    bench.check(now | ((port.x == index["x"]) & (port.y == index["y"])), "its indices")
    bench.check(now | (port.last == Cat(*at_end.values()).all()), "whether it is the last")
    for name in ("x", "y"):
        bench.lemma(now | (walker[f"left_{name}"] == count[name] - 1 - index[name]), "left")
        bench.lemma(now | (walker[f"whole_{name}"] == count[name] - 1), "whole")
        bench.lemma(now | (walker[f"only_{name}"] == (count[name] == 1)), "only")
        bench.lemma(now | (walker[f"last_{name}"] == at_end[name]), "last")
    for name in names:
        bench.lemma(now | (index[name] < count[name]), "indices are below their counts")
    plane = (base + moved["z"])[:16]
    for name, value in {
        "$signal": (plane + moved["y"])[:16],
        "plane": plane,
        "$signal#2": stride["x"],
        "$signal#3": stride["y"],
        "stride_z": stride["z"],
        "left_z": (count["z"] - index["z"])[:12],
        "end_z": at_end["z"],
    }.items():
        bench.lemma(now | (walker[name] == value), name)
    bench.lemma(now | (count["z"] < 1 << 12), "count_z has 12 bits")
    bench.cover(port.last & (index["x"] == 1) & (index["y"] == 2) & (index["z"] == 1))
    return bench
