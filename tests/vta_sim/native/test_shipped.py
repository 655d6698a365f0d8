"""Machine code that comes with the package: the right code is run, or none."""

from pathlib import Path

import pytest

from dovetail import simulator_code
from dovetail.compiler.targets.cpu.llvm.link import link
from dovetail.compiler.targets.cpu.llvm.target import host_cpu, target_machine
from dovetail.vta_sim.native import find, library, shipped
from dovetail.vta_sim.native.errors import MissingCodeError
from dovetail.vta_sim.native.machine_code import object_code
from dovetail.vta_sim.native.shipped import Shipped

from . import samples

NAMES = tuple(library.names_of([samples.divide]))


@pytest.fixture(scope="module")
def entry() -> Shipped:
    """One function for this processor, without flags."""
    host = host_cpu()
    code = object_code([samples.divide], 0, target_machine(host), vnni=False)
    return Shipped(NAMES, 0, (), link(host.arch, [code], NAMES))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The file for this processor."""
    return tmp_path / f"{host_cpu().arch.triple.partition('-')[0]}{shipped.SUFFIX}"


def test_code_is_found_by_function_lanes_and_processor(entry: Shipped, place: Path) -> None:
    broken = entry.image._replace(code=b"\xcc" * len(entry.image.code))
    others = [
        entry.__class__(NAMES, 0, ("no such flag",), broken),
        entry.__class__(NAMES, 4, (), broken),
        entry.__class__(("other",), 0, (), broken),
    ]
    place.write_bytes(shipped.pack([*others, entry]))
    found = shipped.load([samples.divide], 0, place.parent)
    assert found is not None
    assert found.call(samples.divide, -7, 2) == -3999
    place.write_bytes(shipped.pack(others))
    assert shipped.load([samples.divide], 0, place.parent) is None


def test_code_of_other_sources_is_left_alone(
    entry: Shipped, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shipped.load([samples.divide], 0, place.parent) is None
    place.write_bytes(shipped.pack([entry]))
    assert shipped.load([samples.divide], 0, place.parent) is not None
    monkeypatch.setattr(shipped, "sources_digest", lambda: "others")
    assert shipped.load([samples.divide], 0, place.parent) is None


def test_without_code_and_llvm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "find_spec", lambda name: None)
    with pytest.raises(MissingCodeError, match=r"pip install 'dovetail\[cpu\]'"):
        find.find_library([samples.divide])


def test_every_kind_of_processor_gets_a_file(tmp_path: Path) -> None:
    paths = simulator_code.write(tmp_path, lanes=())
    assert [path.name for path in paths] == ["x86_64.code", "aarch64.code"]
