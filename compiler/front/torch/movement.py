"""Operators that move elements to a tensor of their own."""

from collections.abc import Sequence

from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.movement import PadMode, PadTensor
from .context import Context, Converter, Number
from .views import VIEWS, axis_of, same, transpose

__all__ = ["MOVEMENT"]


def cat(context: Context, tensors: Sequence[Term], dim: int = 0) -> Term:
    """One after the other; empty lists are left out."""
    kept = [each for each in tensors if each.shape != (0,)] or list(tensors[:1])
    return concatenate([each.cast(context.dtype) for each in kept], dim)


def stack(context: Context, tensors: Sequence[Term], dim: int = 0) -> Term:
    """One after the other, along a new dimension."""
    axis = axis_of(dim, tensors[0].rank + 1)
    return cat(context, [each.unsqueeze(axis) for each in tensors], axis)


def repeat(context: Context, x: Term, repeats: Sequence[int] = (), **given: Sequence[int]) -> Term:
    """The tensor again and again, along each dimension."""
    counts = tuple(given.get("dims") or repeats)
    rank = max(len(counts), x.rank)
    x = x.reshape(*(1,) * (rank - x.rank), *x.shape)
    return x.tile(*(1,) * (rank - len(counts)), *counts)


def flip(context: Context, x: Term, dims: Sequence[int]) -> Term:
    """In reverse order."""
    return x.flip(*(axis_of(dim, x.rank) for dim in dims)) if x.rank else x


def roll(context: Context, x: Term, shifts: Sequence[int], dims: Sequence[int] = ()) -> Term:
    """Shifted around."""
    if not dims:
        return roll(context, x.reshape(-1), shifts, (0,)).reshape(*x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        axis = axis_of(dim, x.rank)
        size = x.shape[axis]
        at = -shift % size if size else 0
        if at:
            x = concatenate([x.slice(axis, at, size), x.slice(axis, 0, at)], axis)
    return x


def pad_by(
    x: Term, pad: Sequence[int], mode: PadMode = PadMode.CONSTANT, value: Number = 0
) -> Term:
    """Before and after, the last dimension first; a negative number cuts."""
    widths = [(0, 0)] * (x.rank - len(pad) // 2)
    widths += [(pad[n], pad[n + 1]) for n in range(len(pad) - 2, -1, -2)]
    if mode is PadMode.WRAP:
        x = _cut(x, widths)
    befores, afters = (tuple(max(each, 0) for each in side) for side in zip(*widths, strict=True))
    if any((*befores, *afters)):
        operator = PadTensor(befores, afters, mode)
        x = Term(x.context, x.context.emit(operator, x.tensor, x.lift(value).tensor))
    return x if mode is PadMode.WRAP else _cut(x, widths)


def _cut(x: Term, widths: Sequence[tuple[int, int]]) -> Term:
    for axis, (first, last) in enumerate(widths):
        if first < 0 or last < 0:
            x = x.slice(axis, max(-first, 0), x.shape[axis] - max(-last, 0))
    return x


def constant_pad(context: Context, x: Term, pad: Sequence[int], value: Number = 0) -> Term:
    """Padded with a number."""
    return pad_by(x, pad, value=value) if x.rank else x


def _pad(mode: PadMode) -> Converter:
    def convert(context: Context, x: Term, padding: Sequence[int]) -> Term:
        return pad_by(x, padding, mode)

    return convert


PADS = {"constant": PadMode.CONSTANT, "reflect": PadMode.REFLECT, "replicate": PadMode.EDGE,
        "circular": PadMode.WRAP}  # fmt: skip


def pad_mode(
    context: Context,
    x: Term,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Term:
    """Padded in any way."""
    if mode not in PADS:
        raise UnsupportedOperatorError(f"{context.where}: padding {mode!r}")
    return pad_by(x, pad, PADS[mode], value or 0)


def shuffle(context: Context, x: Term, groups: int) -> Term:
    """Channels of groups, in turns."""
    parts = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    return transpose(context, parts, 1, 2).reshape(*x.shape)


def pixel_shuffle(context: Context, x: Term, upscale_factor: int) -> Term:
    """``upscale_factor`` squared channels as one that is larger."""
    r = upscale_factor
    *batch, channels, height, width = x.shape
    parts = x.reshape(-1, channels // (r * r), r, r, height, width).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(context: Context, x: Term, downscale_factor: int) -> Term:
    """The inverse of ``pixel_shuffle``."""
    r = downscale_factor
    *batch, channels, height, width = x.shape
    parts = x.reshape(-1, channels, height // r, r, width // r, r).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(*batch, channels * r * r, height // r, width // r)


def meshgrid(context: Context, tensors: Sequence[Term], indexing: str = "ij") -> tuple[Term, ...]:
    """Coordinates of a grid."""
    sizes = [each.tensor.type.elements for each in tensors]
    found = []
    for axis, each in enumerate(tensors):
        line = each.reshape(*(size if n == axis else 1 for n, size in enumerate(sizes)))
        grid = line.expand(*sizes)
        found.append(transpose(context, grid, 0, 1) if indexing == "xy" else grid)
    return tuple(found)


MOVEMENT: dict[str, Converter] = {
    "aten.cat": cat,
    "aten.channel_shuffle": shuffle,
    "aten.clone": same,
    "aten.concat": cat,
    "aten.concatenate": cat,
    "aten.constant_pad_nd": constant_pad,
    "aten.flip": flip,
    "aten.lift_fresh_copy": same,
    "aten.meshgrid": meshgrid,
    "aten.pad": pad_mode,
    "aten.pixel_shuffle": pixel_shuffle,
    "aten.pixel_unshuffle": pixel_unshuffle,
    "aten.reflection_pad1d": _pad(PadMode.REFLECT),
    "aten.reflection_pad2d": _pad(PadMode.REFLECT),
    "aten.reflection_pad3d": _pad(PadMode.REFLECT),
    "aten.repeat": repeat,
    "aten.replication_pad1d": _pad(PadMode.EDGE),
    "aten.replication_pad2d": _pad(PadMode.EDGE),
    "aten.replication_pad3d": _pad(PadMode.EDGE),
    "aten.roll": roll,
    "aten.stack": stack,
    "aten.tile": repeat,
    **{f"{name}_copy": converter for name, converter in VIEWS.items() if name.count(".") == 1},
}
