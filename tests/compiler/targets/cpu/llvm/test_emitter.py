"""Names that the emitter of LLVM's text gives."""

from dovetail.compiler.dtypes import DType
from dovetail.compiler.targets.cpu.llvm.emitter import Emitter, ModuleText
from dovetail.compiler.targets.cpu.llvm.target import host_cpu


def test_names_of_values_and_blocks_are_all_different() -> None:
    e = Emitter(ModuleText(host_cpu()))
    found = [e.label("loop"), e.label("loop"), e.name("loop"), e.name("loop"), e.label("loop")]
    found += [e.op("add i32 1, 2", DType.INT32).ref, e.slot(1, "i8", 1), e.label("v"), e.name()]
    bare = [each.removeprefix("%") for each in found]  # LLVM has one list for both
    assert len({*bare}) == len(bare)
