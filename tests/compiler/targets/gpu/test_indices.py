"""Integers of 64 bits become those of 32 where no value leaves int32."""

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Cast
from dovetail.compiler.loops.ir import Store
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.targets.gpu.source.indices import with_short_indices

ELEMENTS = (("b", "bool"), ("u", "uint8"), ("s", "int16"), ("x", "int8"), ("z", "int64"))
HALF = 1 << 31
BYTE = "cast(int64, x[0])"
"""From -128 to 127."""


def is_short(value: str, extent: int) -> bool:
    """True if the value of an iteration's number, ``i``, and of elements is computed in int32."""
    inputs = "".join(f"  input {name}: {dtype}[1]\n" for name, dtype in ELEMENTS)
    loop = f"  output y: int64[1]\n  for i in {extent}:\n    y[0] = {value}"
    function = parse(f'function "f"\n{inputs}{loop}')
    body = with_short_indices(function.body)
    (store,) = (each for each in walk(body) if isinstance(each, Store))
    return isinstance(store.value, Cast) and store.value.operand.dtype is DType.INT32


@pytest.mark.parametrize(
    ("value", "most"),
    [
        ("i + 7", HALF - 7),
        (f"i + {BYTE}", HALF - 127),
        (f"i - {BYTE}", HALF - 128),
        (f"{BYTE} - i", HALF - 127),
        ("i * 3", HALF // 3 + 1),
        (f"i * {BYTE}", HALF // 128 + 1),
        (f"i * (0 - {BYTE})", HALF // 128),
        (f"neg({BYTE}) + i", HALF - 128),
        (f"neg({BYTE}) - i", HALF - 126),
        (f"abs({BYTE}) - i - 5", HALF - 4),
        (f"i + abs({BYTE})", HALF - 128),
        (f"i + min({BYTE}, 5)", HALF - 5),
        (f"min({BYTE}, 5) - i", HALF - 127),
        (f"max({BYTE}, 5) - i - 9", HALF - 3),
        (f"i + max({BYTE}, 5)", HALF - 127),
        (f"i + select({BYTE} < 3, -9, 4)", HALF - 4),
        (f"select({BYTE} < 3, 4, -9) - i", HALF - 8),
        (f"i + {BYTE} // 5", HALF - 128),
        (f"{BYTE} % 5 - i", HALF - 127),
        ("i + 9 // 5", HALF - 9),
        ("9 % 5 - i - 4", HALF - 3),
    ],
)
def test_a_value_is_short_up_to_the_last_extent_at_which_nothing_wraps(
    value: str, most: int
) -> None:
    """Quotients and remainders are known by the largest of their operands."""
    assert is_short(value, most)
    assert not is_short(value, most + 1)


@pytest.mark.parametrize(
    ("value", "short"),
    [
        ("i - 2147483647 - 1", True),
        ("i - 2147483647 - 2", False),
        ("2147483647 - i", True),
        ("2147483647 + i", False),
        ("2147483648 - i", False),
        ("cast(int64, b[0]) + 2147483646", True),
        ("cast(int64, b[0]) + 2147483647", False),
        ("-2147483648 + cast(int64, b[0])", True),
        ("cast(int64, u[0]) + 2147483392", True),
        ("cast(int64, u[0]) + 2147483393", False),
        ("cast(int64, s[0]) - 2147450880", True),
        ("cast(int64, s[0]) - 2147450881", False),
        ("z[0] + i", False),
        ("z[i] * 0", False),
    ],
)
def test_a_value_is_short_by_the_types_of_its_elements(value: str, short: bool) -> None:
    assert is_short(value, 4) == short
