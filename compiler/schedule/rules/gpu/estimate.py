"""Time of a product of matrices by tiles on a large GPU: to choose between tiles.

Blocks run in waves, as many at a time as each multiprocessor has registers, shared memory and
threads for.  In a step all blocks of a wave copy rows of operands, and multiply them.  The step
takes as long as the slowest of these: the second level's cache, the multiprocessor's own way to it,
tensor cores, and the time that a copy takes to arrive.

    step = max(copied / L2_BYTES, copied of one / OWN_BYTES, products / RATE, LATENCY / steps ahead)
    microseconds = sum over waves (step * steps + results of one * STORED + START)

Constants are for an H100 (SXM), fitted to kernels measured on one on 2026-11-26, by ``mma`` and by
``wgmma``: of 16 products alone, without functions fused after them, within a quarter.  Another GPU
has other constants, but mostly the same best tiles.
"""

from dovetail.isa.frozen import frozen, replace

__all__ = ["Tiling", "Work", "microseconds", "plain_microseconds", "tiled_microseconds"]

MULTIPROCESSORS = 132
L2_BYTES = 9.0e6
"""A microsecond, of all, in rows of 128 bytes; measured in large products by ``wgmma``."""
HALF_L2_BYTES = 4.0e6
"""The same in rows of 64 bytes; measured in products by ``mma``."""
OWN_BYTES = 7.0e4
"""A microsecond, of one multiprocessor: two thirds of its 64 bytes a cycle."""
PRODUCTS = 7.5e6
"""A microsecond, of one multiprocessor: two of float16, four of int8; 989 TFLOP/s in all."""
TURN_RATE, TURN_ROWS = 0.68, 64
"""The part of PRODUCTS that warpgroups reach if they have more rows than this and multiply them in
turn; measured.
"""
WARP_RATE = 0.63
"""The part of PRODUCTS that ``mma`` reaches at best, with ``BUSY`` warps."""
BUSY = 8
MEETING = 0.05
"""Microseconds of a step in which a block's warps meet and nothing goes on."""
LATENCY = 0.27
"""Microseconds of a step that waits for its copy; measured with one warp a multiprocessor."""
START = 1.5
"""Microseconds from a block's first copy to its first product, and of its launch."""
STORED = 1e-4
"""Microseconds of a multiprocessor to store a result, with a bias."""
ELEMENTS = 2.3e3
"""Copied one by one, with their borders: a microsecond, of one multiprocessor; measured in 3x3
convolutions.
"""
ELEMENT = 0.07
"""Microseconds that a thread takes for one of them."""

TILE_STEP, TILE_WORK = 0.81, 0.64
"""Without tensor cores, of a step of 16 elements of a tile of 64x64: microseconds that it takes
alone, and that each of many takes of a multiprocessor; measured in BERT and in 2048x2048 matrices.
"""
TILE_SIDE, TILE_DEPTH, TILE_ITEMS = 64, 16, 16
"""The last: results of a thread."""
TILE_ELEMENT = 0.2
"""Microseconds of an element that a thread copies with its border; measured in ResNet-18."""
PLAIN, PLAIN_THREADS = 0.08, 512
"""Microseconds of an element of sums without shared memory, for so many threads of each
multiprocessor; measured in convolutions of UltraFace and ResNet-18.
"""

THREADS, REGISTERS, SHARED_BYTES, BLOCKS = 2048, 1 << 16, 227 << 10, 32
"""Limits of a multiprocessor; source: CUDA C++ Programming Guide, compute capability 9.0."""
RESERVED_BYTES = 1 << 10
"""Shared memory that a block takes besides its own."""
WARP, GROUP = 32, 128


@frozen
class Work:
    """count: products side by side, each of rows, columns and depth; element_bytes: of operands.

    whole: elements that divide all rows of operands in memory, 0 where none do: then elements are
    copied one by one.
    """

    count: int
    rows: int
    columns: int
    depth: int
    element_bytes: int
    whole: int

    @property
    def by_elements(self) -> "Work":
        """With operands that are copied one by one."""
        return replace(self, whole=0)


