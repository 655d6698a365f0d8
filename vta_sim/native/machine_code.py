"""Native functions as machine code, kept in the cache folder between processes."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import version

import llvmlite.binding as llvm

from dovetail.isa.cache import cache_directory, fetch, keep

from .language import Native
from .library import Library, Substitute, names_of, sources_digest
from .translate import translate
from .words import Words

__all__ = ["build", "object_code"]


def build(
    functions: Sequence[Native],
    lanes: int = 0,
    *,
    portable: bool = False,
    own: Substitute | None = None,
) -> Library:
    """Machine code for this processor; from the cache if it is there.

    lanes: of the core; 0 when the functions have nothing to do with lanes. portable: whether to do
    without the instructions that only some processors have.  own: what stands in place of another
    function.
    Raises TranslationError for what is not of the native language, CacheError for a cache that is
    not the user's own.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features.flatten(), opt=2, codemodel="jitdefault", jit=True
    )
    names = names_of(functions)
    sources = sources_digest() + (own.digest if own else "")
    key = f"{names}{lanes}{portable}{cpu}{features.flatten()}{version('llvmlite')}{sources}"
    folder, entry = cache_directory(), f"native/{hashlib.sha256(key.encode()).hexdigest()[:24]}.o"
    code = fetch(folder, entry)
    if code is None:
        special = bool(features.get("avx512vnni")) and bool(features.get("avx512vl"))
        code = object_code(functions, lanes, machine, vnni=special and not portable, own=own)
        keep(folder, entry, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    addresses = {
        function: engine.get_function_address(name)
        for function, name in zip(functions, names, strict=True)
    }
    return Library(engine, addresses)


def object_code(
    functions: Sequence[Native],
    lanes: int,
    machine: llvm.TargetMachine,
    *,
    vnni: bool,
    own: Substitute | None = None,
) -> bytes:
    """An object file for ``machine``.

    lanes, own: as for ``build``.  vnni: whether the machine has AVX-512 VNNI, which is then used.
    Raises TranslationError for what is not of the native language.
    """
    words = Words(lanes, vnni=vnni) if lanes else None
    module = llvm.parse_assembly(str(translate(functions, words, own)))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code
