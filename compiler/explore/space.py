"""A space of designs: which values each parameter may have, and which designs are left out."""

import hashlib
import json
import random
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.config_file import SUFFIX
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.errors import ConfigError
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory

from ..errors import SpaceError
from ..options import Overlap
from .axes import Axis, read_axes
from .constraints import Constraint, parse_constraint

__all__ = ["DRAM", "HARDWARE", "Design", "Space", "load_space", "parse_space"]

FOLLOWS = {
    "name": "it follows from the other values",
    "dram": "its values are in the table [dram]",
    "clock_hz": "the clock is estimated from the rest",
    "multiplier_bits": "it follows from the FPGA family",
    "core_clock_ratio": "areas and clocks are estimated for one clock",
}
"""Fields of a configuration that cannot be chosen here, and why."""

HARDWARE = {
    each.name: type(getattr(CONFIGS["tiny"], each.name))
    for each in fields(HardwareConfig)
    if each.name not in FOLLOWS
}
DRAM = {each.name: int for each in fields(DramTiming) if each.name != "sdram"}
"""Parameters of a design, and the types of their values."""
TABLES = ("base", "hardware", "dram", "schedule", "constraints")
TRIED = 2000
"""Designs looked at, at most, to find one that may have a given value."""


@frozen
class Design:
    """One accelerator with its memory, and how far programs hide latency on it."""

    config: HardwareConfig
    overlap: Overlap

    @property
    def text(self) -> str:
        """Everything its cycles depend on, and nothing else."""
        sdram = self.config.dram.sdram
        return json.dumps([self.values, asdict(sdram) if sdram else None], sort_keys=True)

    @property
    def key(self) -> str:
        """A short name that no other design has."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def values(self) -> dict[str, int | str]:
        """Every parameter by name."""
        found: dict[str, int | str] = {name: getattr(self.config, name) for name in HARDWARE}
        found |= {name: getattr(self.config.dram, name) for name in DRAM}
        return found | {"overlap": self.overlap.value}


@frozen
class Space:
    """All combinations of the axes' values that are configurations and meet the constraints.

    base: the values of everything that is not an axis.
    """

    base: HardwareConfig
    axes: tuple[Axis, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def size(self) -> int:
        """Combinations, those left out included."""
        return prod(len(axis.values) for axis in self.axes)

    @property
    def text(self) -> str:
        """Identity of the space: equal spaces have equal ones."""
        axes = {axis.name: axis.values for axis in self.axes}
        base = Design(self.base, Overlap.LAYERS).text
        return json.dumps([base, axes, [each.text for each in self.constraints]])

    def combinations(self) -> Iterator[tuple[int | str, ...]]:
        """One value of each axis; the last axis varies fastest."""
        return product(*(axis.values for axis in self.axes))

    def design(self, chosen: tuple[int | str, ...]) -> Design | str:
        """The design with these values, or why there is none."""
        values = dict(zip((axis.name for axis in self.axes), chosen, strict=True))
        overlap = Overlap(values.get("overlap", Overlap.LAYERS))
        shown = {axis.name for axis in self.axes if len(axis.values) > 1} - {"overlap"}
        name = ",".join(f"{n}={v}" for n, v in values.items() if n in shown) or self.base.name
        try:
            timing: dict[str, Any] = {n: values[n] for n in values if n in DRAM}
            hardware: dict[str, Any] = {n: values[n] for n in values if n in HARDWARE}
            dram = replace(self.base.dram, **timing)
            config = replace(self.base, name=name, dram=dram, **hardware)
        except ConfigError as error:
            return str(error).removeprefix(f"{name}: ")
        design = Design(config, overlap)
        known = constraint_values(design)
        for constraint in self.constraints:
            if not constraint.holds(known):
                return f"constraint {constraint.text}"
        return design

    def designs(self) -> Iterator[Design]:
        """All there are, in order."""
        for chosen in self.combinations():
            found = self.design(chosen)
            if isinstance(found, Design):
                yield found


def constraint_values(design: Design) -> dict[str, int | str]:
    """Names for constraints: parameters, and properties derived from them."""
    config = design.config
    derived = {
        f"{memory.value}_bytes": config.depth(memory) * config.word_bytes(memory)
        for memory in Memory
    }
    return {
        **design.values,
        **derived,
        "macs_per_cycle": config.macs_per_cycle,
        "burst_bytes": config.burst_bytes,
    }


def load_space(path: Path) -> Space:
    """The space in a TOML file.

    Raises SpaceError when there is no such file, or it is not a space; the message names the place.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpaceError(f"space {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpaceError(f"space {path} is not TOML: {error}") from None
    return parse_space(content, str(path), path.parent)


def parse_space(content: Mapping[str, Any], where: str = "space", folder: Path = Path()) -> Space:
    """The space of TOML tables ``base``, ``hardware``, ``dram``, ``schedule``, ``constraints``.

    folder: of a base that is a file.
    Raises SpaceError for what is unknown or of a wrong type, for a value that no design can have,
    and when no design is left.
    """
    for name, table in content.items():
        if name not in TABLES:
            raise SpaceError(f"{where}: table [{name}]; there are: {', '.join(TABLES)}")
        if not isinstance(table, Mapping):
            raise SpaceError(f"{where}: {name} = {table!r}; required a table [{name}]")
    base = _base(content.get("base", {}), where, folder)
    if base.core_clock_ratio > 1:
        raise SpaceError(
            f"{where}: [base] {base.name!r} has two clocks (core_clock_ratio = "
            f"{base.core_clock_ratio}), and areas and clocks are estimated for one; choose another "
            "base"
        )
    hardware = content.get("hardware", {})
    for name, reason in FOLLOWS.items():
        if name in hardware:
            raise SpaceError(f"{where}: [hardware] {name} cannot be chosen: {reason}")
    if content.get("dram") and base.dram.sdram:
        raise SpaceError(
            f"{where}: [dram] with base {base.name!r}, whose memory is an SDRAM with a timing of "
            "its own; leave [dram] out, or choose another base"
        )
    axes = (
        *read_axes(hardware, "hardware", HARDWARE, where),
        *read_axes(content.get("dram", {}), "dram", DRAM, where),
        *_schedule(content.get("schedule", {}), where),
    )
    space = Space(base, axes, _constraints(content.get("constraints", {}), base, where))
    return _checked(space, where)


def _base(table: Mapping[str, Any], where: str, folder: Path) -> HardwareConfig:
    if set(table) - {"config"}:
        raise SpaceError(f"{where}: [base] has {sorted(table)}; required config = NAME, alone")
    name = str(table.get("config", "zynq7020"))
    try:
        return find_config(str(folder / name) if name.endswith(SUFFIX) else name)
    except ConfigError as error:
        raise SpaceError(f"{where}: [base]: {error}") from None


def _schedule(table: Mapping[str, Any], where: str) -> tuple[Axis, ...]:
    levels = [level.value for level in Overlap]
    axes = read_axes(table, "schedule", {"overlap": str}, where)
    for axis in axes:
        for value in axis.values:
            if value not in levels:
                raise SpaceError(
                    f"{where}: [schedule] overlap = {value!r}; there are: {', '.join(levels)}"
                )
    return axes


def _constraints(
    table: Mapping[str, Any], base: HardwareConfig, where: str
) -> tuple[Constraint, ...]:
    written = table.get("require", [])
    if set(table) - {"require"} or not isinstance(written, list):
        raise SpaceError(f"{where}: [constraints] has {sorted(table)}; required require = [TEXT]")
    names = frozenset(constraint_values(Design(base, Overlap.LAYERS)))
    return tuple(parse_constraint(str(text), names) for text in written)


def _checked(space: Space, where: str) -> Space:
    """The space, when each value of each axis is in one of its designs."""
    only = space.design(()) if not space.axes else None
    if isinstance(only, str):
        raise SpaceError(f"{where}: no design is left: {only}")
    for place, axis in enumerate(space.axes):
        for value in axis.values:
            reason = _impossible(space, place, value)
            if reason:
                raise SpaceError(
                    f"{where}: no design can have {axis.name} = {value}: {reason}; "
                    "leave it out, or change what it clashes with"
                )
    return space


def _impossible(space: Space, place: int, value: int | str) -> str | None:
    """Why no design has ``value`` on axis ``place``; None when one has, or may have."""
    others = [axis.values for axis in space.axes]
    others[place] = (value,)
    count = prod(len(values) for values in others)
    if count <= TRIED:
        tries: Iterator[tuple[int | str, ...]] = product(*others)
    else:
        chance = random.Random(0)
        tries = (tuple(chance.choice(values) for values in others) for _ in range(TRIED))
    reason = None
    for chosen in islice(tries, TRIED):
        found = space.design(chosen)
        if isinstance(found, Design):
            return None
        reason = found if reason is None or str(value) in found else reason
    return reason
