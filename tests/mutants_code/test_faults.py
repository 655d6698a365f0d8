"""Faults of a text by hand, and where tests for them are looked for."""

import ast
from itertools import islice
from pathlib import Path

import pytest

from .__main__ import sample
from .faults import faults
from .neighbours import SWEEPING, mirrored, nearest, sweeping

ROOT = Path(__file__).resolve().parents[2]
TEXT = '''"""A text: 3."""
__all__ = ["f"]


@cache(7)
def f(a: int = 4, b: bool = True) -> int:
    # é: bytes are not characters
    for i in range(a):
        if a < i <= 2 and not b:
            break
        self.seen = i
        g(a, i, key=b)
        a += max(i, a)
    if TYPE_CHECKING:
        raise ValueError(f"{a + 1}", 3)
    return [j for j in x if j in y] if a != b else -a
'''


def changed(kind: str) -> set[str]:
    """The lines that faults of a kind make of the text, without outer space."""
    source = TEXT.encode()
    return {
        each.before_and_after(source)[1] for each in faults("f.py", source) if each.kind == kind
    }


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("comparison", {"if (a <= i <= 2) and not b:", "if (a < i < 2) and not b:"}),
        ("and/or", {"if (a < i <= 2 or not b):"}),
        ("negated", {"if (not (a < i <= 2 and (not b))):"}),
        ("unary", {"if a < i <= 2 and b:"}),
        ("loop", {"continue"}),
        ("dropped", {"pass"}),
        ("swapped", {"(g(i, a, key=b))"}),
        ("left out", {"(g(a, i))"}),
        ("opposite", {"a += (min(i, a))"}),
    ],
)
def test_each_kind_of_fault_changes_what_it_says(kind: str, lines: set[str]) -> None:
    found = changed(kind)
    assert lines <= found, found
    assert not any("TYPE_CHECKING" in line for line in found)


def test_texts_annotations_decorators_and_errors_have_no_fault() -> None:
    constants = changed("constant")
    assert "def f(a: int = (5), b: bool = True) -> int:" in constants
    assert "def f(a: int = 4, b: bool = False) -> int:" in constants
    assert not [line for line in constants if "A text" in line or "cache" in line or "all" in line]
    assert not [line for line in constants if "ValueError" in line]
    assert not changed("arithmetic")  # the only sum is in the text of an error


def test_every_fault_of_a_sample_is_python_and_the_sample_is_drawn_by_its_seed() -> None:
    found = list(islice(sample(ROOT, 5, "isa/"), 60))
    assert found == list(islice(sample(ROOT, 5, "isa/"), 60))
    assert found != list(islice(sample(ROOT, 6, "isa/"), 60))
    assert len({fault.path for fault in found}) > 10
    for fault in found:
        source = (ROOT / fault.path).read_bytes()
        ast.parse(fault.put_into(source))
        before, after = fault.before_and_after(source)
        assert before != after


def test_what_stands_there_twice_is_not_swapped() -> None:
    found = faults("f.py", b"f(a, a)\nf(a.b, a.b, a.c)\n")
    assert [each.text for each in found if each.kind == "swapped"] == ["(f(a.b, a.c, a.b))"]


def test_what_changes_no_result_has_no_fault() -> None:
    found = faults("f.py", b"y = x.reshape(a, -1)\ny = np.einsum(a, b, optimize=True)\ny = x[-1]\n")
    assert {each.text for each in found if each.kind != "swapped"} == {"(1)", "(0)", "(2)"}
    assert [each.line for each in found if each.text == "(2)"] == [3]


def test_tests_that_mirror_a_file_come_first_and_importers_by_distance() -> None:
    assert mirrored(ROOT, "isa/formats.py") == ["tests/isa/test_formats.py"]
    folder = mirrored(ROOT, "compiler/graph/operators/selection.py")
    assert "tests/compiler/graph/test_ir.py" in folder
    near = nearest(ROOT, "isa/formats.py")
    assert near[0] == "tests/isa/test_formats.py"
    assert near.index("tests/isa/test_encoding.py") < near.index("tests/end_to_end/test_joins.py")
    assert "tests/docs/test_snippets.py" not in near
    named = nearest(ROOT, "compiler/targets/vta/row_finishes.py")
    assert named[0] == "tests/compiler/targets/vta/test_row_norm.py"
    assert "tests/end_to_end/test_attention.py" in sweeping("compiler/targets/vta/planner.py")
    assert not sweeping("isa/formats.py")
    assert all((ROOT / test).exists() for tests in SWEEPING.values() for test in tests)


def test_what_never_happens_and_lengths_that_are_equal_have_no_fault() -> None:
    source = b"for a, b in zip(x, y, strict=True):\n    raise AssertionError(a)\nassert_never(b)\n"
    assert {each.kind for each in faults("f.py", source)} == {"swapped"}


def test_tests_that_build_simulations_come_last() -> None:
    own = mirrored(ROOT, "bitstreams/uart.py")
    slow = {"tests/bitstreams/test_emulator.py", "tests/bitstreams/test_zynq.py"}
    assert slow <= {*own[-4:]}
    near = [test for test in nearest(ROOT, "bitstreams/uart.py") if "bitstreams" in test]
    assert near.index("tests/bitstreams/test_emulator.py") >= len(near) - 4
