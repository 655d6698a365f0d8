"""Writes compiler/targets/cpu/llvm/coefficients.py: a script that needs mpmath.

Each polynomial is a Chebyshev fit, computed with mpmath to 60 digits, of a function from which the
leading terms of its series are taken off, so that an absolute error of the polynomial is a small
relative error of the function.  Its degree is the least that keeps the relative error below the
bound given.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
TARGET = Path(__file__).parents[5] / "compiler" / "targets" / "cpu" / "llvm" / "coefficients.py"
LN2, PI = mp.log(2), mp.pi
Function = Callable[[mp.mpf], mp.mpf]


def series(function: Function, at_zero: str) -> Function:
    """``function``, with its limit where it divides zero by zero."""
    limit = mp.mpf(mp.mpf(0) if not at_zero else mp.mpmathify(eval(at_zero, vars(mp))))

    def evaluate(x: mp.mpf) -> mp.mpf:
        return limit if abs(x) < mp.mpf(10) ** -18 else function(x)

    return evaluate


def exp_tail(r: mp.mpf) -> mp.mpf:
    return (mp.expm1(r) - r) / r**2


def log_tail(f: mp.mpf) -> mp.mpf:
    return (mp.log1p(f) - f + f**2 / 2) / f**3


def atanh_tail(z: mp.mpf) -> mp.mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / s**3


def atanh_second_tail(z: mp.mpf) -> mp.mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


def odd_tail(function: Function) -> Function:
    def tail(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        return (function(x) - x) / x**3

    return tail


def cos_tail(z: mp.mpf) -> mp.mpf:
    x = mp.sqrt(z)
    return (mp.cos(x) - 1 + z / 2) / z**2


def erf_excess(z: mp.mpf) -> mp.mpf:
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def log_erfc(middle: float, half: float) -> Function:
    return lambda u: mp.log(mp.erfc(middle + half * u))


SMALL = LN2 / 2 * mp.mpf("1.0001")
LOW, HIGH = mp.sqrt(2) / 2 - 1, mp.sqrt(2) - 1
ATANH = (HIGH / (2 + HIGH)) ** 2 * mp.mpf("1.0001")
QUARTER = (PI / 4) ** 2 * mp.mpf("1.0001")

FITS: Iterable[tuple[str, Function, object, object, object, float]] = (
    ("EXP_32", series(exp_tail, "0.5"), -SMALL, SMALL, 0.12, 2**-28),
    ("EXP_64", series(exp_tail, "0.5"), -SMALL, SMALL, 0.12, 2**-58),
    ("LOG_32", series(log_tail, "mpf(1)/3"), LOW, HIGH, 0.2, 2**-27),
    ("LOG_64", series(atanh_tail, "mpf(2)/3"), 0, ATANH, 0.03, 2**-59),
    ("LOG_TAIL_64", series(atanh_second_tail, "mpf(2)/5"), 0, ATANH, 0.001, 2**-68),
    ("SIN_32", series(odd_tail(mp.sin), "mpf(-1)/6"), 0, QUARTER, 0.6, 2**-28),
    ("SIN_64", series(odd_tail(mp.sin), "mpf(-1)/6"), 0, QUARTER, 0.6, 2**-58),
    ("COS_32", series(cos_tail, "mpf(1)/24"), 0, QUARTER, 0.4, 2**-28),
    ("COS_64", series(cos_tail, "mpf(1)/24"), 0, QUARTER, 0.4, 2**-58),
    ("ATAN_64", series(odd_tail(mp.atan), "mpf(-1)/3"), 0, HIGH**2, 0.17, 2**-58),
    ("ASIN_64", series(odd_tail(mp.asin), "mpf(1)/6"), 0, mp.mpf(1) / 4, 0.25, 2**-58),
    ("SINH_64", series(odd_tail(mp.sinh), "mpf(1)/6"), 0, 1, 1, 2**-58),
    ("ERF_32", series(erf_excess, "2/sqrt(pi)-1"), 0, mp.mpf("1.45"), 1, 2**-28),
    ("ERF_64", series(erf_excess, "2/sqrt(pi)-1"), 0, mp.mpf("2.25"), 1, 2**-58),
    ("ERFC_32", log_erfc(2.57, 1.37), -1, 1, 0.09, 2**-28),
    ("ERFC_64", log_erfc(3.75, 2.25), -1, 1, 0.04, 2**-58),
)
"""Name, function, interval, its weight in the result, bound of the relative error."""


def fit(function: Function, low: object, high: object, weight: float, bound: float) -> list[mp.mpf]:
    """Coefficients, the constant one first."""
    for terms in range(3, 40):
        found, error = mp.chebyfit(function, [low, high], terms, error=True)
        if error * weight < bound:
            return list(reversed(found))
    raise ValueError("no polynomial of 39 terms is good enough")


def two_over_pi(words: int) -> list[int]:
    """The bits of 2/pi after the point, 64 in each word."""
    mp.mp.prec = 64 * words + 128
    bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * words)))
    mp.mp.dps = 60
    return [bits >> 64 * (words - 1 - n) & (1 << 64) - 1 for n in range(words)]


def main() -> None:
    lines = [
        '"""Coefficients of the polynomials of the elementary functions, the constant one first.',
        "",
        "Written by tests/compiler/targets/cpu/llvm/fit_coefficients.py, "
        "which says what is fitted.",
        '"""',
        "",
    ]
    for name, function, low, high, weight, bound in FITS:
        values = fit(function, low, high, weight, bound)
        lines += [f"{name} = (", *(f"    {float(value)!r}," for value in values), ")"]
    lines += ["TWO_OVER_PI = (", *(f"    0x{word:016X}," for word in two_over_pi(20)), ")"]
    lines += ['"""Its bits, 64 in each word, the first after the point."""']
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
