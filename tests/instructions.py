"""Instructions for tests, by what matters of them."""

from typing import Any

from dovetail.isa.instructions import Gemm

__all__ = ["gemm"]

LEVELS = 6


def gemm(*levels: tuple[int, int, int, int], **fields: Any) -> Gemm:
    """A Gemm of these loop levels, the others running once; addresses are 0 if not in ``fields``.

    levels: of each its count, and its strides in ACT, WGT and ACC.
    """
    whole = (*levels, *[(1, 0, 0, 0)] * (LEVELS - len(levels)))
    extent, act, wgt, acc = zip(*whole, strict=True)
    addresses = dict.fromkeys(("act_address", "wgt_address", "acc_address"), 0)
    strides = {"act_stride": act, "wgt_stride": wgt, "acc_stride": acc}
    return Gemm(**{**addresses, "extent": extent, **strides, **fields})
