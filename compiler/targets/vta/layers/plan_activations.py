"""The halo, and the places of channels, of each activation of some layers."""

from collections.abc import Mapping

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import replace

from ....errors import UnsupportedOperatorError
from ....graph.ir import Graph
from ....graph.operators.assembly import Append
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.rules import Pads
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.windows import MaxPool2d
from ..appended import COLUMNS
from ..capabilities import image_size
from ..operators import AnyAdd, AnyMultiply
from ..passes.fuse import Layer, Partition
from ..passes.split_groups import is_depthwise
from .activation import Activation, Grid
from .image import find_image

__all__ = ["plan_activations", "spare_columns"]

LEAST_WIDTH = 41
"""Images that are narrower have tiles of all columns."""
MIDDLE = range(20, 41)
"""Columns of a tile that has all channels: a bank of ACC holds as many, but hardly more."""
MOST_SPARE = 8


def plan_activations(
    graph: Graph, partition: Partition, lanes: int, config: HardwareConfig | None = None
) -> dict[str, Activation]:
    """Every activation of the layers, with the halo that all its readers together need.

    lanes: of a block.  config: by which images are laid in DRAM; without, they stay as they are.
    Raises UnsupportedOperatorError when two readers need different halo values, or a tensor is of
    more than one image.
    """
    names = [chain.last for chain in partition.sources]
    names += [name for layer in partition.layers for name in (*layer.inputs, layer.output)]
    roots = dict.fromkeys(partition.root(name) for name in names)
    activations = {name: _plain(graph, name, lanes) for name in roots}
    _spread_parts(graph, partition, activations)
    for chain in partition.sources:
        image = _image(graph, partition, chain.last, lanes, config)
        if image:
            activations[image.name] = image
    needs: dict[str, tuple[int, str]] = {}
    for layer in partition.layers:
        operator = layer.nodes[0].operator
        if not isinstance(operator, Conv2d | MaxPool2d) or not any(operator.pads):
            continue
        name = partition.root(layer.inputs[0])
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
    keys = 0
    for node in partition.appended:
        height, width = activations[node.output].full_size
        if isinstance(node.operator, Append) and node.operator.axis == COLUMNS:
            keys = -(-height * width // lanes) * lanes
    for layer in partition.layers:
        if isinstance(layer.nodes[0].operator, RowProducts):
            root = activations[partition.root(layer.inputs[1])]
            size = root.full_size[0] * root.full_size[1]
            # Blocks of a new value are as far apart as those of a new key: a STORE may be of both.
            plane = keys if size == 1 and keys else size - size % -lanes
            activations[root.name] = replace(root, spare=plane - size)
    for node in partition.appended:
        plane = activations[node.output].plane
        for name in node.inputs:
            part = activations[name]
            size = part.full_size[0] * part.full_size[1]
            activations[name] = replace(part, spare=plane - size)
    _widen_rows(partition, activations)
    _align_operands(partition, activations)
    parts = {
        name: _part(graph, partition, activations, name)
        for name in dict.fromkeys(names)
        if name not in roots
    }
    return activations | parts


def _part(
    graph: Graph, partition: Partition, activations: Mapping[str, Activation], name: str
) -> Activation:
    """The activation ``name``, part of another."""
    view = partition.view(name)
    root, first = view.whole, view.channel
    whole, (_, height, width, channels) = activations[root], graph.types[name].shape
    places = whole.channel_places[first : first + channels]
    start = int(places[0])
    if start % whole.lanes or places[-1] - start != channels - 1:
        raise UnsupportedOperatorError(
            f"tensor {name!r}, channels {first} to {first + channels - 1} of {root!r}, does not "
            f"begin a block of {whole.lanes} lanes; required a part that does, and is one"
        )
    size = whole.full_size
    return replace(
        whole,
        channels=channels,
        height=height,
        width=width,
        first_block=start // whole.lanes,
        whole_channels=whole.blocks * whole.lanes,
        places=None,
        grid=Grid(*size, view.start, view.steps) if (height, width) != size else None,
    )


def _spread_parts(graph: Graph, partition: Partition, activations: dict[str, Activation]) -> None:
    """Let the parts of each concatenation begin blocks, and layers keep the places of channels.

    Raises UnsupportedOperatorError for operands of a sum whose channels have different places.
    """
    parts: dict[str, set[tuple[int, int]]] = {}
    for layer in partition.layers:
        view = partition.view(layer.output)
        if view.whole != layer.output:
            shape = graph.types[layer.output].shape
            parts.setdefault(view.whole, set()).add((view.channel, shape[3]))
    for root, whole in activations.items():
        leaves = sorted(parts.get(root, ()))
        if all(first % whole.lanes == 0 for first, _ in leaves):
            continue
        places: list[int] = []
        for _, channels in leaves:
            start = -(-(places[-1] + 1) // whole.lanes) * whole.lanes if places else 0
            places += range(start, start + channels)
        activations[root] = replace(whole, places=tuple(places))
    for layer in partition.layers:
        operator = layer.nodes[0].operator
        added = [name for name in _alike(layer) if name != layer.output]
        spread = {activations[partition.root(name)].places for name in added}
        if isinstance(operator, Conv2d) and operator.groups > 1 and not _depthwise(graph, layer):
            spread |= {None, activations[partition.root(layer.inputs[0])].places}
            if len(spread) > 1:
                raise UnsupportedOperatorError(
                    f"node {layer.name!r}: groups of channels that do not follow each other; "
                    "required parts that fill blocks"
                )
        elif not isinstance(operator, Conv2d) or operator.groups > 1:
            spread |= {activations[partition.root(layer.inputs[0])].places}
        elif spread:
            spread.add(None)
        whole_inputs = all(partition.root(name) == name for name in layer.inputs)
        if spread <= {None} or not whole_inputs:
            continue
        if len(spread) > 1 or layer.output not in activations:
            raise UnsupportedOperatorError(
                f"node {layer.name!r}: the channels of its operands or its result are not "
                "alike: some are parts, of sizes that are not a multiple of "
                f"{activations[partition.root(layer.output)].lanes}"
            )
        (places_,) = spread
        activations[layer.output] = replace(activations[layer.output], places=places_)


def _depthwise(graph: Graph, layer: Layer) -> bool:
    node = layer.nodes[0]
    operator = node.operator
    shape = graph.types[node.inputs[1]].shape
    return isinstance(operator, Conv2d) and is_depthwise(operator, shape)


def _image(
    graph: Graph,
    partition: Partition,
    name: str,
    lanes: int,
    config: HardwareConfig | None,
) -> Activation | None:
    """A source as windows of rows, if its only reader is a convolution that becomes faster so."""
    readers = [layer for layer in partition.layers if name in layer.inputs]
    viewed = name in {view.whole for view in partition.views.values()}
    if len(readers) != 1 or name in partition.result_roots or viewed:
        return None
    if readers[0].inputs[0] != name:
        return None
    node = readers[0].nodes[0]
    conv, shape = node.operator, graph.types[name].shape
    if not isinstance(conv, Conv2d) or conv.groups != 1 or conv.dilations != (1, 1):
        return None
    if len(shape) != 4:
        return None
    _, kernel_h, kernel_w, _ = graph.constants[node.inputs[1]].shape
    _, height, width, _ = graph.types[node.output].shape
    image = find_image(conv, shape, (kernel_h, kernel_w), (height, width), lanes, config)
    if image is None:
        return None
    return Activation(
        name,
        image.lanes_of(lanes),
        image.rows,
        image.columns,
        lanes,
        (image.halo[0], 0, image.halo[1], 0),
        conv.zero_point,
        image,
    )


def spare_columns(width: int) -> int:
    """Number of columns to add after those of an image, so that tiles of whole columns are of a
    middle size.
    """
    if width < LEAST_WIDTH:
        return 0
    tries = range(MOST_SPARE)
    return next((n for n in tries if any((width + n) % size == 0 for size in MIDDLE)), 0)


def _widen_rows(partition: Partition, activations: dict[str, Activation]) -> None:
    """Add columns after the last to what layers of rows read and write, for tiles that fit better.

    Nobody reads what is there, so the results may be anything.
    """
    for layer in partition.layers:
        if not isinstance(layer.nodes[0].operator, RowNorm | RowSoftmax):
            continue
        names = partition.root(layer.inputs[0]), partition.root(layer.output)
        if names != (layer.inputs[0], layer.output) or activations[layer.output].fill is not None:
            continue
        for name in names:
            old = activations[name]
            halo = _largest(old.halo, (0, 0, 0, spare_columns(old.width)))
            activations[name] = replace(old, halo=halo)


def _align_operands(partition: Partition, activations: dict[str, Activation]) -> None:
    """Give both operands of every residual add one halo, since one address walks over both.

    Halos only grow, to at most the largest there is, so this ends.
    """
    changed = True
    while changed:
        changed = False
        for layer in partition.layers:
            operands = [activations[partition.root(name)] for name in _summed(layer)]
            if len({operand.halo for operand in operands}) > 1:
                halo = _largest(*(operand.halo for operand in operands))
                for operand in operands:
                    activations[operand.name] = replace(operand, halo=halo)
                changed = True


def _alike(layer: Layer) -> tuple[str, ...]:
    """Activations whose channels meet each other, lane by lane."""
    if isinstance(layer.nodes[0].operator, AnyMultiply):
        return layer.inputs
    if any(isinstance(node.operator, RequantizeAdd) for node in layer.nodes):
        return (layer.inputs[1], layer.output)
    return _summed(layer)


def _summed(layer: Layer) -> tuple[str, ...]:
    """Activations that one address walks over: the operands of a sum, or one and the result."""
    if isinstance(layer.nodes[0].operator, AnyAdd):
        return layer.inputs
    if any(isinstance(node.operator, AnyAdd) for node in layer.nodes):
        return (layer.inputs[1], layer.output)
    return ()


def _largest(*halos: Pads) -> Pads:
    """The largest of each side."""
    top, left, bottom, right = (max(sides) for sides in zip(*halos, strict=True))
    return top, left, bottom, right


def _plain(graph: Graph, name: str, lanes: int) -> Activation:
    kind = graph.types[name]
    size = image_size(kind.shape)
    if size is None:
        raise UnsupportedOperatorError(
            f"tensor {name!r} is {kind}; required int8[1, H, W, C] or int8[1, C]: the "
            "accelerator runs one image at a time"
        )
    height, width, channels = size
    return Activation(name, channels, height, width, lanes)
