"""A module whose machine code does what no model needs."""

from dovetail.compiler.targets.cpu.llvm.link import link
from dovetail.compiler.targets.cpu.llvm.optimize import Effort, to_object
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.runtime.module import Module
from dovetail.runtime.native.part import CpuPart
from dovetail.runtime.native.program import ProgramCode
from dovetail.runtime.tensors import TensorSignature

__all__ = ["CRASHES", "OPENS", "SPINS", "TAKES_MEMORY", "module_of"]

OPENS = """
@path = private constant [12 x i8] c"/etc/passwd\\00"
declare i32 @open(ptr, i32, ...)
declare i32 @socket(i32, i32, i32)
declare i32 @kill(i32, i32)
define i32 @main(ptr %pool, ptr %memory, ptr %inputs, ptr %outputs, ptr %constants) {
  %y = load ptr, ptr %outputs
  %file = call i32 (ptr, i32, ...) @open(ptr @path, i32 0)
  store i32 %file, ptr %y
  %socket = call i32 @socket(i32 2, i32 1, i32 0)
  %y1 = getelementptr i32, ptr %y, i64 1
  store i32 %socket, ptr %y1
  %signal = call i32 @kill(i32 0, i32 0)
  %y2 = getelementptr i32, ptr %y, i64 2
  store i32 %signal, ptr %y2
  ret i32 0
}
"""
"""Opens a file and a socket and asks whether it may signal others: gives three results."""
SPINS = """
define i32 @main(ptr %pool, ptr %memory, ptr %inputs, ptr %outputs, ptr %constants) {
  br label %again
again:
  call void asm sideeffect "", ""()
  br label %again
}
"""
CRASHES = """
define i32 @main(ptr %pool, ptr %memory, ptr %inputs, ptr %outputs, ptr %constants) {
  store volatile i32 1, ptr inttoptr (i64 8 to ptr)
  ret i32 0
}
"""
TAKES_MEMORY = """
declare ptr @malloc(i64)
define i32 @main(ptr %pool, ptr %memory, ptr %inputs, ptr %outputs, ptr %constants) {
  %y = load ptr, ptr %outputs
  %got = call ptr @malloc(i64 5368709120)
  %is = icmp ne ptr %got, null
  %number = zext i1 %is to i32
  store volatile i32 %number, ptr %y
  %y1 = getelementptr i32, ptr %y, i64 1
  store volatile i32 %number, ptr %y1
  %y2 = getelementptr i32, ptr %y, i64 2
  store volatile i32 %number, ptr %y2
  ret i32 0
}
"""
"""Asks for 5 GiB; gives 1 when it gets them."""


def module_of(text: str) -> Module:
    """A module without inputs but ``x``, float32[1], whose code gives ``y``, int32[3]."""
    target = CpuTarget.at_level("native")
    image = link(target.arch, [to_object(text, target, Effort.LIGHT)], ["main"])
    code = ProgramCode(image, "main", 64, 1, None, 1 << 30, ())
    x, y = TensorSignature("x", (1,), "float32"), TensorSignature("y", (3,), "int32")
    part = CpuPart((x,), (y,), code, (), bytes(64), target.cpu, tuple(target.flags), (), ())
    return Module.of_part(part)
