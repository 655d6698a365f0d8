"""LLVM's stores with a mask: no byte that is not stored changes."""

import ctypes
from itertools import product

import numpy as np
import pytest

from dovetail.compiler.targets.cpu.arch.x86_64 import X86_64
from dovetail.compiler.targets.cpu.llvm.link import link
from dovetail.compiler.targets.cpu.llvm.optimize import Effort, to_object
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.runtime.native.image import LoadedImage

LANES = 4
MASKS = [mask for mask in product((False, True), repeat=LANES) if any(mask)]


def masked(name: str, wide: str, narrow: str, mask: tuple[bool, ...]) -> str:
    """Elements limited as a smaller kind has them, truncated, and some of them stored."""
    most = (1 << int(narrow[1:]) - 1) - 1
    vector, lanes = f"<{LANES} x {wide}>", ", ".join(f"i1 {str(lane).lower()}" for lane in mask)
    kind = f"v{LANES}{wide}"
    return f"""
define void @{name}(ptr %x, ptr %y) {{
  %v = load {vector}, ptr %x, align 1
  %a = call {vector} @llvm.smax.{kind}({vector} %v, {vector} splat ({wide} {-most - 1}))
  %b = call {vector} @llvm.smin.{kind}({vector} %a, {vector} splat ({wide} {most}))
  %t = trunc {vector} %b to <{LANES} x {narrow}>
  call void @llvm.masked.store.v{LANES}{narrow}.p0(
    <{LANES} x {narrow}> %t, ptr align 1 %y, <{LANES} x i1> <{lanes}>)
  ret void
}}
"""


@pytest.mark.parametrize(
    ("wide", "narrow"), [("i64", "i16"), ("i64", "i8"), ("i64", "i32"), ("i32", "i16")]
)
def test_nothing_behind_the_lanes_of_a_mask_is_written(wide: str, narrow: str) -> None:
    target = CpuTarget.at_level("native")
    x = np.array([3, -(1 << 30), 5, 1 << 30], f"int{wide[1:]}")
    text = "".join(masked(f"f{n}", wide, narrow, mask) for n, mask in enumerate(MASKS))
    functions = LoadedImage(
        link(
            X86_64,
            [to_object(text, target, Effort.FULL)],
            [f"f{number}" for number in range(len(MASKS))],
        )
    )
    limits = np.iinfo(f"int{narrow[1:]}")
    for number, mask in enumerate(MASKS):
        y = np.full(4 * LANES, 77, limits.dtype)
        wanted = y.copy()
        wanted[:LANES][list(mask)] = np.clip(x, limits.min, limits.max)[list(mask)]
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
            functions.address(f"f{number}")
        )
        function(x.ctypes.data, y.ctypes.data)
        np.testing.assert_array_equal(y, wanted, str(mask))
