"""Looking on while a model is compiled: dumps, checks between passes, times."""

import sys
from collections.abc import Callable
from time import perf_counter

from ..graph.ir import Graph
from ..graph.text import to_text
from ..graph.verify import verify
from ..options import CompileOptions
from .limits import Watch
from .passes import Dump, Observer, Times, Verify

__all__ = ["Trace"]


class Trace:
    """Files ``NN_step.txt`` in the dump folder, one for each step, in the order of the steps."""

    def __init__(self, options: CompileOptions, watch: Watch | None = None) -> None:
        """``watch`` looks on as well; by default one that begins now."""
        self._watch = watch or Watch(options.limits, options.look)
        self._dump = Dump[Graph](options.dump, to_text) if options.dump else None
        self._times = Times[Graph]() if options.time else None
        self._verify = Verify(verify) if options.verify else None
        self._last = perf_counter()

    @property
    def observers(self) -> tuple[Observer[Graph], ...]:
        """The observers that look on between the passes of a graph."""
        found: list[Observer[Graph]] = [lambda name, before, after, seconds: self.check(name)]
        if self._verify:
            found.append(self._verify)
        if self._dump:
            found.append(self._dump)
        if self._times:
            found.append(self._times)
        return tuple(found)

    def check(self, where: str) -> None:
        """Look at clock and memory.  Raises CompileLimitError when they say that it is enough."""
        self._watch.check(where)

    def step(self, name: str, text: Callable[[], str]) -> None:
        """Note the end of a step that is not a pass over a graph; ``text`` prints its result.

        Raises as ``check``.
        """
        self.check(name)
        now = perf_counter()
        if self._times:
            self._times.entries.append((name, now - self._last, True))
        if self._dump:
            self._dump.write(name, text())
        self._last = perf_counter()

    def start(self) -> None:
        """Note that a step begins now."""
        self._last = perf_counter()

    def end(self) -> None:
        """Print the times, if they were asked for."""
        if self._times:
            self._times.write(sys.stderr)
