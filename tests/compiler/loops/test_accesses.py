"""Accesses in the order of the text, and those to some buffers only."""

import pytest

from dovetail.compiler.loops.accesses import Access, accesses
from dovetail.compiler.loops.bounds import Bounds
from dovetail.compiler.loops.parse import parse

FUNCTION = """function "f"
  input x: int64[8, 8]
  input z: int64[8]
  output y: int64[8]
  for i in 8:
    y[i] = select(z[i] < 3, x[i, z[7 - i]], z[0])
    if z[i] < 2:
      for j in 4:
        y[i] add= x[2*j, i] * z[j]
"""


def said(access: Access) -> tuple[object, ...]:
    """An access without newly made objects."""
    index = tuple(form.to_expr() for form in access.index)
    way = access.reads, access.writes, access.function, access.conditional
    return access.buffer.name, index, way, len(access.loops), access.bounds


@pytest.mark.parametrize("wanted", [{"x"}, {"z"}, {"y", "x"}, set()])
def test_of_some_buffers_are_those_of_all_without_the_others(wanted: set[str]) -> None:
    body = parse(FUNCTION).body
    every = accesses(body, Bounds())
    assert "".join(each.buffer.name for each in every) == "zxzzyzzxy"
    expected = [said(each) for each in every if each.buffer.name in wanted]
    assert [said(each) for each in accesses(body, Bounds(), of=wanted)] == expected
