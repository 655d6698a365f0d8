"""Spaces of designs: what a file means, and every way in which it can be wrong."""

import itertools
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.errors import SpaceError
from dovetail.compiler.explore.constraints import parse_constraint
from dovetail.compiler.explore.space import Design, load_space, parse_space
from dovetail.compiler.options import Overlap
from dovetail.isa.configs import find_config

ROOT = Path(__file__).resolve().parents[3]


def parse(text: str) -> object:
    return parse_space(tomllib.loads(text))


def test_lists_and_ranges_become_all_their_combinations() -> None:
    space = parse_space(
        tomllib.loads(
            """
            [base]
            config = "tiny"
            [hardware]
            act_depth = { from = 512, to = 2048, factor = 2 }
            token_max = { from = 3, to = 7, step = 2 }
            [dram]
            latency_cycles = [12, 24]
            [schedule]
            overlap = ["units", "layers"]
            """
        )
    )
    found = {
        (d.config.act_depth, d.config.token_max, d.config.dram.latency_cycles, d.overlap)
        for d in space.designs()
    }
    levels = (Overlap.UNITS, Overlap.LAYERS)
    assert found == set(itertools.product((512, 1024, 2048), (3, 5, 7), (12, 24), levels))
    assert space.size == len(found) == 36
    assert {d.config.wgt_depth for d in space.designs()} == {find_config("tiny").wgt_depth}


def test_combinations_that_are_no_configuration_are_left_out() -> None:
    space = parse_space({"hardware": {"block": [4, 8], "bus_bytes": [4, 8]}})
    found = [(d.config.block, d.config.bus_bytes) for d in space.designs()]
    assert found == [(4, 4), (8, 4), (8, 8)]


def test_constraints_leave_designs_out() -> None:
    content = {
        "hardware": {"block": [8, 16], "act_depth": [4096, 8192, 16384]},
        "constraints": {"require": ["act_bytes <= 2 * 65536", "block == 16 or act_depth != 8192"]},
    }
    found = [(d.config.block, d.config.act_depth) for d in parse_space(content).designs()]
    assert found == [(8, 4096), (8, 16384), (16, 4096), (16, 8192)]


def test_a_design_is_known_by_what_its_cycles_depend_on() -> None:
    one, other = (
        Design(find_config("tiny"), Overlap.LAYERS),
        Design(find_config("tiny"), Overlap.TILES),
    )
    assert one.key != other.key
    for name, value in (("tile_cycles", 2), ("lane_groups", 2), ("deep_pipelines", True)):
        (slower,) = parse_space({"hardware": {name: value}}).designs()
        assert slower.key != Design(find_config("zynq7020"), Overlap.LAYERS).key
    keys = {d.key for d in parse_space({"dram": {"latency_cycles": [1, 2, 3]}}).designs()}
    assert len(keys) == 3


def test_the_example_has_hundreds_of_designs() -> None:
    space = load_space(ROOT / "examples" / "explore" / "space.toml")
    assert sum(1 for _ in space.designs()) >= 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[hardwear]\nblock = 4", "table [hardwear]; there are: base, hardware"),
        ("hardware = 4", "required a table [hardware]"),
        ("[base]\nconfig = 'huge'", "no configuration is called 'huge'"),
        ("[base]\nname = 'tiny'", "required config = NAME"),
        ("[hardware]\nblok = [4]", "no parameter 'blok'; did you mean block?"),
        ("[hardware]\nblock = [8, 5]", "no design can have block = 5: block = 5; required 4 to 64"),
        ("[hardware]\nblock = [128]", "no design can have block = 128: block = 128; required 4 to"),
        ("[hardware]\nblock = [4]\nbus_bytes = [4, 8]", "no design can have bus_bytes = 8"),
        ("[hardware]\nblock = []", "block has no value"),
        ("[hardware]\nblock = [4, 4]", "a value is there twice"),
        ("[hardware]\nblock = [4.0]", "block = 4.0; required integers"),
        ("[hardware]\nblock = [true]", "block = True; required integers"),
        ("[hardware]\nblock = 'big'", "block = 'big'; required integers"),
        ("[hardware]\ndeep_pipelines = [1]", "deep_pipelines = 1; required true or false"),
        ("[hardware]\nblock = {from = 4, to = 16}", "required {from, to, step} or"),
        ("[hardware]\nblock = {from = 4, to = 16, factor = 1}", "a factor of at least 2"),
        ("[hardware]\nblock = {from = 16, to = 4, factor = 2}", "required from <= to"),
        ("[hardware]\nblock = {from = 0, to = 4, factor = 2}", "at least 2 from at least 1 on"),
        ("[hardware]\nblock = {from = 1, to = 4, step = 0}", "a step of at least 1"),
        ("[hardware]\nblock = {from = 1.0, to = 4, step = 1}", "'step': 1}; required integers"),
        ("[hardware]\nblock = {from = 1, to = 4, step = true}", "True}; required integers"),
        ("[hardware]\nblock = {from = 1, to = 4, step = 1, factor = 2}", "from, to, step} or"),
        ("[hardware]\ntoken_max = {from = 1, to = 9999, step = 1}", "more than 1000 values"),
        ("[hardware]\nclock_hz = [1]", "clock_hz cannot be chosen: the clock is estimated"),
        ("[hardware]\nmultiplier_bits = [18]", "it follows from the FPGA family"),
        ("[base]\nconfig = 'ecp5_85_fast'", "has two clocks (core_clock_ratio = 2)"),
        ("[dram]\nlatency_cycles = [0]", "no design can have latency_cycles = 0"),
        ("[base]\nconfig = 'ecp5_85'\n[dram]\nlatency_cycles = [3]", "an SDRAM with a timing"),
        ("[schedule]\noverlap = ['all']", "overlap = 'all'; there are: nothing, units"),
        ("[schedule]\noverlap = [1]", "required names"),
        ("[constraints]\nrequire = 'x'", "required require = [TEXT]"),
        ("[constraints]\nrequire = ['blok == 4']", "names 'blok'; there are: acc_banks"),
        ("[constraints]\nrequire = ['block ==']", "cannot be read"),
        ("[constraints]\nrequire = ['abs(block) == 4']", "has a Call"),
        ("[constraints]\nrequire = ['block < overlap']", "'<' not supported"),
        ("[constraints]\nrequire = ['block > 16']", "no design is left: constraint block > 16"),
        ("[hardware]\nblock = [8, 16]\n[constraints]\nrequire = ['block > 8']", "block = 8: con"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_a_file_that_is_no_space_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match=r"absent\.toml cannot be read: No such file"):
        load_space(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[hardware\n")
    with pytest.raises(SpaceError, match="is not TOML"):
        load_space(broken)


BETWEEN = ("+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or")


@given(
    st.recursive(
        st.sampled_from(["a", "b", "3", "7"]),
        lambda inner: (
            st.builds("({}{})".format, st.sampled_from(["-", "not "]), inner)
            | st.builds("({} {} {})".format, inner, st.sampled_from(BETWEEN), inner)
        ),
        max_leaves=12,
    ),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_a_constraint_means_what_python_says(text: str, a: int, b: int) -> None:
    constraint = parse_constraint(text, frozenset(("a", "b")))
    try:
        expected = bool(eval(text, {"a": a, "b": b}))
    except ZeroDivisionError:
        with pytest.raises(SpaceError, match="by zero"):
            constraint.holds({"a": a, "b": b})
    else:
        assert constraint.holds({"a": a, "b": b}) == expected
