"""The layer of each cycle of a run."""

import pytest

from dovetail.runtime.profile.shares import busy_cycles, share_cycles, shared_spans, unit_spans
from dovetail.runtime.result import Timeline, TimelineEntry


def entries(*spans: tuple[str, int, int, int]) -> Timeline:
    """Units, layers, and their first cycles and those after their last."""
    return tuple(
        TimelineEntry(n, unit, layer, 0, start, end, 0, 0, 0)
        for n, (unit, layer, start, end) in enumerate(spans)
    )


BOTH = entries(
    *(("GEMM", 0, 10, 20), ("GEMM", 1, 30, 40), ("GEMM", 2, 50, 60), ("LOAD", 0, 0, 9)),
    *(("VECTOR", 3, 5, 12), ("VECTOR", 4, 15, 35), ("VECTOR", 5, 35, 55), ("VECTOR", 6, 58, 70)),
)
APART = entries(("GEMM", 0, 10, 20), ("GEMM", 1, 50, 60))


def shares(timeline: Timeline, *arguments: object) -> list[tuple[int, int, int, str | None]]:
    found = shared_spans(timeline, *arguments)  # type: ignore[arg-type]
    return [(each.begin, each.end, each.layer, each.unit) for each in found]


def test_vector_has_the_cycles_in_which_gemm_is_idle() -> None:
    assert shares(BOTH, 8, 75) == [
        *((0, 5, 3, None), (5, 10, 3, "VECTOR"), (10, 20, 0, "GEMM"), (20, 30, 4, "VECTOR")),
        *((30, 40, 1, "GEMM"), (40, 50, 5, "VECTOR"), (50, 60, 2, "GEMM"), (60, 70, 6, "VECTOR")),
        (70, 75, 7, None),
    ]
    assert share_cycles(BOTH, 8, 75) == [10, 10, 10, 10, 10, 10, 10, 5]
    later = entries(*(("GEMM", n, 10 * n, 10 * n + 5) for n in range(5)), ("VECTOR", 5, 34, 48))
    assert shares(later, 6, 48)[-4:] == [
        *((30, 35, 3, "GEMM"), (35, 40, 5, "VECTOR"), (40, 45, 4, "GEMM"), (45, 48, 5, "VECTOR")),
    ]
    alone = entries(("VECTOR", 1, 3, 6))
    assert shares(alone, 2, 6) == [(0, 3, 1, None), (3, 6, 1, "VECTOR")]


@pytest.mark.parametrize(
    ("ends", "rest"),
    [
        ((), [(20, 50, 1, None)]),
        (((30, 0),), [(20, 30, 0, None), (30, 50, 1, None)]),
        (((50, 0),), [(20, 50, 0, None)]),
        (((25, 0), (40, 3)), [(20, 25, 0, None), (25, 40, 3, None), (40, 50, 1, None)]),
    ],
)
def test_waits_are_for_what_comes_next_unless_a_program_ends(
    ends: tuple[tuple[int, int], ...], rest: list[tuple[int, int, int, None]]
) -> None:
    assert shares(APART, 3, 65, ends) == [
        *((0, 10, 0, None), (10, 20, 0, "GEMM"), *rest, (50, 60, 1, "GEMM"), (60, 65, 2, None)),
    ]
    assert shares(APART, 2, 60)[-1] == (50, 60, 1, "GEMM")


def test_cycles_of_two_instructions_count_once_and_those_that_never_ran_not_at_all() -> None:
    both = entries(
        *(("VECTOR", 1, 5, 9), ("VECTOR", 0, 0, 7), ("VECTOR", 1, -1, 3), ("VECTOR", 1, 9, -1)),
        *(("GEMM", 0, 0, 50), ("VECTOR", 0, 12, 13)),
    )
    assert [span[:2] for span in unit_spans(both, "VECTOR")] == [(0, 7), (7, 9), (12, 13)]
    assert busy_cycles(both, "VECTOR", 2) == [8, 2]
    assert busy_cycles(both, "GEMM", 2) == [50, 0]
