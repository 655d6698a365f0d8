"""sin, cos, tan and their inverses, in lanes.

Range reduction: ``x = q pi/2 + r``, pi/2 in parts that all, except the last, have exact multiples
(Cody and Waite); arguments of 2**20 and more take the bits of 2/pi that matter to them (Payne and
Hanek, Radian reduction for trigonometric functions, 1983), lane by lane.
"""

import math

from ....dtypes import DType
from ...llvm.values import Value, constant
from . import coefficients as table
from .emitter import Emitter
from .lanes import Lanes

__all__ = ["acos", "asin", "atan", "cos", "sin", "tan"]

_PARTS_32 = (1.5707963109016418, 1.5893254712295857e-08, 6.123233995736766e-17)
"""26 bits of pi/2, the next 26, the rest."""

_PARTS_64 = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21)
_REST_64 = 8.4784276603689e-32
"""33 bits of pi/2, the next 33, the next 33, the rest."""

_LARGE = 2.0**20
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17


def sin(x: Lanes) -> Lanes:
    """The sine; NaN of infinities."""
    r, tail, q = _reduce(x)
    return _quadrant(r, tail, q, 0)


def cos(x: Lanes) -> Lanes:
    """The cosine; NaN of infinities."""
    r, tail, q = _reduce(x)
    return _quadrant(r, tail, q, 1)


def tan(x: Lanes) -> Lanes:
    """The tangent, in float64."""
    r, tail, q = _reduce(x)
    s, c = _sin_reduced(r, tail), _cos_reduced(r, tail)
    odd = _bit(r, q, 0)
    return (-c).where(odd, s) / s.where(odd, c)


def _reduce(x: Lanes) -> tuple[Lanes, Lanes | None, Value]:
    """(r, what r leaves out, q as an integer of r's size); r is of x's dtype."""
    e = x.e
    wide = x.to(DType.FLOAT64)
    magic = 1.5 * 2.0**52
    shifted = wide * (2 / math.pi) + magic
    n = shifted - magic
    q = shifted.bits()
    if x.dtype is DType.FLOAT32:
        r, tail = wide, None
        for part in _PARTS_32:
            r = r - n * part
    else:
        r = wide - n * _PARTS_64[0]
        tail = wide.of(0.0)
        for part in (*_PARTS_64[1:], _REST_64):
            step = n * part - tail
            following = r - step
            tail = (r - following) - step
            r = following
    large = wide.magnitude().compare("oge", _LARGE)
    r, q, tail = _large(wide, large, r, q, tail)
    if x.dtype is DType.FLOAT32:
        return r.to(DType.FLOAT32), None, e.convert("trunc", q, DType.INT32)
    return r, tail, q


def _large(
    x: Lanes, large: Value, r: Lanes, q: Value, tail: Lanes | None
) -> tuple[Lanes, Value, Lanes | None]:
    """r, q and the tail where some lanes are large: theirs from the bits of 2/pi."""
    e, lanes = x.e, x.value.lanes
    before = e.block
    exact, end = e.label("large"), e.label("reduced")
    e.branch(_any(e, large), exact, end)
    e.start(exact)
    name = _define_payne_hanek(e)
    rests, quotients = [], []
    for lane in range(lanes):
        pair = e.op(f"call {{ double, i64 }} @{name}({e.extract(x.value, lane).typed})", x.dtype)
        rests.append(e.op(f"extractvalue {{ double, i64 }} {pair.ref}, 0", DType.FLOAT64))
        quotients.append(e.op(f"extractvalue {{ double, i64 }} {pair.ref}, 1", DType.INT64))
    far_r = e.select(large, e.from_lanes(rests), r.value)
    far_q = e.select(large, e.from_lanes(quotients), q)
    zero = constant(0.0, DType.FLOAT64, lanes)
    far_tail = None if tail is None else e.select(large, zero, tail.value)
    after = e.block
    e.jump(end)
    e.start(end)
    r = Lanes(e, e.phi([(r.value, before), (far_r, after)]))
    q = e.phi([(q, before), (far_q, after)])
    if tail is not None and far_tail is not None:
        tail = Lanes(e, e.phi([(tail.value, before), (far_tail, after)]))
    return r, q, tail


