"""Loop functions, and programs of them, to machine code in this process."""

from collections.abc import Sequence

from dovetail.runtime.native.image import Image
from dovetail.runtime.native.program import ProgramCode

from ....errors import GraphError
from ....loops.ir import Function
from ....program.ir import Program
from ..arch.arch import Arch
from .build import FunctionBuilds, LlvmOptions, build_functions
from .functions import Signature
from .link import link
from .main import main_text, memory_bytes
from .module import CompiledModule, CompiledProgram
from .optimize import Effort, to_object
from .pool import POOL_SYMBOLS, pool_code, pool_object
from .target import CpuTarget

__all__ = ["LlvmOptions", "build_program_code", "compile_functions", "compile_program"]

_MAIN = "dovetail_main"


def compile_functions(
    functions: Sequence[Function], options: LlvmOptions | None = None
) -> CompiledModule:
    """Machine code of ``functions``, in this process.

    Raises GraphError for what a CPU cannot run and for two functions of one name, TargetError for
    a level this CPU does not have.
    """
    options = options or LlvmOptions()
    target = CpuTarget.at_level(options.level)
    target.require_host()
    names = [function.name for function in functions]
    if len(set(names)) < len(names):
        raise GraphError(f"two functions are called {max(names, key=names.count)}")
    built = build_functions(functions, options)
    signatures = {
        function.name: Signature(each.symbol, function, each.workspace_bytes, Effort.FULL)
        for function, each in zip(functions, built, strict=True)
    }
    objects = {each.symbol: each.code for each in built}
    image = _linked(target.arch, list(objects.values()), list(objects), options.threads)
    return CompiledModule(
        signatures, image, pool_code(target.arch, options.threads), options.threads
    )


def compile_program(
    program: Program, options: LlvmOptions | None = None, builds: FunctionBuilds | None = None
) -> CompiledProgram:
    """Machine code of all calls of ``program`` in order, in this process.

    builds: of its functions, as they were started on.
    Raises GraphError and TargetError as ``compile_functions``.
    """
    options = options or LlvmOptions()
    CpuTarget.at_level(options.level).require_host()
    return CompiledProgram(program, build_program_code(program, options, builds))


def build_program_code(
    program: Program,
    options: LlvmOptions | None = None,
    builds: FunctionBuilds | None = None,
    timed: bool = False,
) -> ProgramCode:
    """Machine code of all calls of ``program`` in order, for any CPU.

    builds: of its functions, as they were started on.  timed: as of ``main_text``; the clocks are
    the last of the program's memory.
    Raises GraphError for what a CPU cannot run, TargetError for no such level.
    """
    options = options or LlvmOptions()
    target = CpuTarget.at_level(options.level)
    functions = program.functions
    built = builds.finish(functions) if builds else build_functions(functions, options)
    objects = {each.symbol: each.code for each in built}
    text = main_text(program, built, target, _MAIN, timed)
    objects[_MAIN] = to_object(text, target, Effort.LIGHT)
    clocks = 8 * (len(program.calls) + 1) if timed else 0
    return ProgramCode(
        _linked(target.arch, list(objects.values()), [_MAIN], options.threads),
        _MAIN,
        memory_bytes(program, built) + clocks,
        options.threads,
        pool_code(target.arch, options.threads),
        program.most_work,
        program.stops,
    )


def _linked(arch: Arch, objects: list[bytes], symbols: list[str], threads: int) -> Image:
    """With the pool, if there are threads."""
    if threads > 1:
        return link(arch, [*objects, pool_object(arch)], [*symbols, *POOL_SYMBOLS])
    return link(arch, objects, symbols)
