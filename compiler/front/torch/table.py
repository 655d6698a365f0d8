"""One converter for each operator; one for an overload alone has its name too."""

from collections.abc import Mapping

from .activations import ACTIVATIONS
from .attention import ATTENTION
from .columns import COLUMNS
from .composed import COMPOSED
from .context import Converter
from .contractions import CONTRACTIONS
from .elementwise import ELEMENTWISE
from .embeddings import EMBEDDINGS
from .factories import FACTORIES
from .indexing import INDEXING
from .losses import LOSSES
from .movement import MOVEMENT
from .normalisations import NORMALISATIONS
from .numbers import NUMBERS
from .quantized import QUANTIZED
from .recurrent import RECURRENT
from .reductions import REDUCTIONS
from .resize import RESIZE
from .sampling import SAMPLING
from .scattering import SCATTERING
from .views import VIEWS
from .windows import WINDOWS

__all__ = ["CONVERTERS", "IGNORED"]

CONVERTERS: Mapping[str, Converter] = {
    **ACTIVATIONS,
    **ATTENTION,
    **COLUMNS,
    **COMPOSED,
    **CONTRACTIONS,
    **ELEMENTWISE,
    **EMBEDDINGS,
    **FACTORIES,
    **INDEXING,
    **LOSSES,
    **MOVEMENT,
    **NORMALISATIONS,
    **NUMBERS,
    **QUANTIZED,
    **RECURRENT,
    **REDUCTIONS,
    **RESIZE,
    **SAMPLING,
    **SCATTERING,
    **VIEWS,
    **WINDOWS,
}

IGNORED = frozenset(
    {
        "aten._assert_async",
        "aten._assert_scalar",
        "aten._assert_tensor_metadata",
        "aten.sym_constrain_range",
        "aten.sym_constrain_range_for_size",
    }
)
"""Operators that only check: shapes are checked when the graph is made."""
