"""ACT and ACC: banks of block RAM with one read and one write port each, for several units."""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .pipeline import delayed, delays
from .ports import ReadPort, WritePort
from .scratchpad import block_memory, of_turn, part_name
from .turns import turn_elements

__all__ = ["BankedScratchpad"]


class BankedScratchpad(wiring.Component):
    """ACT or ACC: several readers and writers, one a bank at a time.

    Parameters
    ----------
    memory : Memory
        ``ACT`` or ``ACC``.
    readers, writers : sequence of str
        Names of the ports.
    registered : sequence of str
        Readers whose data come two cycles after the address: each bank's word is kept first.
    parted : sequence of str
        Readers and writers that have a port for each of ``parts`` parts of a word.
    parts : int
        Equal parts of a word, in memories of their own.
    in_turns : sequence of str
        Readers and writers of the elements of one turn (``turn_elements``) at a time, if words have
        several turns.
    by_beats : sequence of str
        Writers of a beat at a time.

    Members
    -------
    read_<name> : In(ReadPort(width))
        Data follows in the next cycle, or the one after.
    write_<name> : In(WritePort(width))
        Visible to reads in the next cycle; with deep pipelines, in the one after.  In turns or by
        beats: a piece for each.
    read_<name>_<part>, write_<name>_<part> : In(ReadPort), In(WritePort)
        Of a part of each word, for those ``parted``.
    """

    def __init__(
        self,
        config: HardwareConfig,
        memory: Memory,
        readers: Sequence[str],
        writers: Sequence[str],
        *,
        registered: Sequence[str] = (),
        parted: Sequence[str] = (),
        parts: int = 1,
        in_turns: Sequence[str] = (),
        by_beats: Sequence[str] = (),
    ) -> None:
        self._readers, self._writers = tuple(readers), tuple(writers)
        self._registered, self._parted = frozenset(registered), frozenset(parted)
        self._turns = turn_elements(config)
        self._in_turns = frozenset(in_turns if len(self._turns) > 1 else ())
        self._element = 8 * config.word_bytes(memory) // config.block
        self._beat = 8 * config.bus_bytes
        self._by_beats = frozenset(by_beats)
        self._late = config.deep_pipelines
        self._name = memory.value
        self._parts = parts
        self._width = 8 * config.word_bytes(memory) // parts
        self._banks = config.banks(memory)
        self._words = config.bank_words(memory)
        ports: dict[str, Member] = {}
        whole, turns = self._width * parts, len(self._turns)
        for kind, names, signature in (
            ("read", self._readers, ReadPort),
            ("write", self._writers, WritePort),
        ):
            for name in names:
                if name in self._parted:
                    for part in range(parts):
                        ports[f"{kind}_{name}_{part}"] = In(signature(self._width))
                elif name in self._in_turns:
                    ports[f"{kind}_{name}"] = In(signature(whole // turns, turns))
                elif name in self._by_beats and kind == "write":
                    ports[f"{kind}_{name}"] = In(WritePort(self._beat, whole // self._beat))
                else:
                    ports[f"{kind}_{name}"] = In(signature(whole))
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        whole: dict[str, list[Value]] = {}
        banks: list[list[Value]] = [[] for _ in range(self._banks)]
        for part in range(self._parts):
            words, found = self._part(m, part)
            for bank, word in zip(banks, words, strict=True):
                bank.append(word)
            for name, word in found.items():
                if name in self._parted:
                    m.d.comb += self._port("read", name, part).data.eq(word)
                else:
                    whole.setdefault(name, []).append(word)
        for name, parts in whole.items():
            m.d.comb += self._port("read", name).data.eq(Cat(*parts))
        for name in self._readers:
            if name in self._in_turns:
                port = self._port("read", name)
                turn = delays(m, port.turn, f"{name}_turn", 1 + (name in self._registered))[-1]
                words = [of_turn(Cat(*bank), self._element, self._turns, turn) for bank in banks]
                m.d.comb += port.data.eq(self._read(m, name, port, words, name))
        return m

    def _read(self, m: Module, reader: str, port: Value, words: list[Value], name: str) -> Value:
        """The word of the bank that ``port`` has read, of the words of all banks."""
        bank_bits = (self._banks - 1).bit_length()
        word_bits = (self._words - 1).bit_length()
        word = words[0]
        if bank_bits:
            bank_of = port.address[word_bits : word_bits + bank_bits]
            late = reader in self._registered
            word = Array(words)[delays(m, bank_of, f"{name}_bank", 1 + late)[-1]]
        return word

    def _port(self, kind: str, name: str, part: int = 0) -> Value:
        return getattr(self, f"{kind}_{name}_{part}" if name in self._parted else f"{kind}_{name}")

    def _written(self, part: int) -> list[tuple[Value, Value, list[Value]]]:
        """For each writer of a part: whether it writes any of the word, its data for the part, and
        whether it writes each element.
        """
        elements = self._width // self._element
        places = {e: (k, lane) for k, turn in enumerate(self._turns) for lane, e in enumerate(turn)}
        per_beat = max(1, self._beat // self._element)
        found = []
        for name in self._writers:
            port = self._port("write", name, part)
            if name in self._parted:
                found.append((port.enable, port.data, [port.enable] * elements))
                continue
            mine = range(part * elements, (part + 1) * elements)
            if name in self._in_turns:
                pieces = [places[e] for e in mine]
            elif name in self._by_beats:
                pieces = [divmod(e, per_beat) for e in mine]
            else:
                data = port.data.word_select(part, self._width)
                found.append((port.enable, data, [port.enable] * elements))
                continue
            enables = [port.enable[piece] for piece, _ in pieces]
            data = Cat(port.data.word_select(place, self._element) for _, place in pieces)
            found.append((port.enable.any(), data, enables))
        return found

    def _part(self, m: Module, part: int) -> tuple[list[Value], dict[str, Value]]:
        """The memories of one part; return the word read from each bank, for a reader in turns, and
        what each reader of whole words reads.
        """
        readers = [self._port("read", name, part) for name in self._readers]
        writers = [self._port("write", name, part) for name in self._writers]
        writes = self._written(part)
        by_elements = bool(self._in_turns | self._by_beats)
        own_writer = by_elements and self._late and self._writers[0] in self._parted
        bank_bits = (self._banks - 1).bit_length()
        word_bits = (self._words - 1).bit_length()
        outputs = []
        for bank in range(self._banks):
            block = block_memory(self._width, self._words)
            m.submodules[part_name(f"{self._name}_bank{bank}", part, self._parts)] = block
            granularity = self._element if by_elements else None
            read, write = block.read_port(), block.write_port(granularity=granularity)
            outputs.append(read.data)

            def here(port: Value, enable: Value, bank: int = bank) -> Value:
                chosen = port.address[word_bits : word_bits + bank_bits] == bank
                return enable & chosen if bank_bits else enable

            read_address, read_enable = _select([(here(p, p.enable), p.address) for p in readers])
            # A register behind a memory that reads in every cycle can be the memory's own.
            reads = 1 if self._registered else read_enable
            m.d.comb += [read.addr.eq(read_address), read.en.eq(reads)]
            choices = [
                (here(port, enable), port.address, data)
                for port, (enable, data, _) in zip(writers, writes, strict=True)
            ]
            # What is chosen among the writers of whole words is the same for all parts: between it
            # and this part's own writer is chosen last.
            own = choices.pop(0)[1:] if own_writer else None
            write_address, write_enable = _select([(h, address) for h, address, _ in choices])
            write_data, _ = _select([(h, data) for h, _, data in choices])
            if by_elements:
                # Other writers of this bank write nothing now, but may write another bank.
                write_enable = Cat(
                    Cat(
                        here(port, enables[e])
                        for port, (_, _, enables) in zip(writers, writes, strict=True)
                    ).any()
                    for e in range(self._width // self._element)
                )
            if self._late:
                name = f"bank{bank}_part{part}"
                write_address = delayed(m, write_address, f"address_{name}")
                write_enable = delayed(m, write_enable, f"enable_{name}", reset=True)
                write_data = delayed(m, write_data, f"data_{name}")
            if own:
                others = Cat(here(port, port.enable.any()) for port in writers[1:]).any()
                others = delayed(m, others, f"others_{name}")
                address, data = own
                write_address = Mux(
                    others, write_address, delayed(m, address, f"own_address_{name}")
                )
                write_data = Mux(others, write_data, delayed(m, data, f"own_data_{name}"))
            m.d.comb += [
                write.addr.eq(write_address),
                write.data.eq(write_data),
                write.en.eq(write_enable),
            ]
        kept = outputs
        if self._registered:
            kept = [delayed(m, word, f"kept{part}_{k}") for k, word in enumerate(outputs)]
        found = {
            name: self._read(
                m, name, port, kept if name in self._registered else outputs, f"{name}{part}"
            )
            for name, port in zip(self._readers, readers, strict=True)
            if name not in self._in_turns
        }
        return kept, found


def _select(choices: list[tuple[Value, Value]]) -> tuple[Value, Value]:
    """The value of the first choice whose condition holds (else the last), and whether one
    holds.
    """
    value, any_holds = choices[-1][1], choices[-1][0]
    for holds, candidate in reversed(choices[:-1]):
        value, any_holds = Mux(holds, candidate, value), holds | any_holds
    return value, any_holds
