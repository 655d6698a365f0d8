"""One converter for each ONNX operator; those of other domains are called ``domain.Operator``."""

from collections.abc import Mapping

from .blocks import BLOCKS
from .casts import CASTS
from .context import Converter
from .contractions import CONTRACTIONS
from .control import CONTROL
from .elementwise import ELEMENTWISE
from .generators import GENERATORS
from .indexing import INDEXING
from .movement import MOVEMENT
from .normalisations import NORMALISATIONS
from .qonnx import QONNX
from .quantized import QUANTIZED
from .recurrent import RECURRENT
from .reductions import REDUCTIONS
from .resize import RESIZE
from .sampling import SAMPLING
from .selection import SELECTION
from .sequences import SEQUENCES
from .signal import SIGNAL
from .training import TRAINING
from .windows import WINDOWS

__all__ = ["CONVERTERS"]

CONVERTERS: Mapping[str, Converter] = {
    **BLOCKS,
    **CASTS,
    **CONTRACTIONS,
    **CONTROL,
    **ELEMENTWISE,
    **GENERATORS,
    **INDEXING,
    **MOVEMENT,
    **NORMALISATIONS,
    **QONNX,
    **QUANTIZED,
    **RECURRENT,
    **REDUCTIONS,
    **RESIZE,
    **SAMPLING,
    **SELECTION,
    **SEQUENCES,
    **SIGNAL,
    **TRAINING,
    **WINDOWS,
}
