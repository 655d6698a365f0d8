import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.errors import EncodingError
from dovetail.isa.formats import Field, Format
from dovetail.isa.instructions import FORMATS

SMALL = Format("small", 16, (Field("a", 4, ""), Field("b", 5, "", signed=True)))


@given(st.sampled_from(FORMATS), st.data())
def test_every_format_decodes_what_it_encoded(layout: Format, data: st.DataObject) -> None:
    values = {field.name: data.draw(st.integers(field.low, field.high)) for field in layout.fields}
    assert layout.decode(layout.encode(values)) == values


@given(st.sampled_from(FORMATS))
def test_fields_lie_side_by_side_from_bit_0(layout: Format) -> None:
    place = 0
    for field in layout.fields:
        assert layout.offset(field.name) == place
        alone = {other.name: 0 for other in layout.fields} | {field.name: field.low or 1}
        assert layout.encode(alone) == ((field.low or 1) % (1 << field.width)) << place
        place += field.width


def test_a_word_is_packed_least_significant_first() -> None:
    assert SMALL.encode({"a": 3, "b": -1}) == 0b11111_0011
    assert SMALL.decode(0b10000_0011) == {"a": 3, "b": -16}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 16, "b": 0}, "small: a = 16; required 0 to 15"),
        ({"a": 0, "b": -17}, "small: b = -17; required -16 to 15"),
        ({"a": 0}, "small: no value for field b"),
        ({"a": 0, "b": 0, "c": 0}, "small has no field c"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        SMALL.encode(values)


def test_reserved_bits_must_be_zero() -> None:
    with pytest.raises(EncodingError, match="reserved bits 9 and up are not zero"):
        SMALL.decode(1 << 9)


def test_a_format_wider_than_its_word_is_refused() -> None:
    with pytest.raises(EncodingError, match="uses 17 of 16 bits"):
        Format("wide", 16, (Field("a", 17, ""),))


def test_a_format_with_two_fields_of_one_name_is_refused() -> None:
    with pytest.raises(EncodingError, match="format twice names a field twice"):
        Format("twice", 16, (Field("a", 3, ""), Field("b", 4, ""), Field("a", 4, "")))
