"""Into how many parts long sums go."""

import pytest

from dovetail.compiler.schedule.rules.gpu.estimate import Work
from dovetail.compiler.schedule.rules.gpu.parts import best_parts


def waves(work: Work) -> float:
    """Microseconds of products whose blocks of 32x32 run 132 at a time."""
    blocks = work.count * -(-work.rows // 32) * -(-work.columns // 32)
    return -(-blocks // 132) * work.depth * 0.01


@pytest.mark.parametrize(
    ("sizes", "least", "expected"),
    [
        ((16, 256, 1024), 256, 4),  # of 256 elements
        ((16, 256, 1024), 32, 16),  # 128 blocks
        ((64, 4096, 512), 32, 1),  # two waves of blocks already
        ((32, 2112, 512), 32, 1),  # 5.1 microseconds would be 4.8
        ((32, 2112, 1024), 32, 2),
        ((16, 256, 1072), 32, 1),  # no multiple of 64
    ],
)
def test_sums_go_in_as_many_parts_as_are_fastest(
    sizes: tuple[int, int, int], least: int, expected: int
) -> None:
    parts, time = best_parts(Work(1, *sizes, 2, sizes[2]), waves, least)
    assert parts == expected
    assert time <= waves(Work(1, *sizes, 2, sizes[2]))


def test_the_estimate_is_asked_about_parts_side_by_side_and_their_rows_in_memory() -> None:
    asked: list[Work] = []

    def time(work: Work) -> float:
        asked.append(work)
        return 1.0

    best_parts(Work(3, 48, 32, 1024, 2, 1024), time, 512)
    best_parts(Work(3, 48, 32, 1024, 2, 0), time, 512)
    one, two = Work(3, 48, 32, 1024, 2, 1024), Work(6, 48, 32, 512, 2, 512)
    assert asked == [one, two, one.by_elements, two.by_elements]
