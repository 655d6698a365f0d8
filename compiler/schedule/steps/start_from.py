"""Integer sums that start from what is added to them, such as a bias."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import Binary, BinaryFunction, Constant, Load
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Function, Let, block, loops
from ...loops.traverse import own_expressions, variables, walk
from .reduction import Reduction, read_reduction

__all__ = ["StartFrom", "addend"]


@frozen
class StartFrom:
    """Start an integer sum from what is added to it.

        c[] = 0; for k: c[] add= p; let t = c[]: let v = t + b[i]: S(v)
        ->   c[] = b[i]; for k: c[] add= p; let v = c[]: S(v)

    c is int32, b an element of another buffer; t is used nowhere else.  Integer sums wrap, so their
    order makes no difference.
    """

    buffer: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"start of {self.buffer}"
        nest = read_reduction(function, self.buffer, what)
        added = addend(nest)
        if added is None:
            raise ScheduleError(
                f"{what}: required an int32 sum from 0, named, and used only to add an element of "
                "another buffer to it"
            )
        assert isinstance(nest.finish, Let)
        assert isinstance(nest.finish.body, Let)
        total = loops(tuple((x.variable, x.extent) for x in nest.summed), nest.update)
        finish = replace(nest.finish.body, value=nest.finish.value)
        start = replace(nest.start, value=added)
        return nest.site.replaced(Allocate(nest.register, block(start, total, finish)))


def addend(nest: Reduction) -> Load | None:
    """The element that is added to the sum; None where the step does not apply."""
    finish, register = nest.finish, nest.register
    if not isinstance(finish, Let) or not isinstance(finish.body, Let):
        return None
    total, following = finish.variable, finish.body
    value = following.value
    if register.dtype != DType.INT32 or nest.start.value != Constant(0, DType.INT32):
        return None
    if not isinstance(value, Binary) or value.function is not BinaryFunction.ADD:
        return None
    if nest.update.function is not BinaryFunction.ADD or finish.value != Load(register, ()):
        return None
    rest = [side for side in (value.left, value.right) if side != total]
    if len(rest) != 1 or not isinstance(rest[0], Load) or rest[0].buffer == register:
        return None
    if total.name in variables(rest[0]):
        return None
    used = (own for each in walk(following.body) for own in own_expressions(each))
    return None if any(total.name in variables(own) for own in used) else rest[0]
