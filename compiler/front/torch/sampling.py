"""Pictures sampled where a grid says.  Source: PyTorch, aten/src/ATen/native/GridSampler.h."""

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.operators.elementwise import BinaryFunction as B
from .context import Context, Converter

__all__ = ["SAMPLING"]

LINEAR, NEAREST = range(2)
ZEROS, _, REFLECTION = range(3)


def grid_sampler(
    context: Context,
    x: Term,
    grid: Term,
    interpolation_mode: int = LINEAR,
    padding_mode: int = ZEROS,
    align_corners: bool = False,
) -> Term:
    """Elements of ``x``, [N, C, H, W], where ``grid``, [N, H', W', 2], says: x and y, -1 to 1."""
    if interpolation_mode not in (LINEAR, NEAREST):
        raise UnsupportedOperatorError(f"{context.where}: bicubic sampling")
    height, width = x.shape[2:]
    columns, rows = (
        _place(grid.slice(3, n, n + 1).reshape(*grid.shape[:3]), size, padding_mode, align_corners)
        for n, size in enumerate((width, height))
    )
    if interpolation_mode == NEAREST:
        return _taken(x, rows.rint(), columns.rint())
    top, left = rows.floor(), columns.floor()
    down, right = rows - top, columns - left
    total: Term | None = None
    for row, height_weight in ((top, 1.0 - down), (top + 1.0, down)):
        for column, width_weight in ((left, 1.0 - right), (left + 1.0, right)):
            weight = (height_weight * width_weight).unsqueeze(1)
            piece = _taken(x, row, column) * weight
            total = piece if total is None else total + piece
    assert total is not None
    return total


def _place(at: Term, size: int, padding: int, align_corners: bool) -> Term:
    """Coordinates of elements from those of the grid."""
    if align_corners:
        place = (at + 1.0) * ((size - 1) / 2)
        low, span = 0.0, float(size - 1)
    else:
        place = ((at + 1.0) * float(size) - 1.0) * 0.5
        low, span = -0.5, float(size)
    if padding == REFLECTION:
        if not span:
            return place * 0.0
        apart = (place - low).abs()
        turns = (apart / span).floor()
        rest = apart - turns * span
        odd = turns.binary(B.MOD, turns.lift(2.0)).equal(1.0)
        place = odd.where(span - rest, rest, place.dtype) + low
    return place if padding == ZEROS else place.clip(0.0, float(size - 1))


def _taken(x: Term, rows: Term, columns: Term) -> Term:
    """Elements at whole coordinates, [N, H', W'] each; 0 outside."""
    batch, channels, height, width = x.shape
    inside = (rows >= 0.0) & (rows <= height - 1.0) & (columns >= 0.0) & (columns <= width - 1.0)
    place = rows.clip(0.0, height - 1.0) * float(width) + columns.clip(0.0, width - 1.0)
    flat = place.cast(DType.INT64).reshape(batch, 1, -1)
    indices = flat.expand(batch, channels, flat.shape[2])
    found = x.reshape(batch, channels, height * width).take_elements(indices, 2)
    found = found.reshape(batch, channels, *rows.shape[1:])
    return inside.unsqueeze(1).where(found, 0.0, x.dtype)


SAMPLING: dict[str, Converter] = {
    "aten.grid_sampler": grid_sampler,
    "aten.grid_sampler_2d": grid_sampler,
}
