"""The host's register map (AXI4-Lite, 32-bit registers) and the error codes."""

from enum import Enum, IntEnum

from .frozen import frozen
from .memories import Unit

__all__ = [
    "COUNTERS",
    "IDENTITY",
    "REGISTERS",
    "VERSION",
    "Access",
    "Control",
    "ErrorCode",
    "Register",
    "Status",
]

IDENTITY = 0x4456544C
"""Value of the ID register: "DVTL"."""

VERSION = 2
"""Value of the VERSION register: of this register map and instruction set."""


class Access(Enum):
    """Access of the host to a register."""

    READ = "read"
    READ_WRITE = "read/write"
    WRITE = "write"


class Control(IntEnum):
    """Bits of CONTROL; each acts once when written as 1."""

    START = 0
    """Clear counters, tokens, queues and the error, then run the program.  Ignored while busy."""
    STOP = 1
    """Stop a running program as an error does, with code STOPPED."""


class Status(IntEnum):
    """Bits of STATUS."""

    BUSY = 0
    """A program runs, or bursts of a stopped one are still in flight."""
    DONE = 1
    """The last program ended without an error."""
    ERROR = 2
    """The last program was stopped; ERROR_CODE and ERROR_INDEX say why."""


class ErrorCode(IntEnum):
    """Why a program was stopped."""

    NONE = 0
    """It was not."""
    ILLEGAL_INSTRUCTION = 1
    """Fetched word is not a legal instruction of this configuration."""
    WINDOW = 2
    """A burst would leave the DRAM window; it was not issued."""
    AXI_READ = 3
    """Memory answered a read with an error."""
    AXI_WRITE = 4
    """Memory answered a write with an error."""
    WATCHDOG = 5
    """No instruction ended for WATCHDOG cycles."""
    STOPPED = 6
    """The host stopped the program."""


@frozen
class Register:
    """One 32-bit register at a byte ``offset``."""

    name: str
    offset: int
    access: Access
    doc: str


_CONTROLS = (
    ("ID", Access.READ, f"0x{IDENTITY:08X}"),
    ("VERSION", Access.READ, f"version of register map and instruction set: {VERSION}"),
    ("FINGERPRINT", Access.READ, "fingerprint of the hardware configuration"),
    ("CONTROL", Access.WRITE, "bit 0 START, bit 1 STOP"),
    ("STATUS", Access.READ, "bit 0 BUSY, bit 1 DONE, bit 2 ERROR"),
    ("ERROR_CODE", Access.READ, "why the program was stopped"),
    ("ERROR_INDEX", Access.READ, "index of the instruction concerned"),
    ("PROGRAM_ADDRESS", Access.READ_WRITE, "byte address of instruction 0, a multiple of 64"),
    ("PROGRAM_COUNT", Access.READ_WRITE, "instructions in the program"),
    ("WINDOW_BASE", Access.READ_WRITE, "first byte address an access may touch"),
    ("WINDOW_LIMIT", Access.READ_WRITE, "last byte address an access may touch"),
    (
        "WATCHDOG",
        Access.READ_WRITE,
        "cycles without a completed instruction before a stop; 0: never",
    ),
)

COUNTERS: tuple[tuple[str, str], ...] = (
    ("cycles", "cycles from start to end of the program"),
    ("instructions", "instructions that ended"),
    *(
        (f"{unit.name.lower()}_{kind}", f"cycles {unit.name} {doc}")
        for unit in Unit
        for kind, doc in (
            ("busy", "worked on an instruction"),
            ("stall_token", "could have started its next instruction, but waited for a token"),
            ("stall_port", "could have started its next instruction, but waited for a memory bank"),
        )
    ),
    ("fetch_beats", "data beats read by FETCH"),
    ("load_beats", "data beats read by LOAD"),
    ("store_beats", "data beats written by STORE"),
)
"""Name and meaning of every counter; 64 bits each, as NAME_LOW and NAME_HIGH."""


def _registers() -> tuple[Register, ...]:
    listed = [
        Register(name, 4 * index, access, doc)
        for index, (name, access, doc) in enumerate(_CONTROLS)
    ]
    base = 0x80
    for index, (name, doc) in enumerate(COUNTERS):
        for half, (suffix, which) in enumerate((("LOW", "low"), ("HIGH", "high"))):
            offset = base + 8 * index + 4 * half
            listed.append(
                Register(f"{name.upper()}_{suffix}", offset, Access.READ, f"{doc}; {which} 32 bits")
            )
    return tuple(listed)


REGISTERS: tuple[Register, ...] = _registers()
