"""The page of the configuration's fields, written from their declarations."""

from collections.abc import Iterable
from dataclasses import MISSING
from typing import Any

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.configs import CONFIGS
from dovetail.isa.declared import Declared, declarations

__all__ = ["configuration_page"]

HEAD = """# Configuration

Every field of an accelerator, from the declarations that also check it (`isa/config.py`).
[Your own accelerator](../guides/own-hardware.md) says how a file of them is written and used.
"""
SHOWN = ("block", "bus_bytes", "act_depth", "wgt_depth", "acc_depth", "clock_hz")


def configuration_page() -> str:
    """The page: fields, those of the memory's timing, and the configurations that have names."""
    hardware = [field for field in declarations(HardwareConfig) if field[0].name != "dram"]
    return "".join(
        (
            HEAD,
            _table("Accelerator", hardware),
            _table("Memory, `[dram]`", declarations(DramTiming)),
            _named(),
        )
    )


def _table(title: str, declared: Iterable[tuple[Any, Declared]]) -> str:
    lines = [f"\n## {title}\n\n", "| field | what it is | range | default |\n|---|---|---|---|\n"]
    for field, it in declared:
        default = "required" if field.default is MISSING else f"`{_written(field.default)}`"
        lines.append(f"| `{field.name}` | {_cell(it.text)} | {_cell(it.range)} | {default} |\n")
    return "".join(lines)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _named() -> str:
    lines = ["\n## Named configurations\n\n"]
    lines += ["| name | " + " | ".join(f"`{name}`" for name in SHOWN) + " |\n"]
    lines += ["|---" * (len(SHOWN) + 1) + "|\n"]
    for name, config in CONFIGS.items():
        cells = " | ".join(f"{getattr(config, field):,}" for field in SHOWN)
        lines.append(f"| `{name}` | {cells} |\n")
    return "".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("``", "`")
