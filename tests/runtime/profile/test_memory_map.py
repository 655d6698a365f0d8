"""Places of tensors, in programs whose answer is plain."""

from dataclasses import replace

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.memories import Memory
from dovetail.runtime.profile.memory_map import Holding, memory_map
from dovetail.runtime.result import TimelineEntry

CONFIG = find_config("tiny")
"""ACT words of 4 bytes, and a bus of 4 bytes."""
LOAD = Load(memory=Memory.ACT, dram_address=256, sram_address=0, count_x=64)
STORE = Store(dram_address=1024, sram_address=0, count_x=32)
CYCLES = 2560
"""So that less than 10 cycles are taken for none."""


def held(
    steps: list[tuple[Instruction, int, int]],
    names: list[str],
    present: list[tuple[str, int, int]] | None = None,
) -> dict[str, list[Holding]]:
    """Instructions with their layer and last cycle."""
    timeline = tuple(
        TimelineEntry(index, step.unit.name, layer, 0, end - 5, end, 0, 0, 0)
        for index, (step, layer, end) in enumerate(steps)
    )
    program = [step for step, _, _ in steps]
    return memory_map(program, timeline, names, present or [], CONFIG, (0, CYCLES))


def test_words_are_held_from_their_write_to_their_last_read() -> None:
    found = held([(LOAD, 0, 100), (STORE, 1, 500)], ["", ""], [("image", 256, 256)])
    # Only what is stored was of use; it has the name of the bytes that were loaded.
    assert found["ACT"] == [Holding(0, 32, 100, 500, 0, "image")]
    # DRAM held the image from the beginning, and what nobody reads is not shown.
    assert found["DRAM"] == [Holding(256, 512, 0, 100, 0, "image")]


def test_a_name_goes_to_dram_and_back() -> None:
    again = replace(LOAD, dram_address=1024, sram_address=512, count_x=32)
    last = replace(STORE, dram_address=2048, sram_address=512)
    steps = [(LOAD, 0, 100), (STORE, 1, 500), (again, 2, 900), (last, 2, 1000)]
    found = held(steps, ["x", "", "", ""])
    assert found["DRAM"][1:] == [Holding(1024, 1152, 500, 900, 0, "x")]
    assert found["ACT"][1:] == [Holding(512, 544, 900, 1000, 0, "x")]


def test_words_that_wait_for_new_data_begin_anew() -> None:
    steps = [(LOAD, 0, 100), (STORE, 0, 200), (LOAD, 0, 205), (STORE, 0, 300)]
    assert held(steps, ["x", "", "x", ""])["ACT"] == [Holding(0, 32, 100, 300, 0, "x")]
    steps = [(LOAD, 0, 100), (STORE, 0, 200), (LOAD, 0, 600), (STORE, 0, 700)]
    assert held(steps, ["x", "", "x", ""])["ACT"] == [
        Holding(0, 32, 100, 200, 0, "x"),
        Holding(0, 32, 600, 700, 0, "x"),
    ]


def test_another_tensor_in_the_same_words_is_another_box() -> None:
    steps = [(LOAD, 0, 100), (STORE, 0, 200), (LOAD, 1, 205), (STORE, 1, 300)]
    assert held(steps, ["x", "", "y", ""])["ACT"] == [
        Holding(0, 32, 100, 200, 0, "x"),
        Holding(0, 32, 205, 300, 1, "y"),
    ]


def test_uses_are_one_up_to_a_part_of_the_run_apart() -> None:
    """10 of 2,560 cycles."""
    for gap, count in ((10, 1), (11, 2)):
        steps = [(LOAD, 0, 100), (STORE, 0, 200), (LOAD, 0, 200 + gap), (STORE, 0, 300)]
        assert len(held(steps, ["x", "", "x", ""])["ACT"]) == count


def test_holdings_are_in_order_of_their_begin_and_then_of_their_words() -> None:
    high = replace(LOAD, sram_address=512)
    for begins in ((150, 100), (100, 150), (100, 100)):
        first, second = begins
        steps = [(high, 0, first), (LOAD, 1, second), (replace(STORE, sram_address=512), 0, 500)]
        found = held([*steps, (STORE, 1, 500)], ["x", "y", "", ""])["ACT"]
        assert [each.name for each in found] == (["x", "y"] if first < second else ["y", "x"])


def test_words_of_one_tensor_are_one_box_if_less_than_a_part_of_the_memory_apart() -> None:
    """ACT has 2,048 words, and 16 are a part of it."""
    part = CONFIG.depth(Memory.ACT) // 128
    for between, count in ((0, 1), (part - 1, 1), (part, 2)):
        far, near = replace(LOAD, sram_address=2 * part + between), replace(LOAD, count_x=2 * part)
        steps = [(near, 0, 100), (replace(far, count_x=2 * part), 0, 100)]
        steps += [(replace(STORE, sram_address=each.sram_address), 0, 200) for each in (near, far)]
        assert len(held(steps, ["x", "x", "", ""])["ACT"]) == count, between