def _any(e: Emitter, mask: Value) -> Value:
    if mask.lanes == 1:
        return mask
    name = f"llvm.vector.reduce.or.v{mask.lanes}i1"
    e.module.declare(name, "i1", (mask.type,))
    return e.op(f"call i1 @{name}({mask.typed})", DType.BOOL)


def _bit(r: Lanes, q: Value, number: int) -> Value:
    """True if a bit of q is set."""
    e = r.e
    return e.compare("ne", e.binary("and", q, r.integer(1 << number)), r.integer(0))


def _quadrant(r: Lanes, tail: Lanes | None, q: Value, ahead: int) -> Lanes:
    """The sine of ``r + (q + ahead) pi/2``."""
    e = r.e
    if ahead:
        q = e.binary("add", q, r.integer(ahead))
    value = _cos_reduced(r, tail).where(_bit(r, q, 0), _sin_reduced(r, tail))
    shift = 30 if r.dtype is DType.FLOAT32 else 62
    second = e.binary("and", q, r.integer(2))
    sign = e.binary("shl", second, r.integer(shift))
    return r.from_bits(e.binary("xor", value.bits(), sign))


def _sin_reduced(r: Lanes, tail: Lanes | None) -> Lanes:
    z = r * r
    cube = z * r
    if tail is None:
        return cube.fma(z.polynomial(table.SIN_32), r).signed_as(r)
    small = cube.fma(z.polynomial(table.SIN_64), tail - z * tail * 0.5)
    return (r + small).signed_as(r)


def _cos_reduced(r: Lanes, tail: Lanes | None) -> Lanes:
    z = r * r
    half = z * 0.5
    w = r.of(1.0) - half
    lost = (r.of(1.0) - w) - half
    if tail is None:
        return w + (z * z).fma(z.polynomial(table.COS_32), lost)
    return w + ((z * z).fma(z.polynomial(table.COS_64), lost) - r * tail)


def atan(x: Lanes) -> Lanes:
    """The inverse tangent, in float64: of a, (a - 1) / (a + 1) or -1 / a, by tan(pi/8)."""
    a = x.magnitude()
    middle, far = a.compare("ogt", math.sqrt(2) - 1), a.compare("ogt", math.sqrt(2) + 1)
    above = x.of(-1.0).where(far, (a - 1.0).where(middle, a))
    below = a.where(far, (a + 1.0).where(middle, x.of(1.0)))
    zero = x.of(0.0)
    base = x.of(_HALF_PI).where(far, x.of(_HALF_PI / 2).where(middle, zero))
    base_low = x.of(_HALF_PI_LOW).where(far, x.of(_HALF_PI_LOW / 2).where(middle, zero))
    t = above / below
    z = t * t
    small = (z * t).fma(z.polynomial(table.ATAN_64), base_low)
    return (base + (t + small)).signed_as(x)


def asin(x: Lanes) -> Lanes:
    """The inverse sine, in float64; NaN beyond 1."""
    a = x.magnitude()
    outer = a.compare("ogt", 0.5)
    t, p = _asin_half(a, outer)
    high = (x.of(_HALF_PI) - (p * 2.0 - _HALF_PI_LOW)) - t * 2.0
    return high.where(outer, t + p).signed_as(x)


def acos(x: Lanes) -> Lanes:
    """The inverse cosine, in float64; NaN beyond 1."""
    a = x.magnitude()
    outer = a.compare("ogt", 0.5)
    t, p = _asin_half(a, outer)
    twice = (t + p) * 2.0
    negative = x.compare("olt", 0.0)
    mirrored = x.of(2 * _HALF_PI) - (twice - 2 * _HALF_PI_LOW)
    far = mirrored.where(negative, twice)
    signed_t, signed_p = t.signed_as(x), p.signed_as(x)
    near = x.of(_HALF_PI) - (signed_t - (x.of(_HALF_PI_LOW) - signed_p))
    return far.where(outer, near)


def _asin_half(a: Lanes, outer: Value) -> tuple[Lanes, Lanes]:
    """(t, p) with asin t = t + p: t is a, or sqrt((1 - a) / 2) where a is above 1/2."""
    z = ((a.of(1.0) - a) * 0.5).where(outer, a * a)
    t = z.square_root().where(outer, a)
    return t, z * t * z.polynomial(table.ASIN_64)


