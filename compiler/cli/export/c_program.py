"""A model as plain C: a header and a source file that need no library but C's own."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dovetail.runtime.files import write_whole
from dovetail.runtime.gpu.part import GpuPart, Launch, Place, Repeat, Space
from dovetail.runtime.native.content import array_type
from dovetail.runtime.native.part import Constant

__all__ = ["OPTIONS", "c_name", "write_c"]

OPTIONS = "-std=c11 -O2 -fno-strict-aliasing"
"""Options for GCC and Clang, which the files are for."""
COLUMNS = 16
"""Numbers in a line."""
BITS = {"bfloat16": "uint16_t", "float16": "uint16_t", "bool": "uint8_t"}
FLOATS = {"float32": "float", "float64": "double"}


def c_name(stem: str) -> str:
    """The beginning of all names, from a file's."""
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    return f"model_{name}" if not name or name[0].isdigit() else name


def write_c(part: GpuPart, folder: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.h and NAME.c.

    part: compiled for plain C, by ``targets/gpu/target.py``'s ``PLAIN_C``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    header, source = folder / f"{name}.h", folder / f"{name}.c"
    write_whole(header, _header(part, name).encode())
    write_whole(source, _source(part, name).encode())
    return header, source


def _header(part: GpuPart, name: str) -> str:
    tensors = "\n".join(f"   {each}" for each in (*part.inputs, *part.outputs))
    return f"""\
#ifndef {name.upper()}_H
#define {name.upper()}_H
#include <stdint.h>

/* Compile with {OPTIONS}; link with -lm. */

#define {name.upper()}_MEMORY_BYTES {max(part.memory_bytes, 1)}

#ifdef __cplusplus
extern "C" {{
#endif

/* Runs the model once, on tensors of elements in the order of C's arrays:
{tensors}
   float16 and bfloat16 are their bits.  memory: at a multiple of 16; runs at a time have their own.
   Gives 0, and 1 for a loop that does not end. */
{_declaration(part, name)};

#ifdef __cplusplus
}}
#endif
#endif
"""


def _declaration(part: GpuPart, name: str) -> str:
    names = _arguments(part)
    count = len(part.inputs)
    given = [f"const {_type(a.dtype)} *{b}" for a, b in zip(part.inputs, names, strict=False)]
    given += [f"{_type(a.dtype)} *{b}" for a, b in zip(part.outputs, names[count:], strict=True)]
    return f"int {name}_run({', '.join((*given, 'void *memory'))})"


def _arguments(part: GpuPart) -> list[str]:
    """Names of inputs and outputs, each once, and none of C's words."""
    found: list[str] = []
    for number, each in enumerate((*part.inputs, *part.outputs)):
        name = "t_" + re.sub(r"\W", "_", each.name, flags=re.ASCII)
        found.append(f"{name}_{number}" if name in found else name)
    return found


def _type(dtype: str) -> str:
    """The type of elements in memory."""
    return BITS.get(dtype) or FLOATS.get(dtype) or f"{dtype}_t"


def _source(part: GpuPart, name: str) -> str:
    data = np.frombuffer(part.data, np.uint8)
    constants = "\n".join(
        f"static const {_type(each.dtype)} constant_{number}[] = {{\n{_numbers(each, data)}\n}};"
        for number, each in enumerate(part.constants)
    )
    lines = list(_steps(part, 0, len(part.steps), 0))
    if any(isinstance(each, Repeat) and each.condition for each in part.steps):
        lines.insert(0, f"int64_t rest = {min(part.most_work, 2**62)}LL;")
    text = "\n".join(lines)
    names = (*_arguments(part), "memory")
    unused = [f"(void){each};" for each in names if not re.search(rf"\b{each}\b", text)]
    body = "\n".join(f"  {each}" for each in (*unused, *lines, "return 0;"))
    head, _, rest = bytes(part.source).decode().partition("\n\n")
    return (
        f'#include "{name}.h"\n{head}\n\n{constants}\n\n{rest}\n'
        f"{_declaration(part, name)} {{\n{body}\n}}\n"
    )


def _numbers(constant: Constant, data: np.ndarray) -> str:
    count = int(np.prod(constant.shape, dtype=np.int64))
    array = np.frombuffer(data, array_type(constant.dtype), count, constant.offset)
    if constant.dtype in FLOATS:
        suffix = "f" if constant.dtype == "float32" else ""
        known = {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY"}
        texts = [known.get(str(each)) or f"{each.hex()}{suffix}" for each in array.tolist()]
    else:
        bits = array.view(np.uint16 if BITS.get(constant.dtype) == "uint16_t" else array.dtype)
        suffix = {"int64": "LL", "uint64": "ULL"}.get(constant.dtype, "")
        texts = [f"{int(each)}{suffix}" for each in bits.tolist()]
        lowest = f"{-(2**63)}LL"
        texts = ["INT64_MIN" if each == lowest else each for each in texts]
    rows = [texts[start : start + COLUMNS] for start in range(0, len(texts), COLUMNS)]
    return ",\n".join(", ".join(row) for row in rows) or "0"


def _steps(part: GpuPart, start: int, end: int, depth: int) -> Iterator[str]:
    """Lines of the steps from ``start`` to before ``end``, inside of so many loops."""
    while start < end:
        step = part.steps[start]
        start += 1
        if isinstance(step, Launch):
            places = ", ".join(_place(each, part) for each in step.places)
            yield f"{part.kernels[step.kernel].name}({places});"
        else:
            yield from _loop(part, step, start, depth)
            start += step.body + step.last


def _loop(part: GpuPart, loop: Repeat, start: int, depth: int) -> Iterator[str]:
    """As ``runtime/gpu/run.py`` has it."""
    guard = f" && {_flag(loop.guard, part)}" if loop.guard else ""
    yield "{"
    yield f"int64_t i{depth} = 0;"
    yield f"for (bool again = {loop.count}LL > 0{guard}; again;) {{"
    if loop.counter is not None:
        yield f"  *(int64_t *){_place(loop.counter, part)} = i{depth};"
    for each in _steps(part, start, start + loop.body, depth + 1):
        yield f"  {each}"
    yield f"  again = ++i{depth} < {loop.count}LL;"
    if loop.condition is not None:
        yield f"  again = {_flag(loop.condition, part)} && again;"
        yield f"  rest -= {max(loop.work, 1)}LL;"
        yield "  if (again && rest < 0) return 1;"
    yield "}"
    if loop.done is not None:
        yield f"*(int64_t *){_place(loop.done, part)} = i{depth};"
    yield from _steps(part, start + loop.body, start + loop.body + loop.last, depth + 1)
    yield "}"


def _flag(place: Place, part: GpuPart) -> str:
    """The C condition that a bool in memory is true."""
    return f"*(uint8_t *){_place(place, part)} != 0"


def _place(place: Place, part: GpuPart) -> str:
    """A byte's address."""
    match place.space:
        case Space.INPUT:
            base = _arguments(part)[place.number]
        case Space.OUTPUT:
            base = _arguments(part)[len(part.inputs) + place.number]
        case Space.CONSTANT:
            base = f"constant_{place.number}"
        case Space.MEMORY:
            base = "memory"
    terms = [str(place.offset)] if place.offset or not place.strides else []
    for depth, size, alternating in place.strides:
        terms.append(f"{size}LL * {f'(i{depth} % 2)' if alternating else f'i{depth}'}")
    offset = " + ".join(terms)
    return f"((char *){base}{f' + {offset}' if offset != '0' else ''})"
