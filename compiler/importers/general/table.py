"""One converter for each ONNX operator; those of other domains are called ``domain.Operator``."""

from collections.abc import Mapping

from .context import Converter
from .contractions import CONTRACTIONS
from .elementwise import ELEMENTWISE
from .normalisations import NORMALISATIONS
from .quantized import QUANTIZED
from .recurrent import RECURRENT
from .resize import RESIZE
from .sampling import SAMPLING
from .signal import SIGNAL
from .training import TRAINING
from .windows import WINDOWS

__all__ = ["CONVERTERS"]

CONVERTERS: Mapping[str, Converter] = {
    **CONTRACTIONS,
    **ELEMENTWISE,
    **NORMALISATIONS,
    **QUANTIZED,
    **RECURRENT,
    **RESIZE,
    **SAMPLING,
    **SIGNAL,
    **TRAINING,
    **WINDOWS,
}
