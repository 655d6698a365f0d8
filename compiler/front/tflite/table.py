"""All converters, by the schema's names of the operators."""

from .activations import ACTIVATIONS
from .contractions import CONTRACTIONS
from .control import CONTROL
from .detection import DETECTION
from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .movement import MOVEMENT
from .node import Converter
from .pools import POOLS
from .quantization import QUANTIZATION
from .recurrent import RECURRENT
from .reductions import REDUCTIONS
from .resize import RESIZE
from .softmax import SOFTMAX
from .unary import UNARY

__all__ = ["CONVERTERS"]

CONVERTERS: dict[str, Converter] = {
    **ACTIVATIONS,
    **CONTRACTIONS,
    **CONTROL,
    **DETECTION,
    **ELEMENTWISE,
    **INDEXING,
    **MOVEMENT,
    **POOLS,
    **QUANTIZATION,
    **RECURRENT,
    **REDUCTIONS,
    **RESIZE,
    **SOFTMAX,
    **UNARY,
}
