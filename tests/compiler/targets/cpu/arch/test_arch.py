"""Records of kinds of CPUs: x86-64 runs elsewhere in the tests; AArch64 is emitted and linked."""

import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.compiler.errors import CompilerError
from dovetail.compiler.targets.cpu.arch.aarch64 import AARCH64
from dovetail.compiler.targets.cpu.arch.arch import Arch, Relocation
from dovetail.compiler.targets.cpu.arch.table import ARCHES, arch_of_triple
from dovetail.compiler.targets.cpu.arch.x86_64 import X86_64
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, build_program_code
from dovetail.compiler.targets.cpu.llvm.emitter import ModuleText
from dovetail.compiler.targets.cpu.llvm.functions import write_function
from dovetail.compiler.targets.cpu.llvm.link import link
from dovetail.compiler.targets.cpu.llvm.optimize import Effort, to_assembly, to_object
from dovetail.compiler.targets.cpu.llvm.pool import POOL_SYMBOLS
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.runtime.errors import DeviceError
from dovetail.runtime.native.host import require_flags

from ....program.programs import long_loop
from ..llvm.test_intrinsics import product

ROOT = Path(__file__).resolve().parents[5]


@pytest.mark.parametrize("arch", ARCHES, ids=lambda arch: arch.name)
def test_every_level_makes_code_with_a_pool(arch: Arch) -> None:
    assert arch_of_triple(arch.triple) is arch
    for level in arch.levels:
        code = build_program_code(long_loop(9), LlvmOptions(level, threads=2))
        assert code.main in code.image.symbols
        assert set(POOL_SYMBOLS) <= set(code.image.symbols)
        assert "pthread_create" in code.image.imports


@pytest.mark.parametrize(
    ("name", "level", "instruction"),
    [
        ("dot_uint8_int8_16", "armv8i8mm", "usdot"),
        ("dot_int8_int8_16", "armv8dot", "sdot"),
        ("columns_uint8_int8_8", "armv8i8mm", "usdot"),
        ("dot_uint8_int8_16", "armv8dot", "mla"),
        ("dot_int8_int8_4", "armv8", "smlal"),
        ("dot_bfloat16_bfloat16_16", "armv8", "fmla"),
    ],
)
def test_a_dot_product_of_aarch64_is_its_instruction(
    name: str, level: str, instruction: str
) -> None:
    target = CpuTarget.at_level(level)
    module = ModuleText(target)
    signature = write_function(module, product(name), "kernel")
    found = re.findall(r"\t(\w+)\s", to_assembly(module.text(), target, signature.effort))
    assert instruction in found
    if instruction.endswith("dot"):
        assert found.count(instruction) == int(name.rpartition("_")[2]) // 4


def built(text: str) -> bytes:
    return to_object(text, CpuTarget.at_level("armv8"), Effort.LIGHT)


CALLER = """
declare i64 @abs(i64)
define i64 @far(i64 %n) {
  %x = call i64 @near(i64 %n)
  %y = call i64 @abs(i64 %x)
  %z = add i64 %x, %y
  ret i64 %z
}
declare i64 @near(i64)
"""
TABLE = """
@table = internal constant [3 x i64] [i64 7, i64 8, i64 9], align 16
define i64 @near(i64 %n) {
  %at = getelementptr [3 x i64], ptr @table, i64 0, i64 %n
  %x = load i64, ptr %at
  ret i64 %x
}
"""


def words(code: bytes, start: int, count: int) -> list[int]:
    return list(struct.unpack_from(f"<{count}I", code, start))


def branches(code: bytes, start: int) -> list[int]:
    """Where BL and B from ``start`` on lead.  Source: Arm ARM, C6.2 (BL, B)."""
    found = []
    for n, word in enumerate(words(code, start, 12)):
        if word >> 26 in (0b100101, 0b000101):
            distance = (word & (1 << 26) - 1) - ((word & 1 << 25) << 1)
            found.append(start + 4 * n + 4 * distance)
        if word >> 25 == 0b1101011:
            break
    return found


def page(code: bytes, place: int) -> int:
    """The page that ADRP at ``place`` gives.  Source: Arm ARM, C6.2 (ADRP)."""
    (word,) = words(code, place, 1)
    assert word >> 31
    assert word >> 24 & 0b11111 == 0b10000
    distance = (word >> 5 & (1 << 19) - 1) << 2 | word >> 29 & 3
    return (place >> 12) + distance - ((distance & 1 << 20) << 1) << 12


def test_aarch64_is_linked() -> None:
    image = link(AARCH64, [built(CALLER), built(TABLE)], ["far", "near"])
    code = bytes(image.code)
    assert image.imports == ("abs",)
    near, abs_stub = branches(code, image.symbols["far"])
    assert near == image.symbols["near"]
    adrp, load, branch = words(code, abs_stub, 3)
    assert page(code, abs_stub) == 0
    assert adrp & 31 == 16
    assert load & 0xFFC003FF == 0xF9400211
    assert (load >> 10 & 0xFFF) * 8 == 0
    assert branch == 0xD61F0220
    start = image.symbols["near"]
    (place,) = (start + 4 * n for n in range(4) if words(code, start + 4 * n, 1)[0] >> 24 == 0x90)
    (add,) = (w for w in words(code, place, 4) if w >> 22 == 0b1001000100)
    table = page(code, place) + (add >> 10 & 0xFFF)
    assert struct.unpack_from("<3q", code, table) == (7, 8, 9)


def test_what_the_linker_does_not_know_is_refused() -> None:
    with pytest.raises(CompilerError, match=r"for machine 183, required 62 \(x86-64\)"):
        link(X86_64, [built(TABLE)], ["near"])
    without = replace(AARCH64, relocations={})
    with pytest.raises(CompilerError, match="does not link: relocation 275"):
        link(without, [built(TABLE)], ["near"])
    short = replace(AARCH64, relocations={**AARCH64.relocations, 283: Relocation(((2, 0),))})
    with pytest.raises(CompilerError, match="bytes are too far"):
        link(short, [built(CALLER), built(TABLE)], ["far"])


def test_another_kind_of_cpu_does_not_run_it() -> None:
    target = CpuTarget.at_level("armv8dot")
    with pytest.raises(DeviceError, match="lacks asimd, asimddp, fp"):
        require_flags(target.flags, target.cpu)


def test_code_generation_names_no_kind_of_cpu() -> None:
    """Texts and comparisons name no kind of CPU; comments and docstrings may, to say why."""
    named = re.compile(r"[\"'](?:[^\"'\n]*\b)?(?:x86|avx|sse\d|aarch64|neon|vnni)[^\"'\n]*[\"']")
    for path in sorted((ROOT / "compiler" / "targets" / "cpu").rglob("*.py")):
        if path.parent.name == "arch":
            continue
        source = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not named.search(source), path
