"""Parts of modules that are kernels of a GPU, and the list of their launches."""

from enum import Enum
from typing import ClassVar, NamedTuple

from dovetail.isa.frozen import frozen

from ..errors import ModuleError
from ..manifest import Content
from ..native.part import Constant
from ..tensors import TensorSignature

__all__ = ["GpuPart", "KernelEntry", "Launch", "Place", "Repeat", "Space", "Stride"]


class Space(Enum):
    """Whose memory something is in."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    MEMORY = "memory"
    """Memory in which kernels leave data for each other, their workspaces included."""


class Stride(NamedTuple):
    """Step of an address in each iteration of the loop at ``depth``; alternating: in odd ones."""

    depth: int
    bytes: int
    alternating: bool


class Place(NamedTuple):
    """A byte of the ``number``-th input or output, of the constants or of the memory."""

    space: Space
    number: int
    offset: int
    strides: tuple[Stride, ...]


class KernelEntry(NamedTuple):
    """A kernel of the source: its blocks, the threads of each, and the shared memory that a launch
    gives each block.
    """

    name: str
    blocks: int
    threads: int
    shared_bytes: int = 0


@frozen
class Launch:
    """The ``kernel``-th kernel, on the buffers that begin at ``places``."""

    kernel: int
    places: tuple[Place, ...]


@frozen
class Repeat:
    """The following ``body`` steps, ``count`` times at most; then ``last`` more, once.

    In the strides of the last ones the iteration is the number of iterations done.
    counter: int64, gets the iteration's number before each.  condition: bool, read after each: it
    goes on while that holds.  done: int64, gets the number of iterations.  guard: bool, read before
    the first; there is none if it does not hold.  work: of an iteration, taken from what is
    allowed where there is a condition.  origin: the model's node.
    """

    count: int
    body: int
    last: int
    counter: Place | None
    condition: Place | None
    done: Place | None
    guard: Place | None
    work: int
    origin: str


@frozen
class GpuPart:
    """Kernels for a GPU.

    source: of the kernels: OpenCL C for ``opencl``, PTX for ``cuda``.  binary: the same kernels in
    SPIR-V, for runtimes that take it; empty where there is none.  steps: in order; the steps of a
    loop follow it.  constants: arrays in ``data``.  memory_bytes: of the memory of a run.
    most_work: allowed to loops with a condition.  origins: the model's nodes that each call
    computes.
    """

    kind: ClassVar[str] = "gpu"

    target: str
    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    source: Content
    kernels: tuple[KernelEntry, ...]
    steps: tuple[Launch | Repeat, ...]
    constants: tuple[Constant, ...]
    data: Content
    memory_bytes: int
    most_work: int
    origins: tuple[tuple[str, ...], ...]
    binary: Content = b""

    def __post_init__(self) -> None:
        """Raises ModuleError for kernels, memories and steps that do not exist."""
        if min(self.memory_bytes, self.most_work) < 0:
            raise ModuleError(f"kernels with {self.memory_bytes} bytes, {self.most_work} work")
        for entry in self.kernels:
            if min(entry.blocks, entry.threads) < 1 or entry.shared_bytes < 0:
                raise ModuleError(f"kernel {entry.name} on {entry.blocks} x {entry.threads}")
        for each in self.constants:
            if min((*each.shape, each.offset)) < 0 or each.offset + each.bytes > len(self.data):
                raise ModuleError(
                    f"a constant of {each.bytes} bytes at {each.offset} of {len(self.data)}"
                )
        limits = {
            Space.INPUT: len(self.inputs),
            Space.OUTPUT: len(self.outputs),
            Space.CONSTANT: len(self.constants),
            Space.MEMORY: 1,
        }
        rest = len(self.steps)
        for step in self.steps:
            rest -= 1
            if isinstance(step, Launch):
                if not 0 <= step.kernel < len(self.kernels):
                    raise ModuleError(f"a launch of kernel {step.kernel} of {len(self.kernels)}")
                places = step.places
            else:
                if min(step.count, step.body, step.last) < 0 or step.body + step.last > rest:
                    raise ModuleError(f"a loop of {step.body} and {step.last} steps; {rest} follow")
                given = (step.counter, step.condition, step.done, step.guard)
                places = tuple(each for each in given if each is not None)
            for place in places:
                if not 0 <= place.number < limits[place.space] or place.offset < 0:
                    raise ModuleError(f"a place in {place.space.value} {place.number}")
