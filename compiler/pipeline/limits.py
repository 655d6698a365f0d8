"""Limits of compiling a model: work and elements, which are counted, time and memory.

Counts are the same on every machine: a model that is refused by one is refused everywhere.
"""

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf, prod
from pathlib import Path
from time import monotonic

from dovetail.isa.frozen import frozen

from ..errors import CompileLimitError

__all__ = ["Budget", "Limits", "Watch"]

SECONDS_APART = 0.01
"""Between two looks at memory."""

OFTEN = 256
"""Steps of an import between two looks at clock and memory."""

PAGE_BYTES = resource.getpagesize()
RESIDENT = Path("/proc/self/statm")


@frozen
class Limits:
    """steps: nodes of the model that are converted, in bodies and functions each time again, and
    constants that are made.
    nodes: operators of the graph that they become.
    elements: of the constants that the import makes; ``elements_a_byte`` for each byte of the model
    come to it.
    work: multiplications and moves of elements that computing them takes.
    seconds: of compiling, in all.  memory_bytes: by which this process may grow; by default seven
    eighths of the machine's.  None for no limit.
    """

    steps: int = 200_000
    nodes: int = 100_000
    elements: int = 1 << 26
    elements_a_byte: int = 16
    work: int = 1 << 33
    seconds: float | None = None
    memory_bytes: int | None = field(default_factory=lambda: _machine_bytes() * 7 // 8)

    def within(self, seconds: float | None, memory_bytes: float | None) -> "Limits":
        """With these, where they are not 0 or None."""
        return replace(
            self,
            seconds=seconds or self.seconds,
            memory_bytes=int(memory_bytes) if memory_bytes else self.memory_bytes,
        )


@dataclass(slots=True)
class Watch:
    """Clock and memory of one compilation, from when this is made.

    look: is told every time where the compilation is.
    """

    limits: Limits = field(default_factory=Limits)
    look: Callable[[str], None] | None = None
    _start: float = field(default_factory=monotonic)
    _before: int = field(default_factory=lambda: _resident_bytes())
    _last: float = -inf

    def check(self, where: str) -> None:
        """Raise CompileLimitError, saying that it was ``where``, when it has taken too much."""
        if self.look is not None:
            self.look(where)
        limits, now = self.limits, monotonic()
        if limits.seconds is not None and (taken := now - self._start) > limits.seconds:
            raise CompileLimitError(
                f"{where}: compiling has taken {taken:.1f} s; allowed are {limits.seconds:g} s; "
                "allow more (--most-compile-seconds) or check the model's sizes and loops"
            )
        if limits.memory_bytes is None or now - self._last < SECONDS_APART:
            return
        self._last = now
        grown = _resident_bytes() - self._before
        if grown > limits.memory_bytes:
            raise CompileLimitError(
                f"{where}: compiling has taken {grown >> 20:,} MiB; allowed are "
                f"{limits.memory_bytes >> 20:,} MiB; allow more (--most-memory) or check the "
                "model's sizes"
            )


@dataclass(slots=True)
class Budget:
    """An import's use of ``watch.limits``; ``where`` names the model's node."""

    watch: Watch = field(default_factory=Watch)
    steps: int = 0
    nodes: int = 0
    elements: int = 0
    work: int = 0
    granted: int = 0
    """Elements that the model's size allows besides ``limits.elements``."""

    @property
    def limits(self) -> Limits:
        """Limits that remain."""
        return self.watch.limits

    def grant(self, model_bytes: int) -> None:
        """Allow as many elements as a model of this size may make."""
        self.granted += model_bytes * self.limits.elements_a_byte

    def step(self, where: str) -> None:
        """Count a node that is converted.

        Raises CompileLimitError when there are too many.
        """
        self.steps += 1
        if self.steps > self.limits.steps:
            raise _used_up(where, "steps", "steps", self.limits.steps)
        if self.steps % OFTEN == 0:
            self.watch.check(f"import, {where}")

    def add(self, where: str) -> None:
        """Count an operator of the graph.  Raises CompileLimitError when there are too many."""
        self.nodes += 1
        if self.nodes > self.limits.nodes:
            raise _used_up(where, "operators", "nodes", self.limits.nodes)

    def require_room(self, where: str, *sizes: int) -> None:
        """Raise CompileLimitError unless there may be another constant of ``sizes``."""
        if self.elements + prod(sizes) > self.limits.elements + self.granted:
            raise _used_up(where, "elements of constants", "elements", self.limits.elements)

    def make(self, where: str, elements: int) -> None:
        """Count a constant.  Raises as ``require_room`` and ``step``."""
        self.step(where)
        self.require_room(where, elements)
        self.elements += elements

    def compute(self, where: str, work: int) -> None:
        """Count what computing a constant takes before it is computed.

        Raises CompileLimitError when it is too much.
        """
        self.work += work
        if self.work > self.limits.work:
            raise _used_up(where, "operations on constants", "work", self.limits.work)
        self.watch.check(f"import, {where}")


def _used_up(where: str, what: str, name: str, allowed: int) -> CompileLimitError:
    return CompileLimitError(
        f"import, {where}: the model needs more than {allowed:,} {what}; export it with smaller "
        f"loops, functions and constants, or allow more (CompileOptions.limits.{name})"
    )


def _resident_bytes() -> int:
    """Memory of this process; of systems without ``/proc`` the most it ever had."""
    try:
        return int(RESIDENT.read_bytes().split()[1]) * PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _machine_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES
