"""Places of tensors: no two that live at the same time overlap."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.program.memory import plan_apart, plan_memory
from dovetail.runtime.native.program import ALIGNMENT

TENSORS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(0, 3000)), max_size=25
)


@given(TENSORS)
def test_living_tensors_do_not_overlap(tensors: list[tuple[int, int, int]]) -> None:
    lifetimes = {f"t{n}": (first, first + more) for n, (first, more, _) in enumerate(tensors)}
    sizes = {f"t{n}": size for n, (_, _, size) in enumerate(tensors)}
    plan = plan_memory(lifetimes, sizes)
    assert set(plan.offsets) == set(lifetimes)
    assert all(offset % ALIGNMENT == 0 for offset in plan.offsets.values())
    ends = [plan.offsets[name] + sizes[name] for name in lifetimes]
    assert plan.bytes >= max(ends, default=0)
    for a, (first, last) in lifetimes.items():
        for b, (start, end) in lifetimes.items():
            if a < b and first <= end and start <= last and sizes[a] and sizes[b]:
                apart = (
                    plan.offsets[a] + sizes[a] <= plan.offsets[b]
                    or plan.offsets[b] + sizes[b] <= plan.offsets[a]
                )
                assert apart, (a, b)


def test_tensors_of_different_times_share_memory() -> None:
    plan = plan_memory({"a": (0, 1), "b": (2, 3), "c": (1, 2)}, {"a": 64, "b": 64, "c": 64})
    assert plan.bytes == 128


@given(TENSORS)
def test_tensors_of_other_layouts_share_nothing(tensors: list[tuple[int, int, int]]) -> None:
    lifetimes = {str(n): (first, first + life) for n, (first, life, _) in enumerate(tensors)}
    sizes = {str(n): size for n, (_, _, size) in enumerate(tensors)}
    layouts = {name: int(name) % 3 for name in lifetimes}
    plan = plan_apart(lifetimes, sizes, layouts)
    spans = []
    for layout in range(3):
        names = [name for name in lifetimes if layouts[name] == layout]
        if names:
            starts = [plan.offsets[name] for name in names]
            ends = [plan.offsets[name] + sizes[name] for name in names]
            alone = plan_memory({name: lifetimes[name] for name in names}, sizes)
            assert {n: plan.offsets[n] - min(starts) for n in names} == alone.offsets
            spans.append((min(starts), max(ends)))
    spans.sort()
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert plan.bytes >= max((end for _, end in spans), default=0)
