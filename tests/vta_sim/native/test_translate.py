"""Native code does what the same Python does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.table import decode_table
from dovetail.vta_sim.native.errors import TranslationError
from dovetail.vta_sim.native.language import Native, splat
from dovetail.vta_sim.native.library import Library
from dovetail.vta_sim.native.machine_code import build
from tests.vta_sim.programs import gemm

from . import samples

TWO_INTS = (samples.divide, samples.bits, samples.compare, samples.flags, samples.skip)


@pytest.fixture(scope="module")
def library() -> Library:
    return build([*TWO_INTS, samples.guard, samples.nested, samples.fields])


@given(function=st.sampled_from(TWO_INTS), a=st.integers(-20, 20), b=st.integers(-20, 20))
def test_ints(library: Library, function: Native, a: int, b: int) -> None:
    if function is samples.divide and b == 0:
        b = 7
    assert library.call(function, a, b) == int(function(a, b))


def test_arrays_are_shared_and_conditions_look_no_further_than_they_must(library: Library) -> None:
    numbers = np.array([1, -200, 3, 5, 9], np.int64)
    sample = samples.Sample(numbers=numbers, small=np.zeros(5, np.int8))
    assert library.call(samples.guard, sample, 5) == 3
    assert sample.total == -196
    np.testing.assert_array_equal(sample.small, [1, 56, 3, 0, 0])
    assert library.call(samples.guard, sample, 2) == 2


def test_records_in_records(library: Library) -> None:
    sample = samples.Sample(numbers=np.zeros(2, np.int64), small=np.zeros(1, np.int8))
    outer = samples.Outer(inner=sample, count=6)
    assert library.call(samples.nested, outer) == 9
    assert (outer.count, sample.total, sample.numbers[0]) == (7, 7, 7)


def test_a_row_has_the_fields_of_its_format(library: Library) -> None:
    instruction = gemm(1, extent=(3, 1, 4, 1, 5, 9), reduction=2)
    words = np.frombuffer(encode(instruction), np.uint8)[None]
    row = decode_table(words, find_config("tiny")).rows[0]
    expected = instruction.wgt_address * 1000 + 23 + 2
    assert library.call(samples.fields, row.ctypes.data) == expected


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (samples.wrong_statement, "no such statement"),
        (samples.wrong_expression, "no such"),
        (samples.wrong_annotation, "not of the native language"),
        (samples.wrong_name, "Sample has no missing"),
        (samples.wrong_variable, "no such name"),
        (samples.wrong_operator, "no such operator"),
        (samples.wrong_sign, "no such operator"),
        (samples.wrong_index, "an array is required"),
        (samples.wrong_condition, "an int is required"),
        (samples.wrong_sum, "ints or lanes are required"),
        (samples.wrong_choice, "both sides must be of one kind"),
        (samples.wrong_keyword, "no keyword arguments"),
        (samples.wrong_function, "no such function"),
        (samples.wrong_count, "1 arguments are required"),
        (samples.wrong_kind, "k changes its kind"),
        (samples.wrong_range, "only range with one or two bounds"),
        (samples.wrong_field, "format gemm has no missing"),
    ],
)
def test_what_is_not_of_the_language_is_refused(function: Native, message: str) -> None:
    with pytest.raises(TranslationError, match=message):
        build([function])


def test_a_record_wants_its_arrays() -> None:
    with pytest.raises(TypeError, match="lacks small"):
        samples.Sample(numbers=np.zeros(1, np.int64))
    with pytest.raises(TypeError, match="numbers is int32"):
        samples.Sample(numbers=np.zeros(1, np.int32), small=np.zeros(1, np.int8))


def test_a_record_has_its_own_attributes_alone() -> None:
    sample = samples.Sample(numbers=np.zeros(1, np.int64), small=np.zeros(1, np.int8), total=4)
    assert sample.total == 4
    with pytest.raises(AttributeError, match="Sample has no other"):
        sample.other  # type: ignore[attr-defined]  # noqa: B018


def test_words_of_native_code_are_no_python() -> None:
    with pytest.raises(TranslationError, match=r"splat was called from Python; .* machine_code"):
        splat(1)
