"""Where a statement reads and writes, as its indices say separately.

It is found much faster than ``accesses``, which know the conditions around and what names stand
for; where this does not show that iterations keep apart, those may.
"""

from collections.abc import Sequence

from dovetail.isa.frozen import frozen

from .affine import linear
from .expressions import Buffer, Constant, Expr, Variable
from .intrinsic import PREFETCH
from .ir import Allocate, For, Invoke, Let, Stmt, Store, Update
from .traverse import loads, own_expressions, walk

__all__ = ["Place", "Places", "places"]


@frozen
class Place:
    """An element of a buffer, or a box: ``sizes`` from ``index`` on."""

    buffer: Buffer
    index: tuple[Expr, ...]
    sizes: tuple[int, ...]
    writes: bool


@frozen
class Places:
    """Places that a statement touches, in buffers that are not allocated in it.

    extents: of the loops in it, of those that are constant.  unknown: its other variables.
    """

    by_buffer: dict[str, list[Place]]
    extents: dict[str, int]
    unknown: set[str]

    def apart(self, buffer: str, loop: str) -> bool:
        """True if one dimension shows that no two iterations of ``loop``, with this statement as
        its body, touch one element: all of it moves by the same step, and differs by less inside.
        """
        found = self.by_buffer[buffer]
        return any(self._differs(found, axis, loop) for axis in range(len(found[0].index)))

    def _differs(self, found: Sequence[Place], axis: int, loop: str) -> bool:
        step, fixed, low, high = 0, dict[Expr, int](), 0, 0
        for number, place in enumerate(found):
            form = linear(place.index[axis])
            own = form.coefficient(loop)
            around: dict[Expr, int] = {}
            least = most = form.constant
            for atom, factor in form.terms.items():
                if not isinstance(atom, Variable) or atom.name in self.unknown:
                    return False
                if atom.name in self.extents:
                    span = factor * (self.extents[atom.name] - 1)
                    least, most = least + min(span, 0), most + max(span, 0)
                elif atom.name != loop:
                    around[atom] = factor
            most += place.sizes[axis] - 1
            if number == 0:
                step, fixed, low, high = own, around, least, most
            elif (own, around) != (step, fixed):
                return False
            low, high = min(low, least), max(high, most)
        return high - low < abs(step)


def places(stmt: Stmt) -> Places:
    """All places in ``stmt``."""
    found: dict[str, list[Place]] = {}
    extents: dict[str, int] = {}
    private, unknown = set[str](), set[str]()

    def add(
        buffer: Buffer, index: tuple[Expr, ...], writes: bool, sizes: tuple[int, ...] = ()
    ) -> None:
        place = Place(buffer, index, sizes or (1,) * len(index), writes)
        found.setdefault(buffer.name, []).append(place)

    for each in walk(stmt):
        match each:
            case For(variable=name, extent=Constant(value=value)):
                extents[name] = max(int(value), extents.get(name, 0))
            case For(variable=name):
                unknown.add(name)
            case Let(variable=variable):
                unknown.add(variable.name)
            case Allocate(buffer=buffer):
                private.add(buffer.name)
            case Store(buffer=buffer, indices=indices) | Update(buffer=buffer, indices=indices):
                add(buffer, indices, True)
            case Invoke(operands=regions) if each.intrinsic != PREFETCH:
                for region in regions:
                    add(region.buffer, region.start, True, region.shape)
            case _:
                pass
        for expr in own_expressions(each):
            for load in loads(expr):
                add(load.buffer, load.indices, False)
    outside = {name: own for name, own in found.items() if name not in private}
    return Places(outside, extents, unknown)
