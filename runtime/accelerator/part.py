"""A part of a module that an accelerator runs: one program, and how the host serves it."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.isa.program import program_from_bytes

from ..errors import DeviceError, InputError, ModuleError
from ..host import pack, pack_rows, pack_windows, unpack
from ..manifest import Content
from ..module import Module
from ..tensors import TensorSignature
from .host_steps import HostStep
from .layouts import Memories, OwnWindows

__all__ = [
    "AcceleratorPart",
    "Blocks",
    "LayerFigures",
    "PartInput",
    "PartOutput",
    "Rows",
    "accelerator_part",
    "accelerator_parts",
]

Array = NDArray[Any]


@frozen
class Blocks:
    """A tensor of int8 as ``[channel blocks, height, width, lanes]``; channels beyond the last are
    ``fill``.
    """

    blocks: int
    height: int
    width: int
    lanes: int
    fill: int = 0

    def __post_init__(self) -> None:
        """Raises ModuleError for a ``fill`` that no byte holds."""
        if not -128 <= self.fill <= 127:
            raise ModuleError(f"channels filled with {self.fill}; required -128 to 127")

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the tensor in memory."""
        return self.blocks, self.height, self.width, self.lanes

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.blocks * self.height * self.width * self.lanes

    def pack(self, x: Array) -> Array:
        """int8[1, H, W, C] or int8[1, C] as it is in memory."""
        return pack(x, self.lanes, self.fill)


@frozen
class Rows:
    """An image int8[1, H, W, C] as ``rows`` rows of pixels, ``pitch`` bytes apart.

    transposed: rows are columns of the image.  pixel_bytes: from one pixel to the next.
    windows: that are there in place of the pixels.  count: of either in a row.
    fill: bytes without a channel, and pixels outside the image.
    planes: images that follow each other, each of as many channels.
    """

    rows: int
    pitch: int
    transposed: bool
    pixel_bytes: int
    windows: OwnWindows | None
    count: int
    fill: int
    planes: int

    def __post_init__(self) -> None:
        """Raises ModuleError for a layout that no image has."""
        own = self.windows or OwnWindows(1, 1, 0, self.pixel_bytes)
        if (
            min(self.rows, self.pitch, self.pixel_bytes, self.count, own.size, own.stride) < 1
            or self.planes < 1
            or not self.count * own.step <= self.pitch
            or not own.size * self.pixel_bytes <= own.step
            or not 0 <= own.before < own.size
            or own.stride > self.pitch
            or not -128 <= self.fill <= 127
        ):
            raise ModuleError(f"no image has the layout {self}; compile it again")

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.planes * self.rows * self.pitch

    def pack(self, x: Array) -> Array:
        """int8[1, H, W, C] as it is in memory."""
        planes = np.split(x, self.planes, -1) if x.shape[-1] % self.planes == 0 else [x]
        return np.concatenate([self._pack(plane) for plane in planes])

    def _pack(self, x: Array) -> Array:
        if self.windows is None:
            return pack_rows(x, self.pitch, self.transposed, self.pixel_bytes, self.fill)
        own = self.windows
        window, windows = (own.size, own.stride, own.before), (self.count, own.step)
        return pack_windows(x, self.pitch, self.transposed, window, windows, self.fill)


@frozen
class PartInput:
    """A tensor that the part takes, the steps the host takes with it, and its place then."""

    tensor: TensorSignature
    steps: tuple[HostStep, ...]
    address: int
    layout: Blocks | Rows

    def place(self, x: Array, dram: NDArray[np.uint8]) -> None:
        """Put the tensor into ``dram``.

        Raises InputError for NaN that is to be quantised, ModuleError for steps that do not fit.
        """
        try:
            for step in self.steps:
                x = step.run(x)
        except InputError as error:
            raise InputError(f"input {self.tensor.name!r}: {error}") from None
        if x.dtype != np.int8 or x.ndim not in (2, 4) or len(x) != 1:
            raise ModuleError(
                f"input {self.tensor.name!r} becomes {x.dtype}{list(x.shape)}; required int8 of "
                "one image; compile it again"
            )
        found = self.layout.pack(x).reshape(-1).view(np.uint8)
        if found.size != self.layout.size:
            raise ModuleError(
                f"input {self.tensor.name!r} takes {found.size} bytes, not {self.layout.size}; "
                "compile it again"
            )
        dram[self.address : self.address + found.size] = found


