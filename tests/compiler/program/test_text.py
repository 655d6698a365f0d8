"""Programs as text: what is printed is read back, and other text is refused by its line."""

import numpy as np
import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.program.parse import parse
from dovetail.compiler.program.text import to_text

from .programs import long_loop, random_program
from .test_ir import program


@pytest.mark.parametrize("seed", range(24))
def test_what_is_printed_is_read_back(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.compiler.program.steps.LEAST_SHARED", 1)
    expected = random_program(seed)
    text = to_text(expected)
    found = parse(text, expected.constants)
    assert found.calls == expected.calls
    assert found.functions == expected.functions
    assert (found.inputs, found.outputs) == (expected.inputs, expected.outputs)
    assert list(found.constants) == list(expected.constants)
    assert to_text(found) == text


def test_the_text_says_where_tensors_lie() -> None:
    lines = to_text(long_loop(9)).splitlines()
    loop = lines.index('loop 9 work 41 from "loop":')
    assert lines[loop + 1 : loop + 6] == [
        "  carry total.next to total",
        "  call kernel0(total: memory + 64 * i0 % 2, parts: input 1 + 128 + -16 * i0, "
        'total.next: memory + 64 + -64 * i0 % 2) from "add"',
        "  call kernel1(total.next: memory + 64 + -64 * i0 % 2, parts: input 1 + 128 + -16 * i0, "
        'y.1: output 1 + 16 * i0) from "mul"',
        "  last:",
        "    call kernel2(total: memory + 64 * i0 % 2, y: output 0)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("memory 184", "memory", "line 1: ends too early"),
        ("product: memory", "product: heap", "line 7: found 'heap'; required one of input, output"),
        ("call double(product", "call (product", r"line 8: found '\('; required a name"),
        ("  input a:", "  input a", "line 11: found 'float32'; required ':'"),
        ('from "node"', 'from "node" twice', "line 7: found 'twice'; required the end"),
        ("call double(half", "  call double(half", "line 9: is indented; required a call"),
    ],
)
def test_other_text_is_refused_by_its_line(old: str, new: str, message: str) -> None:
    good = program()
    text = to_text(good)
    assert old in text
    with pytest.raises(GraphError, match=message):
        parse(text.replace(old, new), good.constants)


def test_constants_must_be_those_of_the_text() -> None:
    good = program()
    with pytest.raises(GraphError, match="line 6: no array is given for the constant w"):
        parse(to_text(good))
    with pytest.raises(GraphError, match="line 6: the array given for w is another one"):
        parse(to_text(good), {"w": np.zeros_like(good.constants["w"])})


def test_a_loop_has_calls() -> None:
    lines = to_text(long_loop(9)).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("loop 9"))
    inside = [n for n in range(start + 1, len(lines)) if lines[n].startswith("  ")]
    kept = [line for n, line in enumerate(lines) if not start < n <= inside[4]]
    with pytest.raises(GraphError, match=f"line {start + 1}: a loop without calls"):
        parse("\n".join(kept))
