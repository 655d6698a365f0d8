"""Activations in the accelerator's blocked layout, and which halo each has.

An activation of C channels is int8[C / lanes, top + H + bottom, left + W + right, lanes]: channels
in blocks, with the halo its readers need.  Channels beyond C hold anything; their weights are 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import UnsupportedOperatorError
from ..graph.fuse import Layer, Partition
from ..graph.ir import Graph
from ..graph.ops import Add, Conv2d, MaxPool2d, Pads
from .image import Image, find_image
from .ir import Affine, Buffer, Ref, Scope

__all__ = ["Activation", "plan_activations"]


@dataclass(frozen=True, slots=True)
class Activation:
    """An on-chip tensor: ``channels`` in blocks of ``lanes``, and its halo.

    halo: top, left, bottom, right.  fill: what the halo holds; None when nobody reads it.
    image: when its words are windows of an image's rows; then ``channels`` are bytes of a window.
    first_block, whole_channels: of a part of a tensor called ``name`` with that many channels: the
    block of the tensor that is the part's first.
    """

    name: str
    channels: int
    height: int
    width: int
    lanes: int
    halo: tuple[int, int, int, int] = (0, 0, 0, 0)
    fill: int | None = None
    image: Image | None = None
    first_block: int = 0
    whole_channels: int | None = None

    @property
    def blocks(self) -> int:
        """Channel blocks."""
        return -(-self.channels // self.lanes)

    @property
    def rows(self) -> int:
        """Rows with the halo."""
        return self.height + self.halo[0] + self.halo[2]

    @property
    def columns(self) -> int:
        """Columns with the halo."""
        return self.width + self.halo[1] + self.halo[3]

    @property
    def whole(self) -> "Activation":
        """The tensor that this is part of; itself, when it is whole."""
        if self.whole_channels is None:
            return self
        return replace(self, channels=self.whole_channels, first_block=0, whole_channels=None)

    @property
    def words(self) -> int:
        """Words of ACT."""
        return self.blocks * self.rows * self.columns

    @property
    def buffer(self) -> Buffer:
        """The whole tensor as a buffer."""
        shape = (self.whole.blocks, self.rows, self.columns, self.lanes)
        return Buffer(self.name, shape, "int8", Scope.ACT)

    def at(self, block: Affine, row: Affine, column: Affine, lane: Affine) -> Ref:
        """An element by its place without the halo."""
        place = (block + self.first_block, row + self.halo[0], column + self.halo[1], lane)
        return Ref(self.buffer, place)


def plan_activations(graph: Graph, partition: Partition, lanes: int) -> dict[str, Activation]:
    """Every activation of the layers, with the halo that all its readers together need.

    Raises UnsupportedOperatorError when two readers need different halo values, or a tensor is of
    more than one image.
    """
    names = (partition.source, *(layer.output for layer in partition.layers), *partition.views)
    roots = dict.fromkeys(partition.root(name)[0] for name in names)
    activations = {name: _plain(graph, name, lanes) for name in roots}
    first = _image(graph, partition, lanes)
    if first:
        activations[first.name] = first
    needs: dict[str, tuple[int, str]] = {}
    for layer in partition.layers:
        operator = layer.nodes[0].operator
        if not isinstance(operator, Conv2d | MaxPool2d) or not any(operator.pads):
            continue
        name, _ = partition.root(layer.inputs[0])
        if activations[name].image:
            continue
        fill = operator.zero_point if isinstance(operator, Conv2d) else -128
        known = needs.setdefault(name, (fill, layer.name))
        if known[0] != fill:
            raise UnsupportedOperatorError(
                f"nodes {known[1]!r} and {layer.name!r} pad one tensor with {known[0]} and {fill}; "
                "required one value"
            )
        old = activations[name]
        activations[name] = replace(old, halo=_largest(old.halo, operator.pads), fill=fill)
    _align_operands(partition, activations)
    parts = {
        name: _part(graph, partition, activations, name) for name in names if name not in roots
    }
    return activations | parts


def _part(
    graph: Graph, partition: Partition, activations: Mapping[str, Activation], name: str
) -> Activation:
    """The activation ``name``, part of another."""
    root, first = partition.root(name)
    whole, channels = activations[root], graph.types[name].shape[3]
    if first % whole.lanes:
        raise UnsupportedOperatorError(
            f"tensor {name!r} begins at channel {first} of {root!r}; required a multiple of "
            f"{whole.lanes}: the accelerator joins and parts channels in blocks of that many"
        )
    return replace(
        whole,
        channels=channels,
        first_block=first // whole.lanes,
        whole_channels=whole.channels,
    )


def _image(graph: Graph, partition: Partition, lanes: int) -> Activation | None:
    """The source as windows of rows, if its only reader is a convolution that this makes faster."""
    name = partition.source
    readers = [layer for layer in partition.layers if name in layer.inputs]
    viewed = name in {whole for whole, _ in partition.views.values()}
    if len(readers) != 1 or name == partition.result or viewed:
        return None
    node = readers[0].nodes[0]
    conv, shape = node.operator, graph.types[name].shape
    if not isinstance(conv, Conv2d) or conv.groups != 1 or conv.dilations != (1, 1):
        return None
    if len(shape) != 4:
        return None
    _, kernel_h, kernel_w, _ = graph.constants[node.inputs[1]].shape
    _, height, width, _ = graph.types[node.output].shape
    image = find_image(conv, shape, (kernel_h, kernel_w), (height, width), lanes)
    if image is None:
        return None
    return Activation(
        name,
        image.window_bytes,
        image.rows,
        image.columns,
        lanes,
        (image.halo[0], 0, image.halo[1], 0),
        conv.zero_point,
        image,
    )


def _align_operands(partition: Partition, activations: dict[str, Activation]) -> None:
    """Give both operands of every residual add one halo, since one address walks over both.

    Halos only grow, to at most the largest there is, so this ends.
    """
    changed = True
    while changed:
        changed = False
        for layer in partition.layers:
            operands = [activations[partition.root(name)[0]] for name in _summed(layer)]
            if len({operand.halo for operand in operands}) > 1:
                halo = _largest(*(operand.halo for operand in operands))
                for operand in operands:
                    activations[operand.name] = replace(operand, halo=halo)
                changed = True


def _summed(layer: Layer) -> tuple[str, ...]:
    """Activations that one address walks over: the operands of a sum, or one and the result."""
    if isinstance(layer.nodes[0].operator, Add):
        return layer.inputs
    if any(isinstance(node.operator, Add) for node in layer.nodes):
        return (layer.inputs[1], layer.output)
    return ()


def _largest(*halos: Pads) -> Pads:
    """The largest of each side."""
    top, left, bottom, right = (max(sides) for sides in zip(*halos, strict=True))
    return top, left, bottom, right


def _plain(graph: Graph, name: str, lanes: int) -> Activation:
    kind = graph.types[name]
    match kind.shape:
        case (1, height, width, channels):
            return Activation(name, channels, height, width, lanes)
        case (*ones, channels) if all(size == 1 for size in ones):
            return Activation(name, channels, 1, 1, lanes)
        case _:
            raise UnsupportedOperatorError(
                f"tensor {name!r} is {kind}; required int8[1, H, W, C] or int8[1, C]: the "
                "accelerator runs one image at a time"
            )
