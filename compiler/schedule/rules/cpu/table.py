"""The rule for each kind of loops."""

from collections.abc import Mapping

from ....define.definition import Kind
from .contraction import schedule_contraction
from .elements import schedule_elements
from .recurrent import schedule_recurrent
from .rows import schedule_rows
from .rule import Rule, as_it_is
from .sorting import schedule_sorting
from .windows import schedule_windows
from .winograd import schedule_winograd

__all__ = ["RULES"]

RULES: Mapping[Kind, Rule] = {
    Kind.ATTENTION: as_it_is,
    Kind.CONTRACTION: schedule_contraction,
    Kind.CONVOLUTION: as_it_is,
    Kind.ELEMENTS: schedule_elements,
    Kind.INDEXING: as_it_is,
    Kind.ORDERED: as_it_is,
    Kind.RECURRENT: schedule_recurrent,
    Kind.ROWS: schedule_rows,
    Kind.SORTING: schedule_sorting,
    Kind.WINDOWS: schedule_windows,
    Kind.WINOGRAD: schedule_winograd,
}
