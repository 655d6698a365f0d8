"""Results of PTX instructions, on arrays with an element for each lane.

Registers hold bits; an instruction's last word says as what it reads them.
Source: PTX ISA 8.5 (NVIDIA), chapter 9.7.
"""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "UnknownInstructionError", "compute"]

Array = NDArray[Any]
KINDS: Mapping[str, Any] = {
    **{
        f"{letter}{bits}": np.dtype(f"u{bits // 8}")
        for letter in ("b", "u")
        for bits in (8, 16, 32, 64)
    },
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "pred": np.dtype(bool),
}
"""NumPy's types of the words that name types."""


class UnknownInstructionError(NotImplementedError):
    """The interpreter does not know an instruction."""


def _wide(kind: Any) -> Any:
    return np.dtype(f"{kind.kind}{2 * kind.itemsize}")


def _high(a: Array, b: Array) -> Array:
    """The upper half of the product of integers."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        return (a.astype(_wide(a.dtype)) * b.astype(_wide(a.dtype)) >> bits).astype(a.dtype)
    whole = [int(x) * int(y) >> 64 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return np.array([each & (1 << 64) - 1 for each in whole], np.uint64).view(a.dtype)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    quotient = np.floor_divide(a, np.where(b == 0, 1, b))
    inexact = quotient * b != a
    return np.where(inexact & ((a < 0) != (b < 0)), quotient + 1, quotient).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    return a - _divide(a, b) * b


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def apply(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        amount = np.minimum(b.astype(np.uint64), bits).astype(np.int64)
        inside = np.minimum(amount, bits - 1).astype(a.dtype)
        shifted = np.left_shift(a, inside) if left else np.right_shift(a, inside)
        if a.dtype.kind == "i" and not left:
            return shifted
        return np.where(amount < bits, shifted, 0).astype(a.dtype)

    return apply


def _fused(a: Array, b: Array, c: Array) -> Array:
    """Rounded once: exactly so in float32, by way of ``longdouble`` in float64."""
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    product = a.astype(wide) * b.astype(wide)
    total = product + c.astype(wide)
    if wide is np.longdouble:
        return total.astype(a.dtype)
    # To odd first, since a sum in float64 is rounded already.
    back = total - product
    error = (product - (total - back)) + (c.astype(wide) - back)
    bits = np.ascontiguousarray(total).view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(inexact, bits + toward, bits).view(np.float64)
    return np.where(np.isfinite(total), odd, total).astype(a.dtype)


def _extract(a: Array, start: Array, length: Array) -> Array:
    """A field of bits (bfe); of signed numbers its highest bit is its sign."""
    bits = 8 * a.dtype.itemsize
    start, length = ((each & 255).astype(np.int64) for each in (start, length))
    whole = [int(each) for each in a]
    found = []
    for value, first, count in zip(whole, start.tolist(), length.tolist(), strict=True):
        if a.dtype.kind == "u":
            found.append(value >> first & (1 << count) - 1)
            continue
        end = min(first + count, bits)
        field = value >> first & (1 << max(end - first, 0)) - 1
        sign = count > 0 and value >> min(first + count - 1, bits - 1) & 1
        found.append(field - (1 << max(end - first, 0)) if sign else field)
    return np.array(found, a.dtype)


def _permuted(a: Array, b: Array, selector: Array) -> Array:
    """Bytes of two words by four choices (prmt)."""
    whole = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    found = np.zeros_like(a)
    for place in range(4):
        choice = selector >> (4 * place)
        byte = (whole >> ((choice & 7) * 8).astype(np.uint64) & np.uint64(255)).astype(a.dtype)
        signs = np.where(byte & 128, 255, 0).astype(a.dtype)
        found |= np.where(choice & 8, signs, byte).astype(a.dtype) << (8 * place)
    return found


def _power_of_two(a: Array) -> Array:
    """Rounded once, and without the smallest numbers (ftz)."""
    found = np.exp2(a.astype(np.float64))
    return np.where(found < np.finfo(a.dtype).tiny, 0, found).astype(a.dtype)


PLAIN: Mapping[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "div": _divide,
    "rem": _remainder,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rcp": lambda a: (1 / a).astype(a.dtype),
    "shl": _shift(True),
    "shr": _shift(False),
    "mov": lambda a: a,
    "fma": _fused,
    "bfe": _extract,
    "prmt": _permuted,
    "ex2": _power_of_two,
    "copysign": lambda a, b: np.copysign(b, a),
}
SHIFTS = ("shl", "shr", "bfe")
"""Their later operands are of 32 bits, whatever the first is."""
COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b) if a.dtype.kind == "f" else a != b,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "neu": np.not_equal,
    "equ": lambda a, b: (a == b) | np.isnan(a) | np.isnan(b),
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
EXTREMES: Mapping[str, Callable[[Array, Array], Array]] = {"min": np.minimum, "max": np.maximum}
"""With NaN where one of the operands is."""
ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
PACKED = {"f16x2": "f16", "bf16x2": "bf16"}
"""Types of two numbers in a register, the first in the upper half."""
MODES = frozenset({"rn", "wide", "lo", "hi", "approx", "full", "uni"})


def compute(words: list[str], read: Callable[[int, Any], Array]) -> tuple[Array, Any]:
    """The result of an instruction, and its type.

    words: its name, cut at the dots.  read: gives an operand, by its place, as a type.
    Raises UnknownInstructionError.
    """
    name, *modes, last = words
    if last not in KINDS:
        raise UnknownInstructionError(".".join(words))
    kind = KINDS[last]
    with np.errstate(all="ignore"):
        if name == "cvt":
            return _converted(words, read)
        if name == "setp":
            return COMPARISONS[modes[0]](read(0, kind), read(1, kind)), KINDS["pred"]
        if name == "selp":
            return np.where(read(2, KINDS["pred"]), read(0, kind), read(1, kind)), kind
        if name in EXTREMES and modes == ["NaN"]:
            return EXTREMES[name](read(0, kind), read(1, kind)), kind
        if not set(modes) <= MODES and words != ["ex2", "approx", "ftz", "f32"]:
            raise UnknownInstructionError(".".join(words))
        if name in ("mul", "mad"):
            return _product(name, modes, kind, read)
        if name not in PLAIN:
            raise UnknownInstructionError(".".join(words))
        count = {"not": 1, "neg": 1, "abs": 1, "sqrt": 1, "rcp": 1, "mov": 1, "ex2": 1}.get(name, 2)
        count = 3 if name in ("fma", "bfe", "prmt") else count
        later = KINDS["u32"] if name in SHIFTS else kind
        given = [read(place, later if place else kind) for place in range(count)]
        return PLAIN[name](*given), kind


def _product(
    name: str, modes: list[str], kind: Any, read: Callable[[int, Any], Array]
) -> tuple[Array, Any]:
    a, b = read(0, kind), read(1, kind)
    if "wide" in modes:
        kind = _wide(kind)
        found = a.astype(kind) * b.astype(kind)
    else:
        found = _high(a, b) if "hi" in modes else a * b
    return (found + read(2, kind) if name == "mad" else found), kind


def _converted(words: list[str], read: Callable[[int, Any], Array]) -> tuple[Array, Any]:
    """``cvt.[modes.]to.from``: integers wrap, floats that integers cannot hold saturate."""
    *modes, target, source = words[1:]
    if target in PACKED and (modes, source) == (["rn"], "f32"):
        parts = [read(n, KINDS["f32"]).astype(KINDS[PACKED[target]]) for n in (0, 1)]
        high, low = (each.view(np.uint16).astype(np.uint32) for each in parts)
        return high << 16 | low, KINDS["b32"]
    if not set(modes) <= {*ROUNDINGS, "rn", "sat"}:
        raise UnknownInstructionError(".".join(words))
    old, new = KINDS[source], KINDS[target]
    value = read(0, old)
    for mode in modes:
        if mode in ROUNDINGS:
            value = ROUNDINGS[mode](value)
    if target.startswith(("u", "s")) and source.startswith(("f", "bf")):
        limits = np.iinfo(new)
        value = np.where(np.isnan(value), 0, value).astype(np.longdouble)
        whole = np.clip(value, limits.min, limits.max)
        return np.array([int(each) for each in whole], new), new
    if target == "f16" and source == "f64":
        return value.astype(np.float16), new
    return value.astype(new), new
