"""Ports are as wide as the docstrings of their components say, and as the standards of buses do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from dovetail.vta_hw.axi import Axi4, Axi4Lite
from dovetail.vta_hw.sdram import SdramPins

GATEWARE = Path(__file__).resolve().parents[2] / "vta_hw"
PORT = r"(?:In|Out)\((?:\d+|signed\(\d+\))\)"
SAID = re.compile(rf"((?:\w+, )*\w+) : ({PORT})")


def components() -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Name, ports of known widths in the docstring, and in the code, of each component."""
    for path in sorted(GATEWARE.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                said = {
                    name: port
                    for names, port in SAID.findall(ast.get_docstring(node) or "")
                    for name in names.split(", ")
                }
                yield f"{path.name} {node.name}", said, dict(declared(node))


def declared(component: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Entries ``"name": In(1)`` of what the constructor gives on, and members ``name: In(1)``."""
    for node in component.body:
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        match node:
            case ast.FunctionDef(name="__init__"):
                found = (each for each in ast.walk(node) if isinstance(each, ast.Dict))
                pairs = [
                    pair for each in found for pair in zip(each.keys, each.values, strict=True)
                ]
            case ast.AnnAssign(target=ast.Name(id=name), annotation=port):
                pairs = [(ast.Constant(name), port)]
        for key, port in pairs:
            if isinstance(key, ast.Constant) and re.fullmatch(PORT, text := ast.unparse(port)):
                yield key.value, text


def test_ports_are_what_their_docstrings_say() -> None:
    compared = 0
    for component, said, has in components():
        both = said.keys() & has.keys()
        compared += len(both)
        assert {name: has[name] for name in both} == {name: said[name] for name in both}, component
    assert compared > 150


def test_buses_have_the_widths_of_their_standards() -> None:
    """AMBA AXI (ARM IHI 0022), A2 and B1; SDRAM of 8192 rows, 4 banks and 16 bits (JEDEC 21-C)."""
    address = {"id": 1, "addr": 32, "len": 8, "size": 3, "burst": 2, "valid": 1, "ready": 1}
    full = {f"{channel}{name}": bits for channel in ("ar", "aw") for name, bits in address.items()}
    full |= {"rid": 1, "rdata": 64, "rresp": 2, "rlast": 1, "rvalid": 1, "rready": 1}
    full |= {"wdata": 64, "wstrb": 8, "wlast": 1, "wvalid": 1, "wready": 1}
    full |= {"bid": 1, "bresp": 2, "bvalid": 1, "bready": 1}
    assert {name: member.shape for name, member in Axi4(8).members.items()} == full
    short = {"addr": 12, "prot": 3, "valid": 1, "ready": 1}
    lite = {f"{channel}{name}": bits for channel in ("ar", "aw") for name, bits in short.items()}
    lite |= {"wdata": 32, "wstrb": 4, "wvalid": 1, "wready": 1, "bresp": 2, "bvalid": 1}
    lite |= {"bready": 1, "rdata": 32, "rresp": 2, "rvalid": 1, "rready": 1}
    assert {name: member.shape for name, member in Axi4Lite(12).members.items()} == lite
    pins = {"command": 3, "bank": 2, "address": 13, "mask": 2}
    pins |= {"dq_out": 16, "drive": 1, "dq_in": 16}
    assert {name: member.shape for name, member in SdramPins().members.items()} == pins
