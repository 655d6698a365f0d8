"""WGSL, the language of WebGPU.

It has no pointers and no types but bool, int32, uint32 and float32.  All of a program's memory is
one array of words of 32 bits, with buffers as parts: int64 takes two, and int8, int16, bool
and float16 some bits of one.  A kernel that stores such a part has atomic words: a store changes
only its own bits, so threads whose elements share a word do not harm each other.  Values of int8
and int16 are computed as int32, int64 as pairs of uint32.
Source: WebGPU Shading Language (W3C).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dovetail.runtime.gpu.arena import MOST_BLOCKS

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import COMPARISONS, Binary, Cast, Expr, Unary
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ....loops.ir import Allocate, Function, Store, Update
from ....loops.rewrite import map_expr, map_statement
from ....loops.traverse import expressions, operands, walk
from ..kernels import Kernel, Parameter
from ..maths import expanded
from .clike import OF_BOOL, SIGNS
from .dialect import NARROW_FLOATS, Dialect, Held
from .indices import with_short_indices
from .wgsl_functions import has_function, needed

__all__ = ["Wgsl", "refused"]

MOST_THREADS = 256
"""Threads of a block that every implementation has."""
WIDE = (DType.INT64, DType.UINT64)
SIGNED = (DType.INT8, DType.INT16, DType.INT32)
PLAIN = {
    *(U.EXP, U.LOG, U.SINH, U.COSH, U.TANH, U.ASIN, U.ACOS, U.ATAN, U.ASINH, U.ACOSH, U.ATANH),
    U.ERF,
}
"""Functions that become arithmetic, since WGSL allows large errors in its own, or has none."""
OF_INTEGERS = {*(U.NOT, U.NEG, U.ABS, U.FLOOR, U.CEIL, U.TRUNC, U.RINT, U.ISNAN, U.ISINF)}
WORDS = {U.RINT: "round"}


class Wgsl(Dialect):
    """See ``Dialect``."""

    name = "wgsl"
    index = DType.INT32
    barrier = "storageBarrier(); workgroupBarrier();"
    types: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "bool",
        DType.INT8: "i32",
        DType.INT16: "i32",
        DType.INT32: "i32",
        DType.INT64: "vec2<u32>",
        DType.UINT8: "u32",
        DType.UINT16: "u32",
        DType.UINT32: "u32",
        DType.UINT64: "vec2<u32>",
        DType.FLOAT16: "f32",
        DType.BFLOAT16: "f32",
        DType.FLOAT32: "f32",
    }

    def __init__(self) -> None:
        super().__init__()
        self._memory = "words"

    def type(self, dtype: DType) -> str:
        """As ``Dialect``.  Raises GraphError for float64, which WGSL has not."""
        if dtype not in self.types:
            raise GraphError(f"WGSL has no {dtype}")
        return self.types[dtype]

    def head(self) -> str:
        return (
            "@group(0) @binding(0) var<storage, read_write> words: array<u32>;\n"
            "@group(0) @binding(0) var<storage, read_write> shared_words: array<atomic<u32>>;\n"
            "struct Places { at: array<vec4<u32>, 16> }\n"
            "@group(0) @binding(1) var<uniform> places: Places;"
        )

    def prepare(self, kernel: Kernel) -> Kernel:
        """As ``Dialect``.  Raises GraphError for more threads or buffers than there may be."""
        if kernel.geometry.threads > MOST_THREADS:
            raise GraphError(
                f"a block of {kernel.geometry.threads} threads; WebGPU has {MOST_THREADS}"
            )
        if len(kernel.parameters) > 64:
            raise GraphError(f"a kernel of {len(kernel.parameters)} buffers; WebGPU's has 64")
        memory = {each.buffer.name for each in kernel.parameters}
        self._memory = "words"
        for stmt in walk(kernel.body):
            if isinstance(stmt, Store | Update) and stmt.buffer.name in memory:
                shared = stmt.buffer.dtype.bytes < 4
                self._memory = "shared_words" if shared else self._memory
        body = map_statement(kernel.body, lambda expr: map_expr(expr, _plain))
        return replace(kernel, body=with_short_indices(body))

    def kernel(self, name: str, kernel: Kernel, shared: Sequence[str], lines: Sequence[str]) -> str:
        given = "@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) own: u32"
        head = f"@compute @workgroup_size({kernel.geometry.threads})\nfn {name}({given}) {{"
        return "\n".join((*shared, head, *lines, "}"))

    def numbers(self, kernel: Kernel) -> list[str]:
        shape = kernel.geometry
        found = []
        if shape.blocks > MOST_BLOCKS:
            found.append(f"let block_id = i32(group.y * {MOST_BLOCKS}u + group.x);")
            found.append(f"if (block_id >= {shape.blocks}) {{ return; }}")
        elif shape.blocks > 1:
            found.append("let block_id = i32(group.x);")
        return found + ["let thread_id = i32(own);"] * (shape.threads > 1)

    def parameter(self, number: int, parameter: Parameter, own: str, name: str) -> str:
        size = parameter.buffer.dtype.bytes
        place = f"i32(places.at[{number // 4}].{'xyzw'[number % 4]})"
        if own:
            place = f"({place} + ({own}) * {parameter.buffer.elements * size})"
        return f"let {name} = {place}{f' / {min(size, 4)}' if size > 1 else ''};"

    def let(self, dtype: DType, name: str, value: str) -> str:
        return f"let {name}: {self.type(dtype)} = {value};"

    def scalar(self, dtype: DType, name: str) -> str:
        return f"var {name}: {self.type(dtype)};"

    def array(self, dtype: DType, name: str, count: int, shared: bool) -> str:
        return f"var{'<workgroup>' if shared else ''} {name}: array<{self.type(dtype)}, {count}>;"

    def loop(self, name: str, extent: str) -> str:
        return f"for (var {name}: i32 = 0; {name} < {extent}; {name}++)"

    def load(self, dtype: DType, held: Held, name: str, place: str) -> str:
        if held is not Held.MEMORY:
            return name if held is Held.SCALAR else f"{name}[{place}]"
        if dtype.bytes == 8:
            self.type(dtype)
            first = f"{name} + 2 * {place}"
            return f"vec2<u32>({self._word(first)}, {self._word(f'{first} + 1')})"
        at = f"{name} + {place}" if place != "0" else name
        if dtype.bytes == 4:
            return self.bitcast(DType.UINT32, dtype, self._word(at))
        bits = f"{self._function(f'load{8 * dtype.bytes}_{self._memory}')}({at})"
        if dtype in NARROW_FLOATS:
            return f"{self._function(f'from_{dtype.value}')}({bits})"
        return self.cast(DType.UINT32, dtype, bits)

    def _word(self, at: str) -> str:
        at = f"{self._memory}[{at}]"
        return f"atomicLoad(&{at})" if self._memory == "shared_words" else at

    def store(self, dtype: DType, held: Held, name: str, place: str, value: str) -> str:
        if held is not Held.MEMORY:
            return f"{name if held is Held.SCALAR else f'{name}[{place}]'} = {value};"
        at = f"{name} + {place}" if place != "0" else name
        if dtype.bytes == 8:
            function = self._function(f"store64_{self._memory}")
            return f"{function}({name} + 2 * {place}, {value});"
        if dtype.bytes < 4:
            if dtype in NARROW_FLOATS:
                value = f"{self._function(f'to_{dtype.value}')}({value})"
            else:
                value = self.cast(dtype, DType.UINT32, value)
            return f"{self._function(f'store{8 * dtype.bytes}')}({at}, {value});"
        value = self.bitcast(dtype, DType.UINT32, value)
        if self._memory == "shared_words":
            return f"atomicStore(&shared_words[{at}], {value});"
        return f"words[{at}] = {value};"

    def _function(self, name: str) -> str:
        """The name of a function of ``functions.wgsl``, which is noted with those that it calls."""
        self.functions |= needed(name)
        return f"dv_{name}"

    def constant(self, value: float | bool, dtype: DType) -> str:
        self.type(dtype)
        if dtype is DType.BOOL:
            return "true" if value else "false"
        if dtype.is_float:
            exact = np.float32(np.asarray(value, dtype.numpy))
            if math.isfinite(exact) and exact != 0:
                text = f"{float(exact).hex()}f"
                return f"({text})" if exact < 0 else text
            bits = int(exact.view(np.uint32))
            return f"{self._function('float')}({bits:#x}u)" if bits else "0.0f"
        if dtype in WIDE:
            whole = int(value) & (1 << 64) - 1
            return f"vec2<u32>({whole & 0xFFFFFFFF}u, {whole >> 32}u)"
        if dtype not in SIGNED:
            return f"{int(value)}u"
        return f"i32({int(value)})" if int(value) < 0 else f"{int(value)}i"

    def select(self, condition: str, chosen: str, other: str) -> str:
        return f"select({other}, {chosen}, {condition})"

    def unary(self, function: U, dtype: DType, a: str) -> str:
        """As ``Dialect``.  Raises GraphError for functions of analysis of integers."""
        if dtype.is_float:
            if function in (U.ISNAN, U.ISINF):
                return f"{self._function(function.value)}({a})"
            if function is U.NEG:
                return f"(-{a})"
            known = has_function(function.value)
            word = self._function(function.value) if known else WORDS.get(function, function.value)
            return self._rounded(dtype, f"{word}({a})")
        match function:
            case U.NOT:
                return f"(!{a})" if dtype is DType.BOOL else self._wrapped(dtype, f"(~{a})")
            case U.NEG:
                return self.binary(B.SUB, dtype, self.constant(0, dtype), a)
            case U.ABS if dtype is DType.INT64:
                negative = self.binary(B.LT, dtype, a, self.constant(0, dtype))
                return self.select(negative, self.unary(U.NEG, dtype, a), a)
            case U.ABS if dtype.is_signed:
                return self._wrapped(dtype, f"abs({a})")
            case U.ABS | U.FLOOR | U.CEIL | U.TRUNC | U.RINT:
                return a
            case U.ISNAN | U.ISINF:
                return "false"
            case _:
                raise GraphError(f"WGSL has no {function} of {dtype}")

    def binary(self, function: B, dtype: DType, a: str, b: str, index: bool = False) -> str:
        """As ``Dialect``; int32 and uint32 wrap separately."""
        if dtype in WIDE:
            own = f"{function.value}_{dtype.value}"
            name = own if has_function(own) else f"{function.value}_wide"
            return f"{self._function(name)}({a}, {b})"
        if dtype is DType.BOOL:
            if function in (B.ADD, B.SUB, B.XOR):
                return f"({a} != {b})"
            if function in OF_BOOL or function in (B.AND, B.OR, B.EQ, B.NE):
                return f"({a} {OF_BOOL.get(function) or SIGNS[function]} {b})"
            wide = self.binary(function, DType.UINT32, f"u32({a})", f"u32({b})")
            return wide if function in COMPARISONS else f"(({wide} & 1u) != 0u)"
        if function in SIGNS and (dtype.is_float or function is not B.DIV):
            text = f"({a} {SIGNS[function]} {b})"
            if function in COMPARISONS:
                return text
            return self._rounded(dtype, text) if dtype.is_float else self._wrapped(dtype, text)
        kind = "f32" if dtype.is_float else self.type(dtype)
        text = f"{self._function(f'{function.value}_{kind}')}({a}, {b})"
        return self._rounded(dtype, text) if dtype.is_float else self._wrapped(dtype, text)

    def _wrapped(self, dtype: DType, text: str) -> str:
        """The low bits of an int32 or uint32, as one of ``dtype``."""
        bits = 8 * dtype.bytes
        return text if bits >= 32 else f"extractBits({text}, 0u, {bits}u)"

    def _rounded(self, dtype: DType, text: str) -> str:
        """A result of float32 as one of ``dtype``, where that is narrower."""
        if dtype not in NARROW_FLOATS:
            return text
        to = self._function(f"to_{dtype.value}")
        return f"{self._function(f'from_{dtype.value}')}({to}({text}))"

    def cast(self, source: DType, target: DType, a: str) -> str:
        self.type(source)
        kind = self.type(target)
        if source is target:
            return a
        if target is DType.BOOL:
            return (
                f"any({a} != vec2<u32>())" if source in WIDE else f"({a} != {self.type(source)}())"
            )
        if source.is_float:
            if target.is_float:
                return self._rounded(target, a)
            if target in WIDE or target is DType.UINT32:
                wide = DType.UINT64 if target is DType.UINT64 else DType.INT64
                found = f"{self._function(f'{wide.value}_of_f32')}({a})"
                return found if target in WIDE else f"{found}.x"
            found = f"{self._function('i32_of_f32')}({a})"
            return self._wrapped(target, found if target in SIGNED else f"u32({found})")
        if target.is_float:
            if source in WIDE:
                return self._rounded(target, f"{self._function(f'f32_of_{source.value}')}({a})")
            return self._rounded(target, f"f32({a})")
        if source in WIDE:
            return a if target in WIDE else self._wrapped(target, f"{kind}({a}.x)")
        if target in WIDE:
            if source in SIGNED:
                return f"{self._function('wide_of_i32')}({a})"
            return f"vec2<u32>(u32({a}), 0u)"
        same = kind == self.type(source)
        text = a if same else f"{kind}({a})"
        return text if source is DType.BOOL else self._wrapped(target, text)

    def bitcast(self, source: DType, target: DType, a: str) -> str:
        if source in NARROW_FLOATS:
            source, a = DType.UINT16, f"{self._function(f'to_{source.value}')}({a})"
        if target in NARROW_FLOATS:
            return f"{self._function(f'from_{target.value}')}({self.cast(source, DType.UINT16, a)})"
        if source.bytes != 4:
            return self.cast(source, target, a)
        return a if source is target else f"bitcast<{self.type(target)}>({a})"


def refused(function: Function) -> str | None:
    """Feature of a loop program that WGSL lacks; None where it has all."""
    buffers = [*function.inputs, *function.outputs]
    buffers += [each.buffer for each in walk(function.body) if isinstance(each, Allocate)]
    for each in (*buffers, *expressions(function.body)):
        if each.dtype is DType.FLOAT64:
            return "float64"
        if (
            isinstance(each, Unary)
            and each.function not in OF_INTEGERS
            and not each.operand.dtype.is_float
        ):
            return f"{each.function} of {each.operand.dtype}"
    return None


def _plain(expr: Expr) -> Expr:
    """Functions of ``PLAIN``, and quotients rounded down, as arithmetic of float32."""
    known = isinstance(expr, Unary) and expr.function in PLAIN
    floor = isinstance(expr, Binary) and expr.function is B.FLOORDIV
    dtype = operands(expr)[0].dtype if known or floor else DType.BOOL
    if dtype is DType.FLOAT32:
        return expanded(expr)
    if dtype not in NARROW_FLOATS or not isinstance(expr, Unary):
        return expr
    return Cast(dtype, expanded(Unary(expr.function, Cast(DType.FLOAT32, expr.operand))))
