"""Configurations in files: TOML with the fields of ``HardwareConfig``, table ``[dram]`` with those
of ``DramTiming``, and in it ``sdram``, an SDRAM chip by its name.

    base = "zynq7020"   # fields that are left out are this configuration's
    block = 8
    [dram]
    latency_cycles = 30

The name is the file's unless ``name`` says another.  An SDRAM's timing follows from ``clock_hz``.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from textwrap import wrap
from typing import Any

from .config import DEFAULT_CLOCK_HZ, DramTiming, HardwareConfig
from .declared import Declared, declarations
from .entry_points import ExtensionError
from .errors import ConfigError
from .frozen import replace
from .sdram import SDRAM_CHIPS, SdramTiming, sdram_timing

__all__ = ["SUFFIX", "config_to_toml", "read_config", "require_name"]

SUFFIX = ".toml"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
LONGEST_NAME = 60
LARGEST_FILE = 1 << 20
IO_DELAY = 8
"""Registers between the controller and the chip, at most."""
HARDWARE = {field.name: declared for field, declared in declarations(HardwareConfig)}
DRAM = {field.name: declared for field, declared in declarations(DramTiming)}
SDRAM = {
    "chip": Declared(f"One of {', '.join(SDRAM_CHIPS)}; its times at clock_hz are computed."),
    "io_delay": Declared("Registers to the chip, and back from it.", 0, IO_DELAY),
}
KINDS_OF: dict[str, Any] = {field.name: field.type for field in fields(HardwareConfig)}
KINDS = {int: "an integer", bool: "true or false", str: "a text", dict: "a table"}
WIDTH = 98


class _Place:
    """A file, for messages: its path, and the line in which a key is given."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self._lines = path, text.splitlines()

    def __call__(self, key: str) -> str:
        pattern = re.compile(rf"\s*[\[\"']?[\w.]*?\b{re.escape(key)}\b[\"']?\s*[=\].]")
        for number, line in enumerate(self._lines, 1):
            if pattern.match(line):
                return f"{self.path}, line {number}"
        return str(self.path)


def read_config(path: Path, bases: Mapping[str, HardwareConfig]) -> HardwareConfig:
    """The configuration in the file ``path``.

    bases: what ``base`` may name.
    Raises ConfigError, naming the line, when there is no such file, it is not TOML, or a field is
    unknown, missing, of another type or outside its range.
    """
    text = _text(path)
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    place = _Place(path, text)
    base = _base(content.pop("base", None), bases, place)
    _require_known(content, HARDWARE, "", ("base", *HARDWARE), place)
    given = {"name": path.stem, **content}
    require_name(given["name"], place("name"), (), "name" in content)
    for key, declared in HARDWARE.items():
        if key in content and key not in ("name", "dram"):
            _require(key, content[key], KINDS_OF[key], declared, place)
    given["dram"] = _dram(content.get("dram", {}), base, content.get("clock_hz"), place)
    if base is None:
        _require_whole(given, path, bases)
    try:
        config = HardwareConfig(**given) if base is None else replace(base, **given)
    except ExtensionError as error:
        raise ConfigError(f"{place('finish')}: {error}") from None
    except ConfigError as error:
        problem = str(error).removeprefix(f"{given['name']}: ")
        raise ConfigError(f"{place(problem.split(' ')[0])}: {problem}") from None
    if config != bases.get(config.name, config):
        require_name(config.name, place("name"), bases, "name" in content)
    return config


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise ConfigError(
                f"{path} has more than {LARGEST_FILE} bytes; it is not a configuration"
            )
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(
            f"{path} is not text in UTF-8; required a configuration as TOML"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"configuration {path} cannot be read: {error.strerror}; "
            f"write one with: dovetail config new {path}"
        ) from None


def _base(
    name: object, bases: Mapping[str, HardwareConfig], place: _Place
) -> HardwareConfig | None:
    if name is None or (isinstance(name, str) and name in bases):
        return None if name is None else bases[str(name)]
    raise ConfigError(f"{place('base')}: base = {name!r}; there are: {', '.join(bases)}")


def _require_known(
    table: Mapping[str, Any],
    known: Mapping[str, Declared],
    title: str,
    names: Iterable[str],
    place: _Place,
) -> None:
    """Every key is a field; otherwise those that are written nearly alike are named."""
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, list(names), 3, 0.5)
            hint = (
                f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(names)}"
            )
            elsewhere = "; it belongs to [dram]" if not title and key in DRAM else ""
            raise ConfigError(f"{place(key)}: unknown field {title}{key}{elsewhere or f'; {hint}'}")


def _require(
    key: str, value: object, kind: type, declared: Declared, place: _Place, title: str = ""
) -> None:
    """A value is of its type and within the ends of its range that do not depend on others."""
    if type(value) is not kind:
        raise ConfigError(f"{place(key)}: {title}{key} = {_shown(value)}; required {KINDS[kind]}")
    if type(value) is not int:
        return
    low = declared.low if isinstance(declared.low, int) else 1
    high = declared.high if isinstance(declared.high, int) else None
    odd = declared.power and (value < 1 or value & (value - 1) != 0)
    if odd or value < low or (high is not None and value > high):
        near = max(low, value if high is None else min(high, value))
        if declared.power and near & (near - 1):
            near = 1 << near.bit_length()
        raise ConfigError(
            f"{place(key)}: {title}{key} = {_shown(value)}; required {declared.range}; try {near}"
        )


