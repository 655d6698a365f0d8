"""Linked images: calls across objects, constants, the C library; what cannot be linked."""

import ctypes

import pytest

from dovetail.compiler.errors import CompilerError
from dovetail.compiler.targets.cpu.arch.x86_64 import X86_64
from dovetail.compiler.targets.cpu.llvm.link import link as link_for
from dovetail.compiler.targets.cpu.llvm.optimize import Effort, to_object
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.native.image import Image, LoadedImage

CALLER = """
declare double @third(i64)
define double @twice(i64 %n) {
  %x = call double @third(i64 %n)
  %y = fmul double %x, 2.0
  ret double %y
}
"""
THIRD = """
@table = internal constant [3 x double] [double 1.5, double 2.5, double 10.0]
define double @third(i64 %n) {
  %at = getelementptr [3 x double], ptr @table, i64 0, i64 %n
  %x = load double, ptr %at
  ret double %x
}
"""
C_CALLS = """
declare i64 @strlen(ptr)
declare i32 @abs(i32)
define i64 @length(ptr %text) {
  %a = call i64 @strlen(ptr %text)
  %b = call i32 @abs(i32 -7)
  %c = sext i32 %b to i64
  %d = add i64 %a, %c
  ret i64 %d
}
"""


def link(objects: list[bytes], exported: list[str]) -> Image:
    return link_for(X86_64, objects, exported)


def built(text: str) -> bytes:
    return to_object(text, CpuTarget.at_level("x86-64"), Effort.LIGHT)


def test_objects_call_each_other_and_read_their_constants() -> None:
    for objects in ([CALLER, THIRD], [THIRD, CALLER]):
        image = link([built(each) for each in objects], ["twice"])
        assert not image.imports
        loaded = LoadedImage(image)
        twice = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(loaded.address("twice"))
        assert [twice(n) for n in range(3)] == [3.0, 5.0, 20.0]
        with pytest.raises(KeyError):
            loaded.address("third")


def test_functions_of_the_c_library_are_called_through_the_table() -> None:
    image = link([built(C_CALLS), built(THIRD)], ["length", "third"])
    assert image.imports == ("abs", "strlen")
    loaded = LoadedImage(image)
    length = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)(loaded.address("length"))
    assert length(b"hello") == 12


def test_an_image_runs_at_several_addresses_at_once() -> None:
    image = link([built(CALLER), built(THIRD)], ["twice"])
    loaded = [LoadedImage(image) for _ in range(3)]
    assert len({each.address("twice") for each in loaded}) == 3
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)
    assert [kind(each.address("twice"))(1) for each in loaded] == [5.0] * 3


def test_what_does_not_link_is_named() -> None:
    with pytest.raises(CompilerError, match="third is defined twice"):
        link([built(THIRD), built(THIRD)], ["third"])
    with pytest.raises(CompilerError, match="no symbol second"):
        link([built(THIRD)], ["second"])
    writes = "@x = global i32 3\ndefine ptr @f() {\n  ret ptr @x\n}"
    with pytest.raises(CompilerError, match=r"does not link: (it writes to \.data|relocation)"):
        link([built(writes)], ["f"])


def test_a_function_that_the_c_library_lacks_is_named() -> None:
    image = link([built(CALLER)], ["twice"])
    with pytest.raises(ModuleError, match="calls third, which the C library lacks"):
        LoadedImage(image)
