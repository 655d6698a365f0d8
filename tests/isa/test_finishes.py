"""Finishes of other packages: how they are found, and what a configuration makes of them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.isa.assembly import assemble, disassemble
from dovetail.isa.config_file import config_to_toml, read_config
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.document import manual
from dovetail.isa.encoding import encode
from dovetail.isa.entry_points import ExtensionError
from dovetail.isa.errors import ConfigError
from dovetail.isa.finishes import MOST_LATENCY, OwnFinish, find_finish
from dovetail.isa.instructions import Finish, Vector
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState
from dovetail.isa.table import decode_table
from tests.outside import install

TINY = find_config("tiny")
VECTOR = Vector(
    source=Memory.ACC,
    destination=Memory.ACC,
    source_address=0,
    destination_address=8,
    extent=(1,) * 5,
    source_stride=(0,) * 5,
    destination_stride=(0,) * 4,
    finish=Finish.CUSTOM,
    shift=2,
)


def test_a_configuration_keeps_the_version_that_is_installed(leaky: OwnFinish) -> None:
    own = replace(TINY, finish="leaky")
    assert own.finish == "leaky@1"
    assert own.own_finish is leaky
    assert own.identity.replace(",finish=leaky@1", "") == TINY.identity != own.identity
    assert replace(own, finish="").fingerprint == TINY.fingerprint


def test_a_file_names_it(leaky: OwnFinish, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('base = "tiny"\nfinish = "leaky"\n')
    found = read_config(path, CONFIGS)
    path.write_text(config_to_toml(found))
    assert read_config(path, CONFIGS) == found
    path.write_text('base = "tiny"\nfinish = "lewky"\n')
    said = f"{path}, line 2: finish 'lewky' is brought by no installed package; there are: leaky;"
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_config(path, CONFIGS)
    path.write_text('base = "tiny"\nfinish = 3\n')
    with pytest.raises(ConfigError, match="finish = 3; required a text"):
        read_config(path, CONFIGS)


def test_another_version_is_refused(leaky: OwnFinish) -> None:
    said = "finish 'leaky@2': version 1 is installed, acme_finishes:LEAKY of acme_finishes; install"
    with pytest.raises(ExtensionError, match=re.escape(said)):
        replace(TINY, finish="leaky@2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("OWN = 3", "own_bad:OWN of own_bad is a int; required an OwnFinish"),
        ("import nothing_like_this", "cannot be imported: No module named 'nothing_like_this'"),
        (
            "from dovetail.isa.finishes import *\nOWN = OwnFinish('good', '', abs, abs, abs, 0)",
            "own_bad:OWN of own_bad is called 'good'; required the same name",
        ),
    ],
)
def test_what_is_no_finish_is_refused_by_the_packages_name(
    text: str, said: str, packages: Path
) -> None:
    install(packages, "own_bad", "dovetail.finishes", "bad", text, "OWN")
    with pytest.raises(ExtensionError, match=re.escape(said)):
        find_finish("bad")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "shift"}, "a finish is called 'shift'; required small letters"),
        ({"name": "Leaky"}, "a finish is called 'Leaky'"),
        ({"latency": MOST_LATENCY + 1}, "latency = 7; required 0 to 6"),
        ({"version": 0}, "version = 0; required 1 and up"),
    ],
)
def test_a_record_that_cannot_be_is_refused(
    values: dict[str, int | str], said: str, leaky: OwnFinish
) -> None:
    with pytest.raises(ExtensionError, match=re.escape(said)):
        replace(leaky, **values)  # type: ignore[arg-type]


def test_custom_is_legal_where_the_configuration_has_a_finish(leaky: OwnFinish) -> None:
    own, words = replace(TINY, finish="leaky"), np.frombuffer(encode(VECTOR), np.uint8)[None]
    assert max(Finish) is Finish.CUSTOM
    assert legality_problem(VECTOR, TINY) == "finish = custom; tiny has no finish of its own"
    assert legality_problem(VECTOR, own) is None
    assert decode_table(words, TINY).units.tolist() == [-1]
    assert decode_table(words, own).units.tolist() == [int(VECTOR.unit)]


def test_it_does_what_numpy_does(leaky: OwnFinish) -> None:
    state = MachineState.zeros(replace(TINY, finish="leaky"), np.zeros(64, np.uint8))
    state.acc[0] = [-10, -6, -(1 << 31), 77]
    execute(state, VECTOR)
    assert state.acc[8].tolist() == [-2, -2, -(1 << 29), 77]


def test_assembly_and_manual_call_it_by_its_name(leaky: OwnFinish) -> None:
    own = replace(TINY, name="mine", finish="leaky")
    text = disassemble([VECTOR], own)
    assert " finish=leaky " in text
    assert assemble(text, own) == assemble(disassemble([VECTOR]), TINY)
    assert "CUSTOM is `leaky`, version 1: `v` where it is not negative" in manual(own)
    assert "leaky" not in manual(TINY)


def test_tables_that_it_computes_are_found(leaky: OwnFinish) -> None:
    for shift in (1, 3, 5):
        assert leaky.shift_of(leaky.bytes_of(shift)) == shift
    rectified = np.maximum(np.arange(-128, 128), 0).astype(np.int8)
    assert leaky.shift_of(rectified) == 8
    assert leaky.shift_of(-rectified) is None
    wrong = replace(leaky, match=lambda table: 4)
    assert wrong.shift_of(leaky.bytes_of(4)) == 4
    assert wrong.shift_of(leaky.bytes_of(3)) is None


def test_what_is_built_from_it_follows_its_sources(leaky: OwnFinish, packages: Path) -> None:
    before = leaky.digest
    with (packages / "acme_finishes.py").open("a") as file:
        file.write("# more\n")
    assert leaky.digest != before
