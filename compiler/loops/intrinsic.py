"""Intrinsics: instructions of a target, declared by what they mean."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ..errors import GraphError
from .expressions import Buffer
from .ir import Function, Invoke

__all__ = ["BARRIER", "PREFETCH", "WAIT", "WAIT_BEFORE", "Intrinsic", "by_name"]

PREFETCH = "prefetch"
"""Name in ``Invoke`` that brings near a region that will soon be read.

It reads and writes nothing, and the region need not be in its buffer; targets may leave it out.
"""

BARRIER = "barrier"
"""Name in ``Invoke``, without operands, of the place where a block's threads wait for each other.

What it means for the order of accesses, and where it may stand, is in ``barriers.py``.
"""


WAIT = "wait"
"""Name in ``Invoke``, without operands, of the wait for a thread's own asynchronous copies.

It makes no thread wait for another: a barrier after it does.  See ``barriers.py``.
"""

WAIT_BEFORE = "wait_before"
"""As ``WAIT``, for what began before the last one of either: what began since goes on."""


@frozen
class Intrinsic:
    """An instruction and its meaning: a loop program over its parameters.

    The parameters are the meaning's inputs, then its outputs; an output may also be read, as an
    accumulator is.  How it is emitted is the backend's.

    asynchronous: the thread goes on before it is done; it is done at the next ``WAIT``.
    """

    name: str
    meaning: Function
    asynchronous: bool = False

    @property
    def parameters(self) -> tuple[Buffer, ...]:
        """In the order of ``Invoke``'s operands."""
        return (*self.meaning.inputs, *self.meaning.outputs)

    def check(self, call: Invoke) -> None:
        """Raise GraphError unless the call's regions have the parameters' shapes and dtypes.

        Dimensions of size 1 do not count.
        """
        if len(call.operands) != len(self.parameters):
            raise GraphError(
                f"{self.name}: found {len(call.operands)} operands; required {len(self.parameters)}"
            )
        for region, parameter in zip(call.operands, self.parameters, strict=True):
            same = _sizes(region.shape) == _sizes(parameter.shape)
            if not same or region.buffer.dtype != parameter.dtype:
                raise GraphError(
                    f"{self.name}: {parameter.name} is {region.buffer.dtype}{list(region.shape)} "
                    f"of {region.buffer.name}; required {parameter.dtype}{list(parameter.shape)}"
                )


def by_name(*intrinsics: Intrinsic) -> Mapping[str, Intrinsic]:
    """A table of intrinsics."""
    return {each.name: each for each in intrinsics}


def _sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
