"""Machine code for tests of results: optimised little, as it takes longer to make than to run."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache as once

import llvmlite.binding as llvm
import pytest

from dovetail.compiler.targets.cpu.llvm import build, cache, optimize
from dovetail.compiler.targets.cpu.llvm.optimize import Effort, to_object
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget, target_machine

__all__ = ["quickly_optimised"]

LEVEL = 0
"""Optimisation while LLVM selects instructions; 3 otherwise."""

SELECTION = "-fast-isel=false"
"""LLVM's fast way to select instructions, which it has at this level alone, makes one of a product
and a sum in some functions and not in others: results would differ in how they are rounded.
"""


@contextmanager
def quickly_optimised() -> Iterator[None]:
    """Inside, LLVM takes its short way with every function of a model.

    Its long one is that of tests of the target itself, and of every process that a test starts.
    """

    def quick(text: str, target: CpuTarget, effort: Effort) -> bytes:
        return to_object(text, target, Effort.LIGHT)

    _select_alike()
    compilers = cache._compiler_key
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimize, "target_machine", lambda target: target_machine(target, LEVEL))
        patch.setattr(build, "to_object", quick)
        patch.setattr(cache, "_compiler_key", lambda: compilers() + b"quick")
        yield


@once
def _select_alike() -> None:
    llvm.set_option("", SELECTION)