@frozen
class Tiling:
    """rows, columns: of a block's tile.  step_bytes: of each row of operands, in a step.

    registers: of a thread.  shared_bytes: of a block.  ahead: steps that copies have to arrive.
    grouped: whether warpgroups multiply.
    """

    rows: int
    columns: int
    threads: int
    step_bytes: int
    registers: int
    shared_bytes: int
    ahead: int
    grouped: bool = False

    @property
    def resident(self) -> int:
        """Blocks that a multiprocessor runs at a time; 0 where none fits."""
        return min(
            BLOCKS,
            THREADS // self.threads,
            REGISTERS // (self.threads * self.registers),
            SHARED_BYTES // (self.shared_bytes + RESERVED_BYTES),
        )


def microseconds(work: Work, tiling: Tiling) -> float:
    """The estimate; infinity for a tile that does not fit."""
    resident = tiling.resident
    if not resident:
        return float("inf")
    blocks = work.count * -(-work.rows // tiling.rows) * -(-work.columns // tiling.columns)
    steps = -(-work.depth * work.element_bytes // tiling.step_bytes)
    waves, rest = divmod(blocks, MULTIPROCESSORS * resident)
    whole = waves * _wave(work, tiling, MULTIPROCESSORS * resident, steps)
    return whole + (_wave(work, tiling, rest, steps) if rest else 0.0)


def tiled_microseconds(work: Work, sides: tuple[int, int] | None = None) -> float:
    """The estimate for tiles in shared memory, without tensor cores.

    sides: of the tiles of a convolution, whose elements are copied with their borders; None for
    those of 64x64 of rows in memory.
    """
    height, width = sides or (TILE_SIDE, TILE_SIDE)
    blocks = work.count * -(-work.rows // height) * -(-work.columns // width)
    each = -(-blocks // MULTIPROCESSORS)
    copied = TILE_DEPTH * TILE_ITEMS * (height + width) / (height * width)
    own = TILE_STEP if sides is None else copied * TILE_ELEMENT
    shared = each * TILE_WORK * height * width / TILE_SIDE**2
    return -(-work.depth // TILE_DEPTH) * max(own, shared) + START


def plain_microseconds(work: Work, items: int) -> float:
    """The estimate for convolutions by threads with so many results each, which share nothing."""
    threads = work.count * work.rows * work.columns / items
    return work.depth * PLAIN * max(1.0, threads / (MULTIPROCESSORS * PLAIN_THREADS)) + START


def _wave(work: Work, tiling: Tiling, blocks: int, steps: int) -> float:
    each = -(-blocks // MULTIPROCESSORS)
    rows, size = tiling.rows + tiling.columns, tiling.step_bytes
    warps = each * tiling.threads // WARP
    if tiling.grouped:
        turns = tiling.rows * GROUP > TURN_ROWS * tiling.threads
        rate = PRODUCTS * (TURN_RATE if turns else 1.0)
    else:
        rate = PRODUCTS * WARP_RATE * min(1.0, warps / BUSY)
    products = each * tiling.rows * tiling.columns * size / rate
    step = max(products, LATENCY / max(tiling.ahead, 1))
    if not work.whole:
        elements = rows * size // work.element_bytes
        step += max(each * elements / ELEMENTS, elements / tiling.threads * ELEMENT)
    else:
        bytes_ = rows * size
        total = L2_BYTES if size >= 128 else HALF_L2_BYTES * min(1.0, size / 64)
        copied = max(blocks * bytes_ / total, each * bytes_ / OWN_BYTES)
        step = max(step, copied)
        if not tiling.grouped:
            # Warps of one block wait for its copies and then multiply; other blocks go on.
            step += MEETING + min(products, copied) / each**2
    stored = each * tiling.rows * tiling.columns * STORED
    return step * steps + stored + START
