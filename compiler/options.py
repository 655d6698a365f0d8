"""Options of the compiler besides model and target."""

import os
from collections.abc import Callable
from dataclasses import field
from enum import Enum
from math import inf
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.isa.frozen import frozen

from .dtypes import DType
from .errors import OptionError, TargetError
from .pipeline.limits import Limits

if TYPE_CHECKING:
    from .graph.ir import Graph
    from .pipeline.passes import Pass

__all__ = ["MOST_WORK", "CompileOptions", "CpuOptions", "Overlap", "Precision"]

MOST_WORK = 10**15
"""Elements that a run of machine code may read and write, unless the user says otherwise: vector
code takes about an hour for as many, code that is not in vectors days.
"""


class Overlap(Enum):
    """Work that may overlap on the accelerator; each level includes those before."""

    NOTHING = "nothing"
    """One instruction after the other."""
    UNITS = "units"
    """Units, as tokens let them; there is one buffer for each thing: a tile waits for the last."""
    TILES = "tiles"
    """Tiles of a layer: one is loaded, or stored, while another is computed."""
    LAYERS = "layers"
    """Layers: there is no wait between them, and some run strip by strip together."""


class Precision(Enum):
    """How the floats of a float32 model are stored, and read by products; sums are float32."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"

    @property
    def dtype(self) -> DType:
        """The element type."""
        names = {"fp32": DType.FLOAT32, "fp16": DType.FLOAT16, "bf16": DType.BFLOAT16}
        return names[self.value]


@frozen
class CpuOptions:
    """Options of code for CPUs.

    level: the CPU: ``native``, or a level of ``targets/cpu/arch``.  threads: that it runs on.
    most_work: elements that a run of it may read and write in its loops.
    winograd: whether it may compute float convolutions by Winograd's tiles, which is faster and
    less exact (docs/cpu.md).
    """

    level: str = "native"
    threads: int = 1
    most_work: int = MOST_WORK
    winograd: bool = True


@frozen
class CompileOptions:
    """dump: folder that gets the text of every intermediate form; None for none.

    verify: check the graph after every pass, not only at the beginning and the end, and every loop
    program.
    time: print the time each step took to standard error.
    overlap: how far the accelerator's program hides latency.
    effort: how many programs for the accelerator are tried, 1 for as many as usual; 0 to 100.
    plans: file of plans for the accelerator: those that are there are used again, new ones added.
    passes: your own, over the graph, after it was imported and simplified.
    cpu: what code for CPUs is made for.
    records: files of schedules that ``dovetail tune`` found, to be used where they suit; of equal
    ones the last file's.
    limits: what compiling may take.
    batch: images that a run computes, 1 or more; the first dimension of inputs and outputs is as
    many times the model's.
    look: is told where the compilation is: step, and node, layer or kernel.
    precision: of float32 models on GPUs (graph/passes/narrow_floats.py).
    gpu: part of the name of the GPU whose records hold, where they are of several.

    Raises OptionError for an effort or a batch that is out of range.
    """

    dump: Path | None = None
    verify: bool = False
    time: bool = False
    overlap: Overlap = Overlap.LAYERS
    effort: float = 1.0
    plans: Path | None = None
    passes: "tuple[Pass[Graph], ...]" = ()
    cpu: CpuOptions = CpuOptions()
    records: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    batch: int = 1
    look: Callable[[str], None] | None = None
    precision: Precision = Precision.FP32
    gpu: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.effort, Real) or not 0 <= self.effort <= 100:
            raise OptionError(f"an effort of {self.effort!r}; required a number from 0 to 100")
        if not isinstance(self.batch, int) or self.batch < 1:
            raise OptionError(f"a batch of {self.batch!r}; required a whole number from 1 on")

    def require_fp32(self, target: str) -> None:
        """Raise TargetError where a target that keeps a model's floats is asked for others."""
        if self.precision is not Precision.FP32:
            raise TargetError(
                f"precision {self.precision.value} for the target {target}, which keeps a model's "
                "floats; required fp32; opencl, cuda and webgpu take the others, for fixed shapes"
            )

    @classmethod
    def from_environment(cls) -> "CompileOptions":
        """``DOVETAIL_DUMP=<folder>``, ``DOVETAIL_VERIFY=1``, ``DOVETAIL_TIME=1``,
        ``DOVETAIL_OVERLAP=<nothing, units, tiles or layers>``, ``DOVETAIL_MOST_WORK=<number>``,
        ``DOVETAIL_WINOGRAD=0``, ``DOVETAIL_MOST_COMPILE_SECONDS=<number>``,
        ``DOVETAIL_MOST_MEMORY=<bytes>``.

        Raises OptionError for a word or a number that none of them can be.
        """
        folder = os.environ.get("DOVETAIL_DUMP")
        return cls(
            dump=Path(folder) if folder else None,
            verify=_is_on("DOVETAIL_VERIFY", "0"),
            time=_is_on("DOVETAIL_TIME", "0"),
            overlap=_overlap(),
            cpu=CpuOptions(
                most_work=int(_number("DOVETAIL_MOST_WORK", MOST_WORK)),
                winograd=_is_on("DOVETAIL_WINOGRAD", "1"),
            ),
            limits=Limits().within(
                _number("DOVETAIL_MOST_COMPILE_SECONDS", 0), _number("DOVETAIL_MOST_MEMORY", 0)
            ),
        )


def _is_on(name: str, default: str) -> bool:
    return os.environ.get(name, default) not in ("", "0")


def _overlap() -> Overlap:
    text = os.environ.get("DOVETAIL_OVERLAP") or Overlap.LAYERS.value
    kinds = [each.value for each in Overlap]
    if text not in kinds:
        raise OptionError(f"DOVETAIL_OVERLAP is {text!r}; required one of {', '.join(kinds)}")
    return Overlap(text)


def _number(name: str, default: float) -> float:
    text = os.environ.get(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < inf:
        raise OptionError(f"{name} is {text!r}; required a number, 0 or more")
    return number