@frozen
class PartOutput:
    """A tensor that the part gives: the place of its int8 of ``shape``, and the steps after.

    pitch: bytes from one block of channels to the next.
    """

    tensor: TensorSignature
    address: int
    layout: Blocks
    shape: tuple[int, ...]
    steps: tuple[HostStep, ...]
    pitch: int

    def __post_init__(self) -> None:
        """Raises ModuleError for a shape that its blocks do not hold, or blocks that overlap."""
        layout = self.layout
        image = (1, 1) if len(self.shape) == 2 else self.shape[1:3]
        held = layout.blocks * layout.lanes
        if (
            len(self.shape) not in (2, 4)
            or self.shape[0] != 1
            or image != (layout.height, layout.width)
            or not held - layout.lanes < self.shape[-1] <= held
        ):
            raise ModuleError(f"{layout} holds no tensor of shape {list(self.shape)}")
        if self.pitch < self.block_bytes:
            raise ModuleError(f"blocks of {self.block_bytes} bytes are {self.pitch} bytes apart")

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of channels."""
        return self.layout.size // max(1, self.layout.blocks)

    @property
    def span(self) -> int:
        """Bytes from the first to the last."""
        return (self.layout.blocks - 1) * self.pitch + self.block_bytes

    @property
    def reads(self) -> tuple[tuple[int, int], ...]:
        """Places of its bytes: address and size of each run of them."""
        if self.pitch == self.block_bytes:
            return ((self.address, self.layout.size),)
        starts = range(self.address, self.address + self.span, self.pitch)
        return tuple((start, self.block_bytes) for start in starts)

    def take(self, dram: NDArray[np.uint8]) -> Array:
        """The tensor that is in ``dram``.

        Raises ModuleError for steps that do not fit.
        """
        raw = np.concatenate([dram[start : start + size] for start, size in self.reads])
        raw = raw.view(np.int8)
        x = unpack(raw.reshape(self.layout.shape), self.shape)
        for step in self.steps:
            x = step.run(x)
        return x


@frozen
class LayerFigures:
    """A layer: name, operators, multiply-accumulates, DRAM bytes, cycles, and its schedule.

    inexact_pairs: operands of a residual addition whose sum is not that of the float formula.
    schedule: the trace of its steps, as JSON values.
    """

    name: str
    kind: str
    macs: int
    dram_bytes: int
    expected_cycles: int = 0
    inexact_pairs: int = 0
    schedule: object = None

    def __post_init__(self) -> None:
        """Raises ModuleError for figures below 0."""
        if min(self.macs, self.dram_bytes, self.expected_cycles, self.inexact_pairs) < 0:
            raise ModuleError(f"layer {self.name!r} has figures below 0")


@frozen
class AcceleratorPart:
    """A program for an accelerator.

    configuration: of the accelerator, which need not be one of the package's.  fingerprint: of it.
    dram: memory before a run, with program, weights and parameters in place.
    roof_cycles: no program for the same layers takes less; 0 where nobody said.
    layer_of: the layer of each instruction.  memories: None where nothing was recorded.
    """

    kind: ClassVar[str] = "accelerator"

    configuration: HardwareConfig
    fingerprint: int
    dram: Content
    program_address: int
    program_bytes: int
    sources: tuple[PartInput, ...]
    results: tuple[PartOutput, ...]
    layers: tuple[LayerFigures, ...]
    layer_of: tuple[int, ...]
    expected_cycles: int = 0
    memories: Memories | None = None
    roof_cycles: int = 0

    def __post_init__(self) -> None:
        """Raises ModuleError for what is outside of memory, and counts that do not fit."""
        config = self.configuration
        for name in ("expected_cycles", "roof_cycles"):
            if getattr(self, name) < 0:
                raise ModuleError(f"{name} = {getattr(self, name)}; required at least 0")
        if config.fingerprint != self.fingerprint:
            raise ModuleError(
                f"fingerprint {self.fingerprint:#010x}; configuration {config.name!r} has "
                f"{config.fingerprint:#010x}"
            )
        places = [("the program", self.program_address, self.program_bytes)]
        tensors: tuple[PartInput | PartOutput, ...] = (*self.sources, *self.results)
        for each in tensors:
            size = each.span if isinstance(each, PartOutput) else each.layout.size
            places.append((f"tensor {each.tensor.name!r}", each.address, size))
        for name, start, size in places:
            if size < 1 or not 0 <= start <= len(self.dram) - size:
                raise ModuleError(
                    f"{name} has {size} bytes at {start:#x}; memory has {len(self.dram)}"
                )
        for each in tensors:
            layout = each.layout
            if isinstance(layout, Blocks) and (
                layout.lanes != config.block or min(layout.shape) < 1
            ):
                raise ModuleError(f"tensor {each.tensor.name!r} has the layout {layout}")
        if self.program_bytes % INSTRUCTION_BYTES or len(self.layer_of) != self.instruction_count:
            raise ModuleError(
                f"a program of {self.program_bytes} bytes, and layers of {len(self.layer_of)} "
                "instructions"
            )
        if not 0 <= min(self.layer_of) <= max(self.layer_of) < len(self.layers):
            raise ModuleError(f"instructions of layers that do not exist ({len(self.layers)} are)")

    @property
    def target(self) -> str:
        """Name of the target."""
        return f"vta:{self.configuration.name}"

    @property
    def inputs(self) -> tuple[TensorSignature, ...]:
        """Tensors it takes; one may have several places."""
        return tuple(dict.fromkeys(each.tensor for each in self.sources))

    @property
    def outputs(self) -> tuple[TensorSignature, ...]:
        """Tensors it gives."""
        return tuple(each.tensor for each in self.results)

    @property
    def instruction_count(self) -> int:
        """Instructions of the program."""
        return self.program_bytes // INSTRUCTION_BYTES

    @property
    def code(self) -> bytes:
        """The program's bytes."""
        return bytes(self.dram[self.program_address : self.program_address + self.program_bytes])

    @property
    def program(self) -> tuple[Instruction, ...]:
        """The program's instructions.  Raises ProgramError for bytes that are none."""
        return tuple(program_from_bytes(self.code))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all layers."""
        return sum(layer.macs for layer in self.layers)


def accelerator_parts(module: Module) -> tuple[AcceleratorPart, ...]:
    """The parts of ``module`` that an accelerator runs, in order; at least one.

    Raises DeviceError when there is none.
    """
    found = tuple(part for part in module.parts if isinstance(part, AcceleratorPart))
    if found:
        return found
    raise DeviceError(f"the module was compiled for {module.target!r}; required one for vta:CONFIG")


def accelerator_part(module: Module) -> AcceleratorPart:
    """The first of ``accelerator_parts``."""
    return accelerator_parts(module)[0]
