"""Counts of a story: cycles, launches and bytes while a text is generated."""

from dataclasses import astuple

import pytest

from dovetail.runtime.generate.generator import Story
from dovetail.runtime.result import RunResult


def result(cycles: int) -> RunResult:
    """Result of an accelerator's run; each figure is another one."""
    return RunResult(
        {}, "sim", 0.5, 0.25, 0.125, cycles=cycles, macs=30, dram_bytes_read=7, dram_bytes_written=4
    )


def test_a_story_begins_with_nothing() -> None:
    assert not any(astuple(Story()))


def test_runs_and_blocks_are_counted_and_given_for_each_token() -> None:
    story = Story(text="a", tokens=[1, 2, 3], prompted=2, clock_hz=50)
    story.add(result(100), 1)
    story.add(result(300), 2)
    story.add_block(result(90), 2)
    assert story.figures() == {
        "text": "a",
        "tokens": [1, 2, 3],
        "prompt_tokens": 2,
        "ended": False,
        "runs": 2,
        "wall_seconds": 1.0,
        "tokens_per_second": 0.25,
        "clock_hz": 50,
        "cycles_per_token": 200.0,
        "macs_per_token": 30.0,
        "dram_bytes_per_token": 11.0,
        "launches_per_token": 1.5,
        "host_seconds_per_token": 0.25,
        "blocks": 1,
        "block_tokens": 2,
        "block_seconds": 0.5,
        "cycles_per_block_token": 45.0,
    }


@pytest.mark.parametrize(("seconds", "rate"), [(8.0, 0.5), (0.0, 0.0)])
def test_without_an_accelerator_tokens_a_second_are_as_measured(
    seconds: float, rate: float
) -> None:
    story = Story(runs=4, wall_seconds=seconds)
    assert story.tokens_per_second == rate
    assert "cycles_per_token" not in story.figures()
