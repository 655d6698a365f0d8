"""Native functions as machine code, kept in the cache folder between processes."""

import ctypes
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from dovetail import isa
from dovetail.isa.cache import cache_directory, fetch, keep

from .language import Native, Record
from .translate import translate
from .words import Words

__all__ = ["Library", "build"]


class Library:
    """Compiled functions."""

    def __init__(self, engine: llvm.ExecutionEngine, addresses: dict[Native, int]) -> None:
        # The code lives as long as its engine.
        self._engine, self._addresses = engine, addresses

    def call(self, function: Native, *arguments: Record | int) -> int:
        """Call a function that returns an int."""
        values = [
            argument.pointer if isinstance(argument, Record) else argument for argument in arguments
        ]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(values))
        return int(prototype(self._addresses[function])(*values))


def build(functions: Sequence[Native], lanes: int = 0, *, portable: bool = False) -> Library:
    """Machine code for this processor; from the cache if it is there.

    lanes: of the core; 0 when the functions have nothing to do with lanes. portable: whether to do
    without the instructions that only some processors have.
    Raises TranslationError for what is not of the native language, CacheError for a cache that is
    not the user's own.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features.flatten(), opt=2, codemodel="jitdefault", jit=True
    )
    names = [f"{function.__module__}.{function.__name__}" for function in functions]
    key = f"{names}{lanes}{portable}{cpu}{features.flatten()}{version('llvmlite')}{_sources()}"
    folder, entry = cache_directory(), f"native/{hashlib.sha256(key.encode()).hexdigest()[:24]}.o"
    code = fetch(folder, entry)
    if code is None:
        special = bool(features.get("avx512vnni")) and bool(features.get("avx512vl"))
        words = Words(lanes, vnni=special and not portable) if lanes else None
        code = _optimise(str(translate(functions, words)), machine)
        keep(folder, entry, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    addresses = {
        function: engine.get_function_address(name)
        for function, name in zip(functions, names, strict=True)
    }
    return Library(engine, addresses)


def _optimise(text: str, machine: llvm.TargetMachine) -> bytes:
    """The object code of an LLVM module."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


@cache
def _sources() -> str:
    """Hash of all that native code and its formats are made of."""
    digest = hashlib.sha256()
    for folder in (Path(isa.__file__).parent, Path(__file__).parent.parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
