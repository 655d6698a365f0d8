"""Record of where instructions put things, which a module keeps for the debugger."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from dovetail.isa.frozen import frozen
from dovetail.runtime.accelerator.layouts import GridLayout, ImageLayout, Memories, TensorPlace

from ...graph.ir import Graph
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .operators import AnyRequantize
from .passes.fuse import Layer, Partition

__all__ = ["Frame", "Part", "record"]


@frozen
class Frame:
    """Where a VECTOR instruction puts part of its layer's result, or a LOAD part of a halo.

    Element ``origin`` (block, row, column; the halo included) of the activation is at ``word``,
    or would; rows are ``row_words`` apart, blocks ``block_words``.
    addend: it is the convolution's result in a layer that then adds to it.  halo_of: the activation
    whose halo it is.
    """

    word: int
    row_words: int
    block_words: int
    origin: tuple[int, int, int] = (0, 0, 0)
    addend: bool = False
    halo_of: str | None = None


@frozen
class Part:
    """Part of a layer's constant that a LOAD fetches: ``place`` of it along each axis it is cut."""

    constant: str
    place: tuple[int, ...]


def record(
    graph: Graph,
    partition: Partition,
    activations: Mapping[str, Activation],
    layers: Sequence[LoweredLayer],
    addresses: Mapping[str, int],
    found: Sequence[Sequence[tuple[int, Frame | Part | None]]],
) -> Memories:
    """For the module.

    layers: of the partition.  addresses: of the activations that are in DRAM.  found: for each
    instruction, of all that it does, in order, the number of the layer and what is known.
    """
    made = {
        (number, addend): _addend(layer) if addend else layer.output
        for number, layer in enumerate(partition.layers)
        for addend in (False, True)
    }
    held = {name: name for name in activations}
    held |= {made[n, True]: made[n, False] for n in range(len(partition.layers))}
    tensors = {
        name: _place(name, graph.types[name].shape, name != whole, activations[whole], addresses)
        for name, whole in held.items()
    }
    numbers = {name: number for number, name in enumerate(tensors)}
    frames, constants = [], []
    for index, parts in enumerate(found):
        for number, each in parts:
            if isinstance(each, Frame):
                tensor = numbers[each.halo_of or made[number, each.addend]]
                rows, blocks = each.row_words, each.block_words
                frames.append((index, tensor, each.word, rows, blocks, *each.origin))
            elif each is not None:
                constants.append((index, each.constant, each.place))
    weights = tuple(
        tuple(layer.constants["weights"].shape) if "weights" in layer.constants else None
        for layer in layers
    )
    return Memories(tuple(tensors.values()), tuple(frames), tuple(constants), weights)


def _addend(layer: Layer) -> str:
    """The result of the layer's convolution, without what is added to it."""
    return next(
        (n.output for n in layer.nodes if isinstance(n.operator, AnyRequantize)), layer.output
    )


def _place(
    name: str, shape: tuple[int, ...], addend: bool, x: Activation, addresses: Mapping[str, int]
) -> TensorPlace:
    image, grid = x.image, x.grid
    return TensorPlace(
        name=name,
        shape=shape,
        root=x.name,
        addend=addend,
        first_block=x.first_block,
        blocks=x.whole.blocks,
        channels=x.channels,
        height=x.height,
        width=x.width,
        halo=x.halo,
        fill=x.fill,
        places=x.places or None,
        grid=None if grid is None else GridLayout(*astuple(grid)),
        address=addresses.get(x.name),
        spare=x.spare,
        image=None
        if image is None
        else ImageLayout(
            step=image.step,
            lead=image.lead,
            row_bytes=image.row_bytes,
            pitch=image.pitch,
            transposed=image.transposed,
            pixel_bytes=image.pixel_bytes,
            windows=image.windows,
            planes=image.planes,
            plane_blocks=image.plane_blocks(x.lanes),
        ),
    )
