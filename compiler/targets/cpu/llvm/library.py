"""A program as an object file, or as a shared library with a C header.

The library needs the C library alone.  Its functions:

    int64_t NAME_memory_bytes(void);
    int32_t NAME_run(void *memory, const void *const *inputs, void *const *outputs);

memory: 64-byte aligned; null lets the library take it from malloc for the time of the call.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from dovetail.runtime.files import write_whole
from dovetail.runtime.native.program import ALIGNMENT, FIRST_STOP

from ....errors import CompilerError
from ....program.ir import Program
from .build import LlvmOptions, build_functions
from .main import main_text, memory_bytes
from .optimize import Effort, to_object
from .pool_layout import FIELD_BYTES, THREAD_BYTES
from .pool_text import START, pool_text
from .target import CpuTarget

__all__ = ["header_text", "write_library", "write_objects"]


def write_objects(
    program: Program, name: str, folder: Path, options: LlvmOptions | None = None
) -> list[Path]:
    """Write the program's object files, and NAME.bin, its constants, into ``folder``.

    Raises GraphError for what a CPU cannot run, and for a name that is none in C.
    """
    if not name.isidentifier() or not name.isascii():
        raise CompilerError(f"name {name!r}; required letters, digits and underscores, for C")
    options = options or LlvmOptions()
    target = CpuTarget.at_level(options.level)
    built = build_functions(program.functions, options)
    main = main_text(program, built, target, f"{name}_main")
    entry = _entry_text(program, name, memory_bytes(program, built), options.threads)
    modules = {f"{name}_main": main, f"{name}_entry": entry}
    if options.threads > 1:
        modules["dovetail_pool"] = pool_text(target.arch)
    objects = {each.symbol: each.code for each in built}
    objects |= {stem: to_object(text, target, Effort.LIGHT) for stem, text in modules.items()}
    paths = []
    for stem, code in objects.items():
        paths.append(folder / f"{stem}.o")
        paths[-1].write_bytes(code)
    with open(folder / f"{name}.bin", "wb") as file:
        for array, start in zip(program.constants.values(), _offsets(program), strict=False):
            file.seek(start)
            file.write(np.ascontiguousarray(array).tobytes())
        file.truncate(max(_offsets(program)[-1], 1))
    return paths


def write_library(
    program: Program, path: Path, options: LlvmOptions | None = None
) -> tuple[Path, Path]:
    """Write ``path``, a shared library, and its C header.  The header's path is second.

    The library's functions are called after its file, without ``lib``.  Raises CompilerError when
    there is no C compiler, or it fails.
    """
    name = path.name.split(".")[0].removeprefix("lib")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CompilerError(
            "a shared library needs a C compiler to link; found no cc, gcc or clang"
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        objects = write_objects(program, name, folder, options)
        data = folder / "constants.s"
        data.write_text(
            f".section .rodata\n.balign {ALIGNMENT}\n.global {name}_constants\n"
            f'.hidden {name}_constants\n{name}_constants:\n.incbin "{folder / name}.bin"\n'
            '.section .note.GNU-stack,"",@progbits\n'
        )
        exported = folder / "exported"
        exported.write_text(f"{{ global: {name}_run; {name}_memory_bytes; local: *; }};\n")
        flags = ["-shared", "-pthread", "-Wl,-z,defs", f"-Wl,--version-script={exported}"]
        flags += ["-o", str(folder / "library")]
        command = [compiler, *flags, *map(str, objects), str(data)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompilerError(f"{compiler} could not link {path.name}:\n{done.stderr}")
        write_whole(path, (folder / "library").read_bytes())
    header = path.with_name(f"{name}.h")
    write_whole(header, header_text(program, name).encode())
    return path, header


def header_text(program: Program, name: str) -> str:
    """The C header: what inputs and outputs are, in their order."""
    guard = f"DOVETAIL_{name.upper()}_H"
    lines = [f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>"]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for kind, buffers in (("inputs", program.inputs), ("outputs", program.outputs)):
        lines.append(f"/* {kind}, row-major:")
        lines += [
            f" * {number}: {buffer.name}, {buffer.dtype} {list(buffer.shape)}".replace("*/", "* /")
            for number, buffer in enumerate(buffers)
        ]
        lines.append(" */")
    lines += [
        "/* Bytes of memory that a call needs. */",
        f"int64_t {name}_memory_bytes(void);",
        f"/* memory: {ALIGNMENT}-byte aligned, or null: then it comes from malloc.",
        " * Returns 0; 1 if there is no memory; more if a loop does not end:",
        *(
            f" * {FIRST_STOP + n}: {each}".replace("*/", "* /")
            for n, each in enumerate(program.stops)
        ),
        " */",
        f"int32_t {name}_run(void *memory, const void *const *inputs, void *const *outputs);",
        *("#ifdef __cplusplus", "}", "#endif", "#endif"),
    ]
    return "\n".join(lines) + "\n"


def _offsets(program: Program) -> list[int]:
    """Offset of each constant in the file of constants, and the file's size."""
    offsets = [0]
    for array in program.constants.values():
        offsets.append(-(-(offsets[-1] + array.nbytes) // ALIGNMENT) * ALIGNMENT)
    return offsets


def _entry_text(program: Program, name: str, memory: int, threads: int) -> str:
    """The functions of the header; the first call starts the pool."""
    offsets = _offsets(program)
    count = len(program.constants)
    pointers = ", ".join(
        f"ptr getelementptr (i8, ptr @{name}_constants, i64 {start})" for start in offsets[:-1]
    )
    table = f"[{count} x ptr] [{pointers}]" if count else "[0 x ptr] zeroinitializer"
    size = max(-(-memory // ALIGNMENT), 1) * ALIGNMENT
    pool, start = "null", ""
    pool_text = ""
    if threads > 1:
        pool = "@pool"
        pool_text = f"""
@pool = internal global [{FIELD_BYTES + THREAD_BYTES * threads} x i8] zeroinitializer, align 64
@once = internal global i32 0
declare i64 @{START}(ptr, i64)
"""
        start = f"""
  %pair = cmpxchg ptr @once, i32 0, i32 1 seq_cst seq_cst
  %first = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %first, label %threads, label %ready
threads:
  %started = call i64 @{START}(ptr @pool, i64 {threads})
  br label %ready
ready:"""
    return f"""{pool_text}
@{name}_constants = external hidden global i8
@constants = internal constant {table}
declare noalias ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @{name}_main(ptr, ptr, ptr, ptr, ptr)

define i64 @{name}_memory_bytes() {{
  ret i64 {memory}
}}

define i32 @{name}_run(ptr %memory, ptr %inputs, ptr %outputs) {{
entry:{start}
  %none = icmp eq ptr %memory, null
  br i1 %none, label %take, label %given
given:
  %code = call i32 @{name}_main(ptr {pool}, ptr %memory, ptr %inputs, ptr %outputs, ptr @constants)
  ret i32 %code
take:
  %taken = call ptr @aligned_alloc(i64 {ALIGNMENT}, i64 {size})
  %failed = icmp eq ptr %taken, null
  br i1 %failed, label %short, label %run
short:
  ret i32 1
run:
  %result = call i32 @{name}_main(ptr {pool}, ptr %taken, ptr %inputs, ptr %outputs, ptr @constants)
  call void @free(ptr %taken)
  ret i32 %result
}}
"""
