"""Configurations in files: what they mean, and every way in which they can be wrong."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.config_file import config_to_toml
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.declared import declarations
from dovetail.isa.errors import ConfigError

ZYNQ = CONFIGS["zynq7020"]


def read(folder: Path, text: str, name: str = "my.toml") -> HardwareConfig:
    (folder / name).write_text(text)
    return find_config(str(folder / name))


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    assert read(tmp_path, config_to_toml(CONFIGS[name])) == CONFIGS[name]


def test_a_written_file_has_every_field() -> None:
    text = config_to_toml(CONFIGS["ecp5_25"])
    for cls in (HardwareConfig, DramTiming):
        assert [field.name for field, _ in declarations(cls)] == [
            field.name for field in fields(cls)
        ]
        assert all(f"\n{f.name} = " in f"\n{text}" for f in fields(cls) if "dram" not in f.name)
    assert 'chip = "MT48LC16M16A2-75"' in text
    assert max(map(len, text.splitlines())) == 100


def test_a_file_says_what_differs_from_its_base(tmp_path: Path) -> None:
    found = read(tmp_path, 'base = "zynq7020"  # of VTA\nblock = 8\n[dram]\nlatency_cycles = 30\n')
    dram = replace(ZYNQ.dram, latency_cycles=30)
    assert found == replace(ZYNQ, name="my", block=8, dram=dram)


def test_the_timing_of_an_sdram_follows_from_the_clock(tmp_path: Path) -> None:
    board = CONFIGS["ecp5_85"]
    assert board.dram.sdram is not None
    slow = read(tmp_path, f'base = "ecp5_85"\nclock_hz = {board.clock_hz // 2}')
    assert slow.dram.sdram is not None
    assert slow.dram.sdram.refresh == board.dram.sdram.refresh // 2
    assert read(tmp_path, 'base = "ecp5_85"\n[dram]\nsdram = false').dram.sdram is None
    chip = '[dram.sdram]\nchip = "MT48LC16M16A2-75"\nio_delay = 2'
    same = read(tmp_path, f'base = "zynq7020"\nclock_hz = {board.clock_hz}\n{chip}')
    assert same.dram.sdram == board.dram.sdram


def test_a_file_without_a_base_gives_what_has_no_default(tmp_path: Path) -> None:
    sizes = "block=4\nbus_bytes=4\nact_depth=64\nwgt_depth=8\nacc_depth=16\npar_depth=8\n"
    found = read(tmp_path, f"{sizes}tap_depth=8\ntab_depth=256\n")
    assert found == HardwareConfig("my", 4, 4, 64, 8, 16, 8, 8, 256)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blok = 8", "line 2: unknown field blok; did you mean block"),
        ("act_deph = 8", "line 2: unknown field act_deph; did you mean act_depth or acc_depth"),
        ("latency_cycles = 8", "line 2: unknown field latency_cycles; it belongs to [dram]"),
        ("[dram]\nqueue = 8", "line 3: unknown field dram.queue; did you mean queue_bursts?"),
        ("[ram]", "unknown field ram; did you mean dram"),
        ("block = 6", "line 2: block = 6; required 4 to 64, a power of two; try 8"),
        ("block = 128", "line 2: block = 128; required 4 to 64, a power of two; try 64"),
        ("block = -1", "required 4 to 64, a power of two; try 4"),
        ("token_max = 0", "token_max = 0; required 1 to 255; try 1"),
        ("\n\nblock = true", "line 4: block = True; required an integer"),
        ("deep_pipelines = 1", "deep_pipelines = 1; required true or false"),
        ('clock_hz = "fast"', "clock_hz = 'fast'; required an integer"),
        (f"clock_hz = 0x{'f' * 5000}", "required 1 to 10000000000; try 10000000000"),
        (f"clock_hz = 1{'0' * 5000}", "is not TOML"),
        ("dram = 3", "dram = 3; required a table"),
        (
            "[dram]\nlatency_cycles = 0",
            "line 3: dram.latency_cycles = 0; required 1 to 1023",
        ),
        ("[dram.sdram]\nio_delay = 1", "dram.sdram.chip = None; there are: MT48LC16M16A2-75"),
        ("[dram.sdram]\nio_delay = 99", "dram.sdram.io_delay = 99; required 0 to 8; try 8"),
        ("act_depth = 8", "line 2: act_depth = 8; required 16 to 65536, a power of two"),
        ("bus_bytes = 16\nblock = 8", "line 2: bus_bytes = 16 does not divide block = 8"),
        ("core_clock_ratio = 2", "line 2: core_clock_ratio = 2 without deep_pipelines"),
        ('name = "large"', "line 2: name is 'large'; required one that no configuration"),
        ('name = "a b"', "required a letter, then letters, digits and _"),
        ("block =", "is not TOML"),
        ("\x00", "is not TOML"),
    ],
)
def test_what_is_wrong_is_one_message_with_its_line(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f'base = "zynq7020"\n{text}')
    assert str(tmp_path / "my.toml") in str(caught.value)
    assert message in str(caught.value)


def test_bases_names_and_files_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="base = 'zynq'; there are: tiny, zynq7020"):
        read(tmp_path, 'base = "zynq"')
    with pytest.raises(ConfigError, match=r"no value for bus_bytes, act_depth.* say base = NAME"):
        read(tmp_path, "block = 8")
    with pytest.raises(ConfigError, match=r"the name of the file.* is 'a-b'.* rename the file"):
        read(tmp_path, 'base = "tiny"', "a-b.toml")
    with pytest.raises(ConfigError, match="No such file or directory; write one with: dovetail"):
        find_config("absent.toml")
    with pytest.raises(ConfigError, match=r"files of your own, FILE.toml; did you mean zynq"):
        find_config("zynq702")
    (tmp_path / "my.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not text in UTF-8"):
        find_config(str(tmp_path / "my.toml"))
