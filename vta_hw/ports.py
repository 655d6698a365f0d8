"""Signatures between units, scratchpads and the issue logic."""

from amaranth.hdl import Cat, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADDRESS_BITS", "ReadPort", "RowPort", "UnitControl", "WritePort"]

ADDRESS_BITS = 16
"""Bits of a scratchpad word address; a memory uses the low ones it has depth for."""


class ReadPort(wiring.Signature):
    """Reader's side of a scratchpad port with ``width`` bits of data.

    Members
    -------
    enable : Out(1)
        Read this cycle.
    address : Out(ADDRESS_BITS)
        Word to read.
    data : In(width)
        The word, in the cycle after ``enable``; undefined in others.  With several turns, ``width``
        bits of it: those of the turn.
    turn : Out(turns)
        With several turns, the one of this cycle, one-hot.
    """

    def __init__(self, width: int, turns: int = 1) -> None:
        ports = {"enable": Out(1), "address": Out(ADDRESS_BITS), "data": In(width)}
        super().__init__(ports | ({"turn": Out(turns)} if turns > 1 else {}))


class WritePort(wiring.Signature):
    """Writer's side of a scratchpad port with ``width`` bits of data.

    Members
    -------
    enable : Out(pieces)
        Write this cycle, of the word's ``pieces`` equal pieces those whose bit is set; a read in
        the next cycle sees it.
    address : Out(ADDRESS_BITS)
        Word to write.
    data : Out(width * apart)
        The word, or what all its pieces get; with ``apart`` 2, what the even ones and the odd ones
        get, or, where these are halves, what the first half of them and the second get.
    """

    def __init__(self, width: int, pieces: int = 1, apart: int = 1) -> None:
        ports = {"enable": Out(pieces), "address": Out(ADDRESS_BITS), "data": Out(width * apart)}
        super().__init__(ports)

    @staticmethod
    def of_pieces(data: Value, width: int, first: int, count: int, run: int = 1) -> Value:
        """Pieces of ``width`` bits of ``data``, from piece ``first`` on; so many in a ``run`` get
        the same.
        """
        apart = len(data) // width
        places = (k // run % apart for k in range(first, first + count))
        return Cat(data.word_select(place, width) for place in places)


class RowPort(wiring.Signature):
    """The side of PAR's writer that gives all lanes of a word the same parameters.

    Members
    -------
    enable : Out(1)
        Write this cycle; a read in the next cycle sees it.
    address : Out(ADDRESS_BITS)
        Word to write.
    bias, scale : Out(32)
    """

    def __init__(self) -> None:
        parameters = {"bias": Out(32), "scale": Out(32)}
        super().__init__({"enable": Out(1), "address": Out(ADDRESS_BITS), **parameters})


class UnitControl(wiring.Signature):
    """Issue logic's side of an execution unit.

    Members
    -------
    free : In(1)
        The unit can accept in this cycle: idle, or (GEMM, VECTOR) issuing its last iteration.
    start : Out(1)
        ``instruction`` is accepted in this cycle; only with ``free``.
    instruction : Out(layout)
        Head of the unit's queue; meaningful with ``start``.
    busy : In(1)
        The unit counts this cycle as busy (docs/timing.md).
    done : In(1)
        The oldest instruction in flight ends in this cycle; at most one a cycle, in order.
    """

    def __init__(self, layout: data.StructLayout) -> None:
        super().__init__(
            {
                "free": In(1),
                "start": Out(1),
                "instruction": Out(layout),
                "busy": In(1),
                "done": In(1),
            }
        )
