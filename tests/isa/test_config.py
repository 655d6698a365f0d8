from dataclasses import replace
from hashlib import sha256

import pytest

from dovetail.isa.config import DramTiming
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.errors import ConfigError
from dovetail.isa.memories import Memory

TINY = find_config("tiny")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": 6}, "tiny: block = 6; required 4 to 64, a power of two"),
        ({"bus_bytes": 8}, "bus_bytes = 8 does not divide block = 4"),
        ({"acc_banks": 8}, "acc_banks = 8; required 1 to 4"),
        ({"tab_depth": 128}, "tab_depth = 128; required 256 to 4096"),
        ({"token_max": 0}, "token_max = 0; required 1 to 255"),
        ({"core_clock_ratio": 2}, "core_clock_ratio = 2 without deep_pipelines; .* set deep"),
        ({"core_clock_ratio": 4}, "core_clock_ratio = 4; required 1 to 2"),
        ({"burst_beats": 8}, "burst_beats = 8; required 16 to 256"),
        ({"burst_beats": 512}, "burst_beats = 512; required 16 to 256"),
        ({"block": 32, "bus_bytes": 32}, "bus_bytes = 32; required 4 to 16"),
        ({"tile_cycles": 4, "multiplier_bits": 25}, "tile_cycles = 4; required 1 to 2"),
    ],
)
def test_a_configuration_that_cannot_be_built_is_refused(
    change: dict[str, int], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(TINY, **change)  # type: ignore[arg-type]


def test_a_timing_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="latency_cycles = 0; required 1 to 1023"):
        DramTiming(latency_cycles=0)


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="'huge'; there are: tiny, zynq7020, ecp5_85, ecp5_85_f"):
        find_config("huge")


def test_fingerprints_tell_configurations_apart_but_not_timings() -> None:
    # One array, whose multipliers have one clock or another.
    same = {"ecp5_85", "ecp5_85_fast"}
    assert len({config.fingerprint for config in CONFIGS.values()}) == len(CONFIGS) - 1
    assert len({CONFIGS[name].fingerprint for name in same}) == 1
    slow = replace(TINY, dram=DramTiming(latency_cycles=99), clock_hz=1)
    assert slow.fingerprint == TINY.fingerprint
    assert replace(TINY, act_depth=512).fingerprint != TINY.fingerprint


def test_a_fingerprint_is_made_as_the_manual_says() -> None:
    digest = sha256(TINY.identity.encode()).digest()
    assert TINY.identity.startswith("block=4,bus_bytes=4,act_depth=2048,")
    assert TINY.fingerprint == int.from_bytes(digest[:4], "little")


def test_words_have_the_sizes_of_the_manual() -> None:
    sizes = [find_config("zynq7020").word_bytes(memory) for memory in Memory]
    assert sizes == [16, 256, 64, 128, 16, 16]