def _shown(value: object) -> str:
    """It in a message; Python refuses to write integers of thousands of digits."""
    text = repr(value) if type(value) is not int or abs(value) < 1 << 64 else f"{value:#x}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def require_name(name: object, place: str, taken: Iterable[str], given: bool = False) -> None:
    """Raises ConfigError for a name that cannot stand in Verilog or is one of ``taken``.

    given: whether a file says it; otherwise it is that file's own.
    """
    if type(name) is str and NAME.fullmatch(name) and len(name) <= LONGEST_NAME:
        if name not in taken:
            return
        required = "one that no configuration of this package has"
    else:
        required = f"a letter, then letters, digits and _, {LONGEST_NAME} at most"
    source = "name" if given else "the name of the file, and so of the configuration,"
    hint = "choose another" if given else 'rename the file, or give one: name = "my"'
    raise ConfigError(f"{place}: {source} is {_shown(name)}; required {required}; {hint}")


def _require_whole(given: Mapping[str, object], path: Path, bases: Iterable[str]) -> None:
    missing = [
        field.name
        for field in fields(HardwareConfig)
        if field.default is MISSING and field.name not in given
    ]
    if missing:
        raise ConfigError(
            f"{path}: no value for {', '.join(missing)}, and no base that has them; give them, or "
            f"say base = NAME: {', '.join(bases)}"
        )


def _dram(
    table: object, base: HardwareConfig | None, clock: int | None, place: _Place
) -> DramTiming:
    """The memory of table ``[dram]``; an SDRAM's timing is that at the configuration's clock."""
    start = base.dram if base else DramTiming()
    _require("dram", table, dict, HARDWARE["dram"], place)
    assert isinstance(table, dict)
    _require_known(table, DRAM, "dram.", DRAM, place)
    for key, declared in DRAM.items():
        if key in table and key != "sdram":
            _require(key, table[key], int, declared, place, "dram.")
    sdram = _sdram(table.get("sdram"), start.sdram, place)
    if sdram is not None:
        hz = clock or (base.clock_hz if base else DEFAULT_CLOCK_HZ)
        try:
            timing = sdram_timing(SDRAM_CHIPS[sdram[0]], hz, sdram[1])
        except ConfigError as error:
            raise ConfigError(
                f"{place('clock_hz')}: {error}; lower clock_hz, or leave the SDRAM out: "
                "sdram = false in [dram]"
            ) from None
    try:
        return replace(start, **{**table, "sdram": timing if sdram else None})
    except ConfigError as error:
        raise ConfigError(f"{place('dram')}: {error}") from None


def _sdram(table: object, base: SdramTiming | None, place: _Place) -> tuple[str, int] | None:
    """Chip and delay; None for memory that is no SDRAM."""
    if table is False or (table is None and base is None):
        return None
    found: dict[str, Any] = {"io_delay": base.io_delay, "chip": base.chip.name} if base else {}
    if table is not None:
        _require("sdram", table, dict, DRAM["sdram"], place, "dram.")
        assert isinstance(table, dict)
        _require_known(table, SDRAM, "dram.sdram.", SDRAM, place)
        found = {"io_delay": 0, **found, **table}
    chip, delay = found.get("chip"), found["io_delay"]
    _require("io_delay", delay, int, SDRAM["io_delay"], place, "dram.sdram.")
    if not isinstance(chip, str) or chip not in SDRAM_CHIPS:
        raise ConfigError(
            f"{place('chip')}: dram.sdram.chip = {chip!r}; there are: {', '.join(SDRAM_CHIPS)}"
        )
    return chip, delay


def config_to_toml(config: HardwareConfig, notes: Iterable[str] = (), name: str = "") -> str:
    """The file of a configuration: every field under a comment that says what it is.

    notes: lines of the comment that the file begins with.  name: instead of the configuration's.
    ``read_config`` gives an equal configuration, if its SDRAM is one of ``SDRAM_CHIPS``.
    """
    named = replace(config, name=name or config.name)
    lines = [*(f"# {note}".rstrip() for note in notes)]
    for key, declared in HARDWARE.items():
        if key != "dram":
            lines += _commented(key, getattr(named, key), declared)
    lines += ["", *_comment(HARDWARE["dram"]), "[dram]"]
    for key, declared in DRAM.items():
        if key != "sdram":
            lines += _commented(key, getattr(config.dram, key), declared)
    sdram = config.dram.sdram
    if sdram is not None:
        lines += ["", *_comment(DRAM["sdram"]), "[dram.sdram]"]
        lines += _commented("chip", sdram.chip.name, SDRAM["chip"])
        lines += _commented("io_delay", sdram.io_delay, SDRAM["io_delay"])
    return "\n".join(lines).lstrip("\n") + "\n"


def _commented(key: str, value: object, declared: Declared) -> list[str]:
    written = f'"{value}"' if isinstance(value, str) else str(value).lower()
    return ["", *_comment(declared), f"{key} = {written}"]


def _comment(declared: Declared) -> list[str]:
    text = declared.text + (f"  Range: {declared.range}." if declared.range else "")
    return [f"# {line}" for line in wrap(text, WIDTH)]
