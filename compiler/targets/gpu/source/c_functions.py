"""Functions that languages like C get, each written once for all types it is needed for.

They give arithmetic the meaning that it has on CPUs (docs/cpu.md): division by zero gives 0, shifts
by all bits give 0 or the sign, floats that no integer can hold become the lowest int32 or int64.
"""

import re
from collections.abc import Mapping

from ....dtypes import DType
from .dialect import Dialect

__all__ = ["Helpers"]

SIGNED: Mapping[str, str] = {
    "div": "return b == 0 ? (T)0 : b == (T)-1 ? (T)((U)0 - (U)a) : (T)(a / b);",
    "rem": "return b == 0 || b == (T)-1 ? (T)0 : (T)(a % b);",
    "floordiv": "if (b == 0) return (T)0;\n  if (b == (T)-1) return (T)((U)0 - (U)a);\n"
    "  T q = (T)(a / b); return a % b != 0 && (a ^ b) < 0 ? (T)(q - 1) : q;",
    "mod": "if (b == 0 || b == (T)-1) return (T)0;\n"
    "  T r = (T)(a % b); return r != 0 && (r ^ b) < 0 ? (T)(r + b) : r;",
    "shr": "return (U)b < BITS ? (T)(a >> b) : (T)(a >> (BITS - 1));",
    "pow": "if (b < 0) return a == 1 ? (T)1 : a == (T)-1 ? (b & 1 ? (T)-1 : (T)1) : (T)0;\n"
    "  U r = 1, x = (U)a; while (b) { if (b & 1) r = (U)(r * x); x = (U)(x * x); b >>= 1; }\n"
    "  return (T)r;",
}
UNSIGNED: Mapping[str, str] = {
    "div": "return b == 0 ? (T)0 : (T)(a / b);",
    "rem": "return b == 0 ? (T)0 : (T)(a % b);",
    "floordiv": "return b == 0 ? (T)0 : (T)(a / b);",
    "mod": "return b == 0 ? (T)0 : (T)(a % b);",
    "shr": "return b < BITS ? (T)(a >> b) : (T)0;",
    "pow": "T r = 1; while (b) { if (b & 1) r = (T)(r * a); a = (T)(a * a); b >>= 1; } return r;",
}
INTEGERS: Mapping[str, str] = {
    "min": "return a < b ? a : b;",
    "max": "return a > b ? a : b;",
    "shl": "return (U)b < BITS ? (T)((U)a << b) : (T)0;",
}
FLOATS: Mapping[str, str] = {
    "min": "return isnan(a) || a < b ? a : b;",
    "max": "return isnan(a) || a > b ? a : b;",
    "floordiv": "return floor(a / b);",
    "mod": "T r = fmod(a, b); if (r == 0) return copysign(r, b);\n"
    "  return (r < 0) != (b < 0) ? r + b : r;",
}

HALF_TO_FLOAT = """\
  uint bits = a & 0x7fffu, sign = (uint)(a & 0x8000u) << 16;
  if (bits >= 0x7c00u) return as_float(sign | 0x7f800000u | (bits & 0x3ffu) << 13);
  if (bits >= 0x0400u) return as_float(sign | ((bits << 13) + 0x38000000u));
  float small = (float)bits * 0x1p-24f; return sign ? -small : small;"""
FLOAT_TO_HALF = """\
  uint bits = as_uint(a), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return (ushort)(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return (ushort)(sign | 0x7c00u);
  if (rest >= 0x38800000u) {
    uint shifted = rest - 0x38000000u;
    return (ushort)(sign | (shifted + 0xfffu + (shifted >> 13 & 1u)) >> 13);
  }
  return (ushort)(sign | (uint)rint(as_float(rest) * 0x1p24f));"""
FLOAT_TO_BFLOAT = """\
  uint bits = as_uint(a);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (ushort)(bits >> 16 | 0x40u);
  return (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);"""
DOUBLE_TO_ODD = """\
  float near = (float)a;
  if (isnan(a) || (double)near == a) return near;
  int bits = as_int(near);
  if (fabs((double)near) > fabs(a)) bits -= 1;
  return as_float(bits | 1);"""
"""Rounded to odd: a second rounding then gives what one would."""

NARROW: Mapping[str, tuple[str, str, str]] = {
    "from_float16": ("float", "ushort", HALF_TO_FLOAT),
    "to_float16": ("ushort", "float", FLOAT_TO_HALF),
    "from_bfloat16": ("float", "ushort", "  return as_float((uint)a << 16);"),
    "to_bfloat16": ("ushort", "float", FLOAT_TO_BFLOAT),
    "to_odd": ("float", "double", DOUBLE_TO_ODD),
}
"""Result, operand and body of conversions between floats."""

TO_INTEGER: Mapping[DType, str] = {
    DType.INT64: "return a >= (F)-0x1p63 && a < (F)0x1p63 ? (long)a : (long)0x8000000000000000ul;",
    DType.UINT64: "if (a >= (F)0x1p63) return a < (F)0x1p64 ? (ulong)a : 0x8000000000000000ul;\n"
    "  return a >= (F)-0x1p63 ? (ulong)(long)a : 0x8000000000000000ul;",
    DType.INT32: "return a >= (F)-0x1p31 && a < (F)0x1p31 ? (int)a : (int)0x80000000u;",
}
"""Conversions of floats, which truncate; narrower integers take the low bits of one of these."""


WORD = re.compile(r"\b(?:uchar|ushort|uint|u?long|as_u?int|as_float)\b")


class Helpers:
    """The functions that a source needs.  Their texts are OpenCL C.

    head: what stands before each.  words: what the language has for words of ``WORD``.
    """

    def __init__(self, dialect: Dialect, head: str, words: Mapping[str, str]) -> None:
        self.dialect, self._head, self._words = dialect, head, words
        self._texts = dialect.functions

    def binary(self, what: str, dtype: DType) -> str:
        """The name of a function of two operands of ``dtype``."""
        name = f"dv_{what}_{dtype.value}"
        if name not in self._texts:
            if dtype.is_float:
                body = FLOATS[what]
            else:
                body = INTEGERS.get(what) or (SIGNED if dtype.is_signed else UNSIGNED)[what]
            kind = self.dialect.type(dtype)
            unsigned = (
                self.dialect.type(DType("u" + dtype.value.removeprefix("u")))
                if not dtype.is_float
                else kind
            )
            body = body.replace("(U)", f"({unsigned})").replace("U r", f"{unsigned} r")
            body = body.replace("(T)", f"({kind})").replace("T q", f"{kind} q")
            body = body.replace("T r", f"{kind} r").replace("BITS", str(8 * dtype.bytes))
            self._define(name, kind, f"{kind} a, {kind} b", f"  {body}")
        return name

    def narrow(self, name: str) -> str:
        """The name of a conversion of ``NARROW``."""
        result, operand, body = NARROW[name]
        return self._define(f"dv_{name}", result, f"{operand} a", body)

    def to_integer(self, source: DType, target: DType) -> str:
        """The name of a conversion of ``TO_INTEGER``."""
        kind = self.dialect.type(source)
        body = TO_INTEGER[target].replace("(F)", f"({kind})")
        name = f"dv_{target.value}_of_{kind}"
        return self._define(name, self.dialect.type(target), f"{kind} a", f"  {body}")

    def _define(self, name: str, result: str, parameters: str, body: str) -> str:
        if name not in self._texts:
            text = f"{result} {name}({parameters}) {{\n{body}\n}}"
            own = WORD.sub(lambda found: self._words.get(found[0], found[0]), text)
            self._texts[name] = f"{self._head} {own}"
        return name