def _define_payne_hanek(e: Emitter) -> str:
    """``{rest, quotient}`` of a double of 2**20 and more; the rest is NaN if it is infinite.

    ``m 2**e 2/pi``, with a 53-bit m, modulo 4: of the bits of 2/pi those far to the left give
    multiples of 4, so 256 bits from the word that has bit ``e - 56`` suffice; s of the product's
    bits are a fraction.
    """
    name = "dovetail.payne.hanek"
    words = ", ".join(f"i64 {word}" for word in table.TWO_OVER_PI)
    count = len(table.TWO_OVER_PI)
    e.module.define(
        f"{name}.table", f"@{name}.table = internal unnamed_addr constant [{count} x i64] [{words}]"
    )
    e.module.declare("llvm.ctlz.i64", "i64", ("i64", "i1"))
    parts = "\n".join(
        f"""  %at.{n} = add i64 %word, {n}
  %from.{n} = getelementptr [{count} x i64], ptr @{name}.table, i64 0, i64 %at.{n}
  %word.{n} = load i64, ptr %from.{n}
  %wide.{n} = zext i64 %word.{n} to i320
  %placed.{n} = shl i320 %wide.{n}, {64 * (3 - n)}"""
        for n in range(4)
    )
    e.module.define(
        name,
        f"""define internal {{ double, i64 }} @{name}(double %x) noinline {{
entry:
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %field = and i64 %shifted, 2047
  %infinite = icmp eq i64 %field, 2047
  br i1 %infinite, label %invalid, label %finite
invalid:
  %nan = fsub double %x, %x
  %none = insertvalue {{ double, i64 }} {{ double 0.0, i64 0 }}, double %nan, 0
  ret {{ double, i64 }} %none
finite:
  %fraction = and i64 %bits, {(1 << 52) - 1}
  %m = or i64 %fraction, {1 << 52}
  %exponent = sub i64 %field, 1075
  %first = sub i64 %exponent, 56
  %late = icmp sgt i64 %first, 0
  %start = select i1 %late, i64 %first, i64 0
  %word = lshr i64 %start, 6
{parts}
  %high = or i320 %placed.0, %placed.1
  %low = or i320 %placed.2, %placed.3
  %window = or i320 %high, %low
  %m.wide = zext i64 %m to i320
  %product = mul i320 %window, %m.wide
  %skipped = shl i64 %word, 6
  %end = add i64 %skipped, 256
  %s = sub i64 %end, %exponent
  %s.wide = zext i64 %s to i320
  %whole.wide = lshr i320 %product, %s.wide
  %whole = trunc i320 %whole.wide to i64
  %up = sub i64 320, %s
  %up.wide = zext i64 %up to i320
  %part = shl i320 %product, %up.wide
  %top.wide = lshr i320 %part, 192
  %top = trunc i320 %top.wide to i128
  %upper = icmp slt i128 %top, 0
  %complement = sub i128 0, %top
  %size = select i1 %upper, i128 %complement, i128 %top
  %one = zext i1 %upper to i64
  %q = add i64 %whole, %one
  %size.high.wide = lshr i128 %size, 64
  %size.high = trunc i128 %size.high.wide to i64
  %zeros = call i64 @llvm.ctlz.i64(i64 %size.high, i1 false)
  %zeros.wide = zext i64 %zeros to i128
  %normal = shl i128 %size, %zeros.wide
  %normal.high.wide = lshr i128 %normal, 64
  %normal.high = trunc i128 %normal.high.wide to i64
  %mantissa = uitofp i64 %normal.high to double
  %scale.exponent = sub i64 959, %zeros
  %scale.bits = shl i64 %scale.exponent, 52
  %scale = bitcast i64 %scale.bits to double
  %turns = fmul double %mantissa, %scale
  %angle = fmul double %turns, {constant(_HALF_PI, DType.FLOAT64).ref}
  %opposite = fneg double %angle
  %negative = icmp slt i64 %bits, 0
  %flip = xor i1 %negative, %upper
  %rest = select i1 %flip, double %opposite, double %angle
  %q.opposite = sub i64 0, %q
  %q.signed = select i1 %negative, i64 %q.opposite, i64 %q
  %half = insertvalue {{ double, i64 }} poison, double %rest, 0
  %both = insertvalue {{ double, i64 }} %half, i64 %q.signed, 1
  ret {{ double, i64 }} %both
}}""",
    )
    return name
