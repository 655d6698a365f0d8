"""Limits of a part for an accelerator: the last number that is right, and the next."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dovetail.runtime.accelerator.layouts import OwnWindows
from dovetail.runtime.accelerator.part import AcceleratorPart, Blocks, LayerFigures, Rows
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.module import Module

from .sample import SHAPE, SIZE, copy_module

MODULE = copy_module()
(PART,) = MODULE.parts
assert isinstance(PART, AcceleratorPart)
BLOCKS, FIGURES, (RESULT,), (SOURCE,) = (
    Blocks(2, 2, 3, 4),
    PART.layers[0],
    PART.results,
    PART.sources,
)
ROWS = Rows(2, 12, False, 4, None, 3, 0, 1)
WINDOWS = Rows(2, 12, False, 4, OwnWindows(2, 1, 1, 8), 1, 0, 1)


def windows(**changes: int) -> Rows:
    assert WINDOWS.windows is not None
    return replace(WINDOWS, windows=replace(WINDOWS.windows, **changes))


def at(address: int) -> AcceleratorPart:
    return replace(PART, sources=(replace(SOURCE, address=address),))  # type: ignore[type-var]


def lying(**changes: int) -> AcceleratorPart:
    blocks = replace(BLOCKS, **changes)
    return replace(PART, sources=(replace(SOURCE, layout=blocks),))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("make", "name", "right", "wrong", "message"),
    [
        (partial(replace, BLOCKS), "fill", (-128, 127), (-129, 128), "required -128 to 127"),
        (partial(replace, ROWS), "fill", (-128, 127), (-129, 128), "no image has the layout"),
        (partial(replace, ROWS), "rows", (1, 9), (0,), "no image has the layout"),
        (partial(replace, ROWS), "pitch", (12, 13), (11,), "no image has the layout"),
        (partial(replace, ROWS), "count", (1, 3), (0, 4), "no image has the layout"),
        (partial(replace, ROWS), "pixel_bytes", (1, 4), (0, 5), "no image has the layout"),
        (windows, "size", (2,), (1, 0, 3), "no image has the layout"),
        (windows, "step", (8, 12), (7, 13), "no image has the layout"),
        (windows, "before", (0, 1), (-1, 2), "no image has the layout"),
        (windows, "stride", (1, 12), (0, 13), "no image has the layout"),
        (partial(replace, RESULT), "pitch", (24, 25), (23,), "of 24 bytes are 23 bytes apart"),
        (
            *(partial(replace, RESULT), "shape", (SHAPE, (1, 2, 3, 5))),
            *(((1, 2, 3, 4), (1, 2, 3, 9), (2, 2, 3, 8), (1, 3, 2, 8), (2, 3, 8)), "no tensor of"),
        ),
        (partial(replace, FIGURES), "macs", (0,), (-1,), "'copy' has figures below 0"),
        (partial(replace, FIGURES), "dram_bytes", (0,), (-1,), "figures below 0"),
        (partial(replace, FIGURES), "expected_cycles", (0,), (-1,), "figures below 0"),
        (partial(replace, FIGURES), "inexact_pairs", (0,), (-1,), "figures below 0"),
        (partial(replace, PART), "expected_cycles", (0,), (-1,), "required at least 0"),
        (partial(replace, PART), "roof_cycles", (0,), (-1,), "required at least 0"),
        (partial(replace, PART), "layer_of", ((0, 0),), ((0, 1), (-1, 0), (0,)), "instructions"),
        (partial(replace, PART), "program_bytes", (128,), (127, 0, 129), "program"),
        (at, "address", (0, SIZE - 48), (-1, SIZE - 47), "tensor 'x' has 48 bytes at .* has 256"),
        (lying, "lanes", (4,), (3, 8), "tensor 'x' has the layout"),
        (lying, "height", (1,), (-1,), "tensor 'x'"),
        (partial(replace, MODULE), "parts", ((PART,),), ((),), "a module without parts"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_last_number_that_is_right_is_taken_and_the_next_refused(
    make: Callable[..., Module | AcceleratorPart | Blocks | Rows | LayerFigures],
    name: str,
    right: tuple[Any, ...],
    wrong: tuple[Any, ...],
    message: str,
) -> None:
    for value in right:
        make(**{name: value})
    for value in wrong:
        with pytest.raises(ModuleError, match=message):
            make(**{name: value})
