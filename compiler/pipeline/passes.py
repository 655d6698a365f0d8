"""Passes over any IR, and the pipeline that runs them.

A pass is pure: it returns a new IR, or the same object when there is nothing to do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Generic, Protocol, TextIO, TypeVar

from dovetail.isa.frozen import frozen
from dovetail.runtime.files import write_whole

__all__ = ["Dump", "Observer", "Pass", "Pipeline", "Times", "Verify"]

IR = TypeVar("IR")
IR_contra = TypeVar("IR_contra", contravariant=True)


class Pass(Protocol[IR]):
    """A frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str:
        """A verb, unique within a pipeline."""

    def run(self, ir: IR) -> IR:
        """The rewritten IR."""


class Observer(Protocol[IR_contra]):
    """Called after each pass."""

    def __call__(self, name: str, before: IR_contra, after: IR_contra, seconds: float) -> None:
        """``before`` is ``after`` when the pass changed nothing."""


@frozen
class Pipeline(Generic[IR]):
    """Passes in the order they run, and who looks on."""

    passes: tuple[Pass[IR], ...]
    observers: tuple[Observer[IR], ...] = ()

    def run(self, ir: IR) -> IR:
        """Run every pass; call every observer after each."""
        for each in self.passes:
            start = perf_counter()
            result = each.run(ir)
            seconds = perf_counter() - start
            for observer in self.observers:
                observer(each.name, ir, result, seconds)
            ir = result
        return ir


@frozen
class Verify(Generic[IR]):
    """Checks the IR after each pass that changed it."""

    check: Callable[[IR], None]

    def __call__(self, name: str, before: IR, after: IR, seconds: float) -> None:
        """Raises what ``check`` raises, with a note that names the pass."""
        if after is before:
            return
        try:
            self.check(after)
        except Exception as error:
            error.add_note(f"after pass {name!r}")
            raise


@dataclass(slots=True)
class Dump(Generic[IR]):
    """Writes the IR after each pass to ``directory/NN_name.txt``; ``(unchanged)`` when it is."""

    directory: Path
    to_text: Callable[[IR], str]
    count: int = 0

    def __call__(self, name: str, before: IR, after: IR, seconds: float) -> None:
        """Write one file."""
        self.write(name, "(unchanged)" if after is before else self.to_text(after))

    def write(self, name: str, text: str) -> None:
        """Write the next file.  Raises ModuleError when it cannot be written."""
        path = self.directory / f"{self.count:02d}_{name}.txt"
        write_whole(path, f"{text}\n".encode(), make_folder=True)
        self.count += 1


@dataclass(slots=True)
class Times(Generic[IR]):
    """Collects seconds by pass; ``write`` prints them."""

    entries: list[tuple[str, float, bool]] = field(default_factory=list)

    def __call__(self, name: str, before: IR, after: IR, seconds: float) -> None:
        """Note one pass."""
        self.entries.append((name, seconds, after is not before))

    def write(self, stream: TextIO) -> None:
        """One line a pass: milliseconds, name, and whether it changed nothing."""
        lines: Sequence[str] = [
            f"{1000 * seconds:9.2f} ms  {name}{'' if changed else ' (unchanged)'}"
            for name, seconds, changed in self.entries
        ]
        stream.write("".join(f"{line}\n" for line in lines))
