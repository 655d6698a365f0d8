"""The boxes of buffers that accesses touch."""

from collections.abc import Sequence

from dovetail.isa.frozen import frozen

from .accesses import Access
from .affine import Linear
from .bounds import Bounds
from .expressions import Load, Variable
from .traverse import expressions, variables

__all__ = ["Box", "box_of", "covers"]


@frozen
class Box:
    """In each dimension the first index, a form in outer variables, and the size."""

    start: tuple[Linear, ...]
    shape: tuple[int, ...]


def box_of(found: Sequence[Access], shape: tuple[int, ...], outer: Bounds) -> Box:
    """The least box found that holds all elements that ``found``, accesses to one buffer, touch in
    one iteration of what is around; ``outer`` holds there.

    Where an index depends on outer variables in no common linear way, all of that dimension.
    """
    parts = [_dimension(found, axis, size, outer) for axis, size in enumerate(shape)]
    return Box(tuple(start for start, _ in parts), tuple(size for _, size in parts))


def _dimension(found: Sequence[Access], axis: int, size: int, outer: Bounds) -> tuple[Linear, int]:
    whole = Linear(0, {}), size
    base: Linear | None = None
    low, high = 0, 0
    for access in found:
        if access.bounds.empty:
            continue
        fixed, moving = _parts(access, axis, outer)
        if moving is None:
            return whole
        least, most = access.bounds.lower(moving), access.bounds.upper(moving)
        least, most = least + fixed.constant, most + fixed.constant
        if base is None:
            base, low, high = fixed, least, most
        elif base.terms != fixed.terms:
            return whole
        else:
            low, high = min(low, least), max(high, most)
    if base is None:
        return Linear(0, {}), min(size, 1)
    if not base.terms:
        low, high = max(low, 0), min(high, size - 1)
    if high - low + 1 >= size:
        return whole
    return Linear(low, base.terms), high - low + 1


def _parts(access: Access, axis: int, outer: Bounds) -> tuple[Linear, Linear | None]:
    """The terms of outer variables, and the others; None for the others when they are unbounded."""
    form = access.index[axis]
    inner = {loop.variable for loop in access.loops} | access.within | access.lets
    fixed = Linear(form.constant, {})
    moving = Linear(0, {})
    for atom, factor in form.terms.items():
        names = variables(atom)
        if any(isinstance(node, Load) for node in expressions(atom)):
            return fixed, None
        if names & inner or not names <= set(outer.ranges):
            moving = moving + Linear(0, {atom: factor})
        else:
            fixed = fixed + Linear(0, {atom: factor})
    return fixed, moving


def covers(access: Access, box: Box, shape: tuple[int, ...], outer: Bounds) -> bool:
    """True if ``access`` touches every element of the box that is in a buffer of ``shape``, where
    ``outer`` holds.

    It is proved for indices that are sums of loop variables as digits: ``start + 4 * i + j`` with j
    in 4; and for guards that say no more than that the index is in the buffer.
    """
    if access.conditional:
        return False
    inner = {loop.variable: loop for loop in access.loops}
    used: set[str] = set()
    inside = access.bounds.ranges
    for axis, (start, size) in enumerate(zip(box.start, box.shape, strict=True)):
        digits = access.index[axis] - start
        if digits.constant:
            return False
        reach = 1
        for atom, factor in sorted(digits.terms.items(), key=lambda term: abs(term[1])):
            if not isinstance(atom, Variable) or atom.name not in inner or atom.name in used:
                return False
            used.add(atom.name)
            if factor != reach:
                return False
            reach *= inside[atom.name][1] + 1
        if reach < size:
            return False
    limits = [
        limit
        for form, size in zip(access.index, shape, strict=True)
        for limit in (form * -1, form.shifted(1 - size))
    ]
    allowed = Bounds(access.bounds.ranges, tuple(limits))
    allowed = Bounds(allowed.ranges, (*outer.facts, *allowed.facts))
    own = [fact for fact in access.bounds.facts if fact not in outer.facts]
    return all(allowed.upper(fact) <= 0 for fact in own)
