"""Names of loops that are put beside others."""

import pytest

from dovetail.compiler.loops.ir import For
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.steps.site import rename_loops

HEAD = 'function "f"\n  output y: float32[4]\n'


@pytest.mark.parametrize(
    ("names", "taken", "suffix", "expected"),
    [
        ("i j", "k", "", "i j"),
        ("i i", "", "", "i i.2"),
        ("i i i", "i", "", "i.2 i.3 i.4"),
        ("i j i", "j", "", "i j.2 i.2"),
        ("i i.2", "i", "", "i.3 i.2"),  # a name that stands behind it stays free
        ("i i", "", ".x", "i.x i.x.2"),
        ("i j", "i.x", ".x", "i.x.2 j.x"),
    ],
)
def test_loops_that_follow_each_other_get_names_of_their_own(
    names: str, taken: str, suffix: str, expected: str
) -> None:
    body = "".join(f"  for {name} in 4:\n    y[{name}] = 1.0:float32\n" for name in names.split())
    found = rename_loops(parse(HEAD + body).body, taken.split(), suffix)
    assert [each.variable for each in walk(found) if isinstance(each, For)] == expected.split()
