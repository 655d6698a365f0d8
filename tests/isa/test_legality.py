"""Instructions that one configuration takes and another refuses."""

from dataclasses import replace

import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load, Rounding, Row
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Memory

from .test_encoding import VECTOR


def test_dram_addresses_are_whole_words_of_the_configuration() -> None:
    load = Load(memory=Memory.ACT, sram_address=0, dram_address=8)
    assert legality_problem(load, find_config("tiny")) is None
    assert "required a multiple of 16" in str(legality_problem(load, find_config("zynq7020")))


WINDOWS = Load(memory=Memory.ACT, sram_address=0, dram_address=5, step=17, dram_stride_y=8)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"step": 3}, "step = 3; required 0, or 4 and up"),
        ({"dram_stride_y": 6}, "dram_stride_y = 6; required a multiple of 4 with a step"),
        ({"dram_stride_z": 2}, "dram_stride_z = 2; required a multiple of 4 with a step"),
        ({"memory": Memory.WGT}, "step = 17 needs memory act"),
        ({"pad_x_after": 1}, "step = 17 needs pad_x_before and pad_x_after 0"),
    ],
)
def test_windows_begin_at_any_byte(change: dict[str, int], problem: str | None) -> None:
    found = legality_problem(replace(WINDOWS, **change), find_config("tiny"))
    assert found is None if problem is None else problem in str(found)


def test_fixed_rounding_is_legal_where_the_configuration_has_it() -> None:
    vector, tiny = replace(VECTOR, rounding=Rounding.FIXED), find_config("tiny")
    assert legality_problem(vector, tiny) is None
    without = replace(tiny, fixed_rounding=False)
    assert legality_problem(vector, without) == "rounding = fixed; tiny has no fixed_rounding"
    assert without.fingerprint != tiny.fingerprint
    assert "fixed_rounding" not in without.identity


def test_wide_results_go_to_acc_where_the_configuration_has_parameters_of_rows() -> None:
    tiny = find_config("tiny")
    wide = replace(VECTOR, rounding=Rounding.WIDE, destination=Memory.ACC, lookup=False)
    assert legality_problem(wide, tiny) is None
    to_act = replace(wide, destination=Memory.ACT)
    assert legality_problem(to_act, tiny) == "rounding = wide needs destination acc"
    without = replace(tiny, row_parameters=False)
    assert legality_problem(wide, without) == "rounding = wide; tiny has no row_parameters"


def test_parameters_of_rows_are_legal_where_the_configuration_has_them() -> None:
    vector, tiny = replace(VECTOR, row=Row.LESS), find_config("tiny")
    assert legality_problem(vector, tiny) is None
    without = replace(tiny, row_parameters=False)
    assert legality_problem(vector, without) == "row = less; tiny has no row_parameters"
    assert without.fingerprint != tiny.fingerprint
    assert "row_parameters" not in without.identity
