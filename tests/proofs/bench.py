"""A bench for proofs: components with free inputs, and what is assumed and checked about them."""

from typing import Any

from amaranth.hdl import Assert, Assume, ClockDomain, Const, Cover, Fragment, Module, Signal, Value
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import memory, wiring

__all__ = ["ANY_START", "Bench", "Opened"]

ANY_START = "any_start"
"""Attribute of registers without a reset: they hold anything at the start."""


class Peeking:
    """A platform whose memories have a port for each word, so that invariants can speak of them."""

    def __init__(self) -> None:
        self.words: list[list[Signal]] = []

    def get_memory(self, storage: memory.Memory) -> MemoryInstance:
        """The memory as Amaranth would make it, and its words."""
        instance = MemoryInstance(data=storage._data, attrs=storage.attrs)
        writes = {
            port: instance.write_port(
                domain=port.domain, addr=port.addr, data=port.data, en=port.en
            )
            for port in storage._write_ports
        }
        for port in storage._read_ports:
            instance.read_port(
                domain=port.domain,
                data=port.data,
                addr=port.addr,
                en=port.en,
                transparent_for=tuple(writes[each] for each in port.transparent_for),
            )
        words = [Signal(storage.shape, name=f"word{place}") for place in range(storage.depth)]
        bits = (storage.depth - 1).bit_length()
        for place, word in enumerate(words):
            instance.read_port(
                domain="comb",
                data=word,
                addr=Const(place, bits),
                en=Const(1),
                transparent_for=(),
            )
        self.words.append(words)
        return instance


class Opened:
    """A component, elaborated, whose inner registers can be named in invariants.

    words: of each of its memories, in the order of elaboration.
    """

    def __init__(self, component: wiring.Component) -> None:
        platform = Peeking()
        self.component = component
        self.fragment = _elaborated(component, platform)
        self.words = platform.words
        self._signals: dict[str, Signal] = {}
        self._collect(self.fragment, "")

    def __getitem__(self, name: str) -> Any:
        """The register or wire ``name``, with the names of submodules in front: "rest.held"; the
        second of a name is "name#2", in the order of the assignments.
        """
        if name not in self._signals:
            near = [each for each in self._signals if name[:4] in each][:40]
            raise KeyError(f"{name}; there are: {', '.join(near)}")
        return self._signals[name]

    def __contains__(self, name: str) -> bool:
        return name in self._signals

    def _collect(self, fragment: Fragment, path: str) -> None:
        driven = (
            signal
            for statements in fragment.statements.values()
            for statement in statements
            for signal in statement._lhs_signals()
        )
        seen: list[Signal] = []
        for signal in driven:
            if any(signal is each for each in seen):
                continue
            seen.append(signal)
            number = sum(each.name == signal.name for each in seen)
            self._signals[f"{path}{signal.name}" + (f"#{number}" if number > 1 else "")] = signal
            if signal.reset_less:
                signal.attrs[ANY_START] = 1
        for inner, name, _ in fragment.subfragments:
            self._collect(inner, f"{path}{name}.")


def _elaborated(component: Any, platform: Peeking) -> Fragment:
    """The fragment of ``component``, all of it elaborated."""
    fragment = Fragment.get(component, platform)
    fragment.subfragments = [
        (_elaborated(inner, platform), name, place) for inner, name, place in fragment.subfragments
    ]
    return fragment


class Bench:
    """The subject of a proof.

    strengthen: whether ``lemma`` adds anything: a lemma is proved with the property, and lets the
    induction go through; planted bugs are to be found without.
    """

    def __init__(self, strengthen: bool = True) -> None:
        self.module = Module()
        domain = ClockDomain("sync", reset_less=True)
        self.module.domains += domain
        self.ports: list[Signal] = [domain.clk]
        self._strengthen = strengthen
        self._number = 0

    def add(self, component: wiring.Component) -> Opened:
        """Put ``component`` in; what nobody drives of its inputs is free in every cycle."""
        opened = Opened(component)
        self._number += 1
        self.module.submodules[f"part{self._number}"] = opened.fragment
        for _, member, value in component.signature.flatten(component):
            if member.flow is wiring.In:
                self.ports.append(Value.cast(value))
        return opened

    def free(self, shape: Any, name: str) -> Any:
        """A value that may be anything in every cycle."""
        signal = Signal(shape, name=name)
        self.ports.append(Value.cast(signal))
        return signal

    def constant(self, shape: Any, name: str) -> Any:
        """A value that may be anything, but is the same in every cycle."""
        signal = Signal(shape, name=name)
        Value.cast(signal).attrs[ANY_START] = 1
        self.module.d.sync += Value.cast(signal).eq(Value.cast(signal))
        return signal

    def before(self, value: Any, name: str, init: int = 0) -> Any:
        """``value`` a cycle ago."""
        cast = Value.cast(value)
        register = Signal(cast.shape(), name=name, init=init)
        self.module.d.sync += register.eq(cast)
        return register

    def assume(self, condition: Any) -> None:
        """Only what fulfils ``condition`` is looked at."""
        self.module.d.comb += Assume(condition, src_loc_at=1)

    def check(self, condition: Any, text: str) -> None:
        """The property."""
        self.module.d.comb += Assert(condition, text, src_loc_at=1)

    def lemma(self, condition: Any, text: str) -> None:
        """A fact about registers, checked as the property is."""
        if self._strengthen:
            self.module.d.comb += Assert(condition, text, src_loc_at=1)

    def cover(self, condition: Any) -> None:
        """Something that must be possible, or the proof would be about nothing."""
        self.module.d.comb += Cover(condition, src_loc_at=1)
