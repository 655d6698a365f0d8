"""Schedules of layers of which ACT or TAP cannot hold all: tiles whose parts of it fit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from ...errors import DoesNotFitError
from ...schedule.defaults import Limits
from ...schedule.primitives import Bind, Cache, Reorder, Schedule, Split
from ...tensor.ir import Kernel, LoopKind, Ref, Stage
from ...tensor.lower import Activation
from .windows import SLOTS, Window, localized, windows_of

__all__ = ["StreamedLayer", "stream_schedule"]

AXES = ("c", "y", "x")


@dataclass(frozen=True, slots=True)
class StreamedLayer:
    """A schedule, and the windows of the activations that stay in DRAM, by name."""

    schedule: Schedule
    windows: Mapping[str, Window]

    @property
    def kernel(self) -> Kernel:
        """The scheduled kernel on the buffers of the windows."""
        return localized(self.schedule.kernel, self.windows)

    @property
    def words(self) -> int:
        """Words of ACT that all buffers take."""
        return SLOTS * sum(window.words for window in self.windows.values())


def stream_schedule(
    kernel: Kernel,
    activations: Mapping[str, Activation],
    limits: Limits,
    tap_words: int,
    act_words: int,
) -> StreamedLayer:
    """The tiles that move the fewest words to and from DRAM, with buffers of ``act_words`` at most.

    activations: those of the kernel that stay in DRAM, by name.  tap_words: TAP words a tile may
    use. Raises DoesNotFitError when not even the smallest tile fits.
    """
    touched = [
        (next(ref for stage in kernel.stages for ref in stage.refs if ref.buffer.name == name))
        for name in activations
    ]
    extents = kernel.stages[0].extents
    choices = []
    for tile in _tiles(kernel, limits, tap_words):
        words = SLOTS * sum(_window_words(ref, extents | tile) for ref in touched)
        count = prod(extents[axis] // size for axis, size in tile.items())
        choices.append((words, count, tile))
    fitting = [choice for choice in choices if choice[0] <= act_words]
    if not fitting:
        raise DoesNotFitError(
            f"layer {kernel.name!r}: act scratchpad: {min(choice[0] for choice in choices)} words "
            f"required for the smallest tile, {act_words} available; use a configuration with a "
            "deeper ACT"
        )
    _, _, tile = min(fitting, key=lambda choice: (choice[0] * choice[1], choice[1]))
    schedule = _tiled(kernel, tile)
    windows = windows_of(schedule.kernel, activations)
    for name in sorted(_buffers(kernel) & {"acc", "weights", "taps"}):
        schedule = schedule.then(Cache(name))
    return StreamedLayer(schedule, windows)


def _window_words(ref: Ref, extents: Mapping[str, int]) -> int:
    """Words of the part of an activation that ``ref`` runs over, in loops of ``extents``."""
    spans = (index.limits(extents) for index in ref.indices[:3])
    return prod(high - low + 1 for low, high in spans)


def _buffers(kernel: Kernel) -> set[str]:
    return {ref.buffer.name for stage in kernel.stages for ref in stage.refs}


def _tiles(kernel: Kernel, limits: Limits, tap_words: int) -> Iterator[dict[str, int]]:
    """Every tile that ACC and WGT, or TAP, hold; at least those of one word.

    Raises DoesNotFitError when WGT or TAP cannot hold the weights of one channel block.
    """
    extents = kernel.stages[0].extents
    buffers = _buffers(kernel)
    reduced = prod(extents.get(name, 1) for name in ("k", "ky", "kx"))
    memory, most = ("wgt", limits.wgt_words) if "weights" in buffers else ("tap", tap_words)
    constant = bool(buffers & {"weights", "taps"})
    if constant and reduced > most:
        raise DoesNotFitError(
            f"layer {kernel.name!r}: {memory} scratchpad: {reduced} words required for one block "
            f"of channels, {most} available; use a configuration with a deeper {memory.upper()}"
        )
    for sizes in product(*(_divisors(extents[axis]) for axis in AXES)):
        if constant and sizes[0] * reduced > most:
            continue
        if "acc" in buffers and prod(sizes) > limits.acc_words:
            continue
        yield dict(zip(AXES, sizes, strict=True))


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _tiled(kernel: Kernel, tile: Mapping[str, int]) -> Schedule:
    """Tiles outside, rows before columns before channels; all else in hardware."""
    schedule = Schedule(kernel)
    for axis, size in tile.items():
        schedule = schedule.then(Split(axis, size))
    outer = tuple(f"{axis}.outer" for axis in ("y", "x", "c"))
    inner = tuple(f"{axis}.inner" for axis in AXES)
    for stage in schedule.kernel.stages:
        folds, lanes = _rest(stage, (*outer, *inner))
        schedule = schedule.then(Reorder(stage.name, (*outer, *inner, *folds, *lanes)))
        schedule = schedule.then(Bind((*inner, *folds), LoopKind.HARDWARE))
    return schedule


def _rest(stage: Stage, known: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The stage's other loops: those that are no lanes, and the lanes."""
    others = [loop for loop in stage.loops if loop.name not in known]
    lanes = tuple(loop.name for loop in others if loop.kind is LoopKind.LANE)
    return tuple(loop.name for loop in others if loop.name not in lanes), lanes
