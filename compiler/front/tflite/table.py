"""All converters, by the schema's names of the operators."""

from .contractions import CONTRACTIONS
from .elementwise import ELEMENTWISE
from .movement import MOVEMENT
from .node import Converter
from .pools import POOLS
from .quantization import QUANTIZATION
from .reductions import REDUCTIONS
from .softmax import SOFTMAX

__all__ = ["CONVERTERS"]

CONVERTERS: dict[str, Converter] = {
    **CONTRACTIONS,
    **ELEMENTWISE,
    **MOVEMENT,
    **POOLS,
    **QUANTIZATION,
    **REDUCTIONS,
    **SOFTMAX,
}
