"""Tensors of torch while a graph is made: they can be written to, and be views of each other."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.operators.indexing import ScatterElements, ScatterFunction

__all__ = ["Cell", "inserted"]

View = Callable[[Term], Term]


@dataclass(slots=True, eq=False)
class Cell:
    """A tensor whose value changes when an operator writes to it, or to what it is a view of.

    base: what it is a view of; view: computes it from the base's value.
    """

    value: Term
    base: "Cell | None" = None
    view: View | None = None
    writes: int = 0
    """To this tensor or a view of it."""
    _seen: int = field(default=0)
    """The base's ``writes`` that ``value`` knows of."""

    @classmethod
    def of_view(cls, value: Term, base: "Cell", view: View) -> "Cell":
        """A view that has ``value`` now."""
        return cls(value, base, view, _seen=base.changes())

    def changes(self) -> int:
        """Writes to this tensor, by any of its views."""
        return self.writes if self.base is None else self.base.changes()

    def read(self) -> Term:
        """The value now."""
        if self.base is not None and self.view is not None and self._seen != self.changes():
            self.value = self.view(self.base.read())
            self._seen = self.changes()
        return self.value

    def write(self, value: Term) -> None:
        """Another value, of the same type; a view's becomes part of its base's."""
        if self.base is None or self.view is None:
            self.value = value
            self.writes += 1
            return
        self.base.write(inserted(self.base.read(), self.view, value))
        self.value, self._seen = value, self.changes()


def inserted(base: Term, view: View, value: Term) -> Term:
    """``base`` with ``value`` in place of its elements that ``view`` takes.

    These are found by the view of the elements' numbers.
    """
    count = base.tensor.type.elements
    numbers = base.constant(np.arange(count).reshape(base.shape), DType.INT64)
    places = view(numbers)
    if places.shape == value.shape and places.tensor.type.elements == count:
        known = places.context.known(places.tensor)
        if known and np.array_equal(places.context.value(places.tensor).ravel(), range(count)):
            return value.reshape(*base.shape)
    operator = ScatterElements(0, ScatterFunction.REPLACE)
    flat = (base.reshape(count), places.reshape(-1), value.reshape(-1))
    written = base.context.emit(operator, *(each.tensor for each in flat))
    return Term(base.context, written).reshape(*base.shape)
