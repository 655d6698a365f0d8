"""Schedules of layers that do not fit in a scratchpad as a whole: tiles whose data all fit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import ADDEND
from .nest import Kernel, Ref, Total
from .read_nests import BYTE, HIGH, LOW
from .row_problems import ROW_PARTS
from .schedules import AXES, Scheduled, Tiling, divisors
from .tile_estimate import CONSTANTS, Estimator, Tile
from .windows import SLOTS, Window, localized, windows_of

__all__ = [
    "PARAMETERS",
    "StreamedLayer",
    "TileError",
    "best_tile",
    "stream_tiles",
    "streamed_layer",
]

PARAMETERS = ("bias", "scale")
"""Buffers of which a tile has only its part too: a word for each channel block, in PAR."""

OUTER = (("y", "x", "c"), ("c", "y", "x"))
"""Orders of the loops over tiles: inputs stay for all channels, or weights for all places."""

CRAMPED = 1.5
"""If no tile that takes at most so many times the cycles of a layer's fastest tile fits in ACT,
sums may have more parts than WGT requires.
"""


class TileError(DoesNotFitError):
    """Not even the smallest tile fits in what is left of ACT."""


@frozen
class StreamedLayer:
    """A layer, its tiles, and the windows of the activations that stay in DRAM, by name."""

    layer: LoweredLayer
    tiling: Tiling
    windows: Mapping[str, Window]

    @property
    def tiles(self) -> int:
        """How many tiles there are."""
        extents, sizes = self.layer.kernel.extents, self.tiling.sizes
        return prod(-(-extents[axis] // size) for axis, size in sizes.items())

    def kernel(self, scheduled: Scheduled) -> Kernel:
        """The nests of its schedule, on the buffers that hold what one tile touches."""
        kernel, windows = scheduled.kernel, dict(self.windows)
        output = kernel.nests[-1].name
        if output in windows:
            windows[ADDEND] = windows[LOW] = windows[BYTE] = windows[output]
        if self.layer.inputs[0].name in windows:
            windows[HIGH] = windows[self.layer.inputs[0].name]
        return localized(kernel, windows)


def stream_tiles(
    kernel: Kernel,
    activations: Mapping[str, Activation],
    config: HardwareConfig,
    depth: int = SLOTS,
    late: frozenset[str] = frozenset(),
) -> list[Tile]:
    """Every tile that is worth it, the fastest first; each needs less of ACT, or moves less, than
    those before.

    late: of the activations, inputs that the layer before makes, and an output that the next layer
    reads.  Nothing else runs while their first, or last, tile is moved.

    Raises DoesNotFitError when the sums or constants of no tile fit.
    """
    refs = kernel.refs
    uneven, far = _uneven(kernel, activations), kernel.is_far
    sizes = [
        each
        for each in _sizes(kernel, refs, config)
        if each["c"] == 1 or not far
        if not uneven
        or (
            (each["c"] == 1 or kernel.by_rows)
            and (each["x"] == kernel.extents["x"] or each["y"] == 1)
        )
    ]
    estimator = Estimator(kernel, activations, config, depth, late)

    def estimates(sizes: Mapping[str, int], least: Sequence[int] = ()) -> Iterator[Tile]:
        for outer, held in product(OUTER, (*least, *_parts_held(kernel, activations, sizes))):
            yield estimator.tile(sizes, outer, held)

    tiles = [tile for each in sizes for tile in estimates(each, (0,))]
    least = min((tile.cycles for tile in tiles), default=0)
    if all(tile.words > config.act_depth for tile in tiles if tile.cycles <= CRAMPED * least):
        tiles += [tile for each in _in_parts(kernel, sizes) for tile in estimates(each)]
    found: list[Tile] = []
    for tile in sorted(tiles, key=_fastest):
        if all(tile.words < other.words or tile.dram < other.dram for other in found):
            found.append(tile)
    return found


def _fastest(tile: Tile) -> tuple[int, int]:
    return tile.cycles, tile.words


def _in_parts(kernel: Kernel, sizes: Iterable[Mapping[str, int]]) -> Iterator[dict[str, int]]:
    """Tiles with the fewest parts above one, for those of ``sizes`` whose sums have one part.

    A buffer then need not hold the inputs of all channels, although WGT has room for their weights.
    """
    count = kernel.extents.get("k", 1)
    for each in sizes if count > 1 else ():
        if each["k"] == count:
            yield {**each, "k": divisors(count)[-2]}


def best_tile(kernel: Kernel, tiles: Sequence[Tile], act_words: int, price: float = 0.0) -> Tile:
    """The cheapest of ``stream_tiles`` that fits in ``act_words``.  price: what each cycle of DRAM
    adds.

    Raises TileError when none fits.
    """
    fitting = [tile for tile in tiles if tile.words <= act_words]
    if fitting:
        return min(fitting, key=lambda tile: tile.cycles + price * tile.dram)
    if not tiles:
        raise TileError(
            f"layer {kernel.name!r}: of two activations that one address walks over one is "
            "streamed, and no tile of whole rows fits; use a configuration with a deeper ACC"
        )
    least = min(tile.words for tile in tiles)
    raise TileError(
        f"layer {kernel.name!r}: act scratchpad: {least} words required for the "
        f"smallest tile, {act_words} available; use a configuration with a deeper ACT"
    )


def streamed_layer(
    layer: LoweredLayer, activations: Mapping[str, Activation], tile: Tile
) -> StreamedLayer:
    """The layer with ``tile``, and its windows."""
    kernel = layer.kernel
    apart = kernel.apart or _uneven(kernel, activations)
    tiling = Tiling(tile.sizes, tile.outer, tile.depth, _parted(kernel), apart, tile.held)
    return StreamedLayer(layer, tiling, windows_of(layer.kernel, activations, tiling))


def _uneven(kernel: Kernel, streamed: Mapping[str, Activation]) -> bool:
    """True if one address walks over two activations of which only one is streamed.

    Their blocks are then not equally far apart, and their rows only if they are whole.
    """
    for nest in kernel.nests:
        if isinstance(nest.value, Total):
            names = {nest.value.left.ref.buffer.name, nest.value.right.ref.buffer.name}
            last = kernel.nests[-1].name
            alike = {ADDEND: nest.name, LOW: last, BYTE: last, HIGH: kernel.operand}
            names = {alike.get(name, name) for name in names}
            if len({name in streamed for name in names}) > 1:
                return True
    return False


def _parted(kernel: Kernel) -> tuple[str, ...]:
    """``PARAMETERS``, when each channel block of the layer has some, and tiles have some blocks."""
    bias = kernel.refs.get("bias")
    return PARAMETERS if bias and bias.buffer.shape[0] > 1 and not kernel.by_rows else ()


def _sizes(
    kernel: Kernel, refs: Mapping[str, Ref], config: HardwareConfig
) -> Iterator[dict[str, int]]:
    """Every tile whose sums fit in a bank of ACC, and its constants in half of their memory.

    If not even the constants of one window fit in half, they may take all of it.

    Raises DoesNotFitError when they do not fit at all.
    """
    extents = kernel.extents
    taps = extents.get("ky", 1) * extents.get("kx", 1)
    if "taps" in refs:
        taps = refs["taps"].buffer.shape[1]
    parts = {"k": extents["k"]} if "k" in extents else {}
    most = 0
    for name in CONSTANTS.keys() & refs.keys():
        most = _room(kernel, taps, CONSTANTS[name], config)
        if parts:
            parts["k"] = max(d for d in divisors(extents["k"]) if d * taps <= most)
    for sizes in product(*(divisors(extents[axis]) for axis in AXES)):
        if _parted(kernel) and 2 * sizes[0] > config.par_depth:
            continue
        if "acc" in refs and kernel.sum_words * prod(sizes) > config.bank_words(Memory.ACC):
            continue
        rows = prod(sizes[1:])
        if kernel.by_images:
            if rows == extents["y"] * extents["x"] and sizes[0] == extents["c"]:
                yield dict(zip(AXES, sizes, strict=True))
            continue
        if kernel.by_rows and (sizes[0] < extents["c"] or ROW_PARTS * rows > config.par_depth):
            continue
        if most and sizes[0] * parts.get("k", 1) * taps > most:
            continue
        yield dict(zip(AXES, sizes, strict=True)) | parts


def _parts_held(
    kernel: Kernel, activations: Mapping[str, Activation], sizes: Mapping[str, int]
) -> list[int]:
    """Numbers of iterations of k whose inputs a buffer may hold, if it need not hold all.

    There are none where a tile's sums have one part, or all of them read the same blocks.
    """
    count, part = kernel.extents.get("k", 1), sizes.get("k", 1)
    read = [ref for name, ref in kernel.refs.items() if name in activations]
    moved = (each for each in read if each.indices[0].coefficient("k"))
    if part == count or all(activations[each.buffer.name].image for each in moved):
        return []
    return [part * parts for parts in divisors(count // part)[:-1]]


def _room(kernel: Kernel, taps: int, memory: Memory, config: HardwareConfig) -> int:
    """Words of ``memory`` that a tile may use, which must hold the ``taps`` words of a window."""
    depth = config.depth(memory)
    if taps > depth:
        raise DoesNotFitError(
            f"layer {kernel.name!r}: {memory.value} scratchpad: {taps} words required for one "
            f"window, {depth} available; use a configuration with a deeper {memory.name}"
        )
    return depth // 2 if taps <= depth // 2 else depth
