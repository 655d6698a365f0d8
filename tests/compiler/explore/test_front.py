"""The Pareto front against its definition."""

from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.explore.front import pareto

POINT = st.tuples(*(st.integers(0, 4) for _ in range(3)))


@given(st.lists(POINT, max_size=25))
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int, int]]) -> None:
    def beats(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return a != b and all(x <= y for x, y in zip(a, b, strict=True))

    expected = [k for k, p in enumerate(points) if not any(beats(other, p) for other in points)]
    assert pareto(points) == expected
