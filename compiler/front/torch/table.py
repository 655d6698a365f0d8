"""One converter for each operator; one for an overload alone has its name too."""

from collections.abc import Mapping

from .activations import ACTIVATIONS
from .attention import ATTENTION
from .context import Converter
from .contractions import CONTRACTIONS
from .elementwise import ELEMENTWISE
from .factories import FACTORIES
from .indexing import INDEXING
from .movement import MOVEMENT, MOVEMENT_VIEWS
from .normalisations import NORMALISATIONS
from .numbers import NUMBERS
from .reductions import REDUCTIONS
from .resize import RESIZE
from .windows import WINDOWS

__all__ = ["CONVERTERS", "IGNORED", "VIEWS"]

CONVERTERS: Mapping[str, Converter] = {
    **ACTIVATIONS,
    **ATTENTION,
    **CONTRACTIONS,
    **ELEMENTWISE,
    **FACTORIES,
    **INDEXING,
    **MOVEMENT,
    **NORMALISATIONS,
    **NUMBERS,
    **REDUCTIONS,
    **RESIZE,
    **WINDOWS,
}

VIEWS = frozenset(MOVEMENT_VIEWS)
"""Operators whose results share the elements of their first argument."""

IGNORED = frozenset(
    {
        "aten._assert_async",
        "aten._assert_scalar",
        "aten._assert_tensor_metadata",
        "aten.sym_constrain_range",
        "aten.sym_constrain_range_for_size",
    }
)
"""What only checks: shapes are checked when the graph is made."""
