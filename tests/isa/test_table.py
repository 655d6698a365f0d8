"""Many words at once are decoded and judged as each of them alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.encoding import decode, field_values
from dovetail.isa.errors import EncodingError
from dovetail.isa.instructions import FORMATS
from dovetail.isa.legality import legality_problem
from dovetail.isa.table import decode_table


def legal_units(words: list[bytes], config: HardwareConfig) -> list[int]:
    units = []
    for word in words:
        try:
            instruction = decode(word)
        except EncodingError:
            units.append(-1)
            continue
        units.append(-1 if legality_problem(instruction, config) else int(instruction.unit))
    return units


@st.composite
def words(draw: st.DrawFn) -> bytes:
    """A word whose fields are often at an edge of what is legal."""
    number = draw(st.integers(0, len(FORMATS) - 1))
    layout = FORMATS[number]
    values = {}
    for field in layout.fields:
        small = st.sampled_from([max(field.low, 0), 1, min(3, field.high)])
        any_value = st.one_of(st.integers(field.low, field.high), st.just(field.high))
        values[field.name] = draw(st.one_of(small, small, any_value))
        if field.name.startswith(("dram_", "tab_")):
            values[field.name] &= -256 if draw(st.integers(0, 3)) else -1
    values["opcode"] = number + 1 if draw(st.integers(0, 9)) else draw(st.integers(0, 15))
    whole = layout.encode(values)
    if not draw(st.integers(0, 9)):
        whole |= 1 << draw(st.integers(0, 511))
    return whole.to_bytes(64, "little")


@given(st.lists(words(), min_size=1, max_size=8), st.sampled_from(sorted(CONFIGS)))
def test_units_and_fields(program: list[bytes], name: str) -> None:
    config = find_config(name)
    table = decode_table(np.frombuffer(b"".join(program), np.uint8).reshape(-1, 64), config)
    units = legal_units(program, config)
    assert table.units.tolist() == units
    for word, unit, row in zip(program, units, table.rows, strict=True):
        if unit < 0:
            assert not row.any()
            continue
        values = list(field_values(decode(word)).values())
        assert row[: len(values)].tolist() == values


@given(st.binary(min_size=64, max_size=64))
def test_any_bits(word: bytes) -> None:
    config = find_config("tiny")
    table = decode_table(np.frombuffer(word, np.uint8)[None], config)
    assert table.units.tolist() == legal_units([word], config)


def test_fields_and_levels_can_be_read_and_changed() -> None:
    layout = FORMATS[1]
    word = layout.encode({field.name: 1 for field in layout.fields} | {"opcode": 2, "wait": 1})
    data = np.frombuffer(word.to_bytes(64, "little") * 2, np.uint8).reshape(2, 64)
    table = decode_table(data, find_config("tiny"))
    mine = np.array([1])
    assert table.levels(layout, "extent", mine).tolist() == [[1] * 6]
    table.set_levels(layout, "extent", mine, np.array([[1, 2, 3, 4, 5, 6]]))
    table.set_field(layout, "act_address", mine, np.array([9]))
    assert table.field(layout, "act_address", np.array([0, 1])).tolist() == [1, 9]
    assert table.levels(layout, "extent", np.array([0, 1])).tolist() == [
        [1] * 6,
        [1, 2, 3, 4, 5, 6],
    ]


def test_no_words() -> None:
    assert not len(decode_table(np.zeros((0, 64), np.uint8), find_config("tiny")).units)
