"""Element types that the graph carries as bits in uint8."""

from enum import StrEnum

import ml_dtypes
import numpy as np

__all__ = ["Narrow"]


class Narrow(StrEnum):
    """Element types of fewer than 8 bits, and floats of 8, by their names in ml_dtypes."""

    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8_E8M0FNU = "float8_e8m0fnu"
    FLOAT4_E2M1FN = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type, of one byte."""
        return np.dtype(getattr(ml_dtypes, self.value))
