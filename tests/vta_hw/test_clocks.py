"""Clock domains of what is converted: the same ports in the same order in every process."""

import re

from amaranth.back import rtlil
from amaranth.hdl import Module, Signal

from dovetail.vta_hw.clocks import with_clocks
from dovetail.vta_hw.pipeline import CORE


def test_clocks_are_the_last_inputs_and_their_order_does_not_hang_on_hashes() -> None:
    # Sets of these names come in the one order or the other, by the hash seed of the process.
    m, inner = Module(), Module()
    given, first, second, third = (Signal(name=name) for name in ("a", "b", "c", "d"))
    m.d.sync += first.eq(given)
    m.submodules.inner = inner
    inner.d[CORE] += second.eq(first)
    inner.d.other += third.eq(second)
    fragment, ports = with_clocks(m, [given, third])
    clocks = ["core_clk", "other_clk", "other_rst", "clk", "rst"]
    assert [port.name for port in ports] == ["a", "d", *clocks]
    assert list(fragment.domains) == [CORE, "other", "sync"]
    text = rtlil.convert(fragment, name="top", ports=ports, emit_src=False)
    top = text.split("\nmodule \\top\n")[1].split("\nend\n")[0]
    found = re.findall(r"(?:in|out)put (\d+) +\\(\w+)", top)
    assert [(int(place), name) for place, name in found] == [*enumerate(["a", *clocks, "d"])]


def test_a_module_without_registers_has_no_clock() -> None:
    m, given, taken = Module(), Signal(name="given"), Signal()
    m.d.comb += taken.eq(given)
    fragment, ports = with_clocks(m, [given, taken])
    assert [port.name for port in ports] == ["given", "taken"]
    assert not fragment.domains
