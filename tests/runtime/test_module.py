"""The module file: what is written is read, and what is damaged is refused."""

import hashlib
import json
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.runtime.errors import ModuleError
from dovetail.runtime.module import Module, TensorSignature, write_whole

from .sample import copy_module

FILE = copy_module().to_bytes()
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def with_checksum(body: bytes) -> bytes:
    return body + hashlib.sha256(zlib.crc32(body).to_bytes(4, "little")).digest()


def with_manifest(change: dict[str, object]) -> bytes:
    """The sample's file with some entries of its manifest replaced, and the right checksum."""
    length = int.from_bytes(FILE[8:16], "little")
    manifest = {**json.loads(FILE[16 : 16 + length]), **change}
    text = json.dumps(manifest).encode()
    return with_checksum(
        FILE[:8] + len(text).to_bytes(8, "little") + text + FILE[16 + length : -32]
    )


@given(
    details=st.dictionaries(st.text(), JSON_VALUES, max_size=4),
    sections=st.dictionaries(st.text(), st.binary(max_size=64), max_size=4),
    shape=st.lists(st.integers(1, 9), max_size=4).map(tuple),
)
def test_a_module_survives_its_file(
    details: dict[str, object], sections: dict[str, bytes], shape: tuple[int, ...]
) -> None:
    signature = TensorSignature("tensor", shape, "int8")
    module = Module("cpu", (signature,), (signature, signature), details, sections)
    assert Module.from_bytes(module.to_bytes()) == module


def test_the_same_module_gives_the_same_bytes() -> None:
    assert copy_module().to_bytes() == FILE


@given(st.integers(0, len(FILE) - 1))
def test_a_truncated_file_is_refused(length: int) -> None:
    with pytest.raises(ModuleError, match=r"is damaged|is not a dovetail module"):
        Module.from_bytes(FILE[:length])


@pytest.mark.parametrize("length", [0, 1, 7, 8, 15, 16, 17, 47, 48, len(FILE) - 32, len(FILE) - 1])
def test_a_file_cut_at_a_boundary_is_refused(length: int) -> None:
    with pytest.raises(ModuleError, match=r"is damaged|is not a dovetail module"):
        Module.from_bytes(FILE[:length])


@given(st.integers(0, 8 * len(FILE) - 1))
def test_a_flipped_bit_is_found(bit: int) -> None:
    data = bytearray(FILE)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ModuleError, match=r"is damaged|is not a dovetail module"):
        Module.from_bytes(bytes(data))


@given(st.binary(min_size=1, max_size=80))
def test_bytes_after_the_end_are_refused(rest: bytes) -> None:
    with pytest.raises(ModuleError, match="is damaged"):
        Module.from_bytes(FILE + rest)


@given(st.binary(max_size=200))
def test_what_is_no_module_is_refused(data: bytes) -> None:
    with pytest.raises(ModuleError, match="is not a dovetail module"):
        Module.from_bytes(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3}, "format 3; required 2"),
        ({"inputs": [{"name": "x"}]}, "manifest"),
        ({"inputs": 3}, "manifest"),
        ({"sections": [["dram", 255]]}, "256 bytes of sections; the manifest lists 255"),
        ({"sections": [["dram", 300]]}, "256 bytes of sections; the manifest lists 300"),
        ({"sections": [["dram", -1]]}, "manifest"),
        ({"sections": [["dram", 128], ["dram", 128]]}, "'dram' twice"),
    ],
)
def test_a_wrong_manifest_with_a_right_checksum_is_refused(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(ModuleError, match=message):
        Module.from_bytes(with_manifest(change))


@given(st.binary(max_size=120))
def test_a_manifest_of_any_bytes_with_a_right_checksum_is_refused(rest: bytes) -> None:
    with pytest.raises(ModuleError):
        Module.from_bytes(with_checksum(FILE[:8] + rest + bytes(8)))


def test_the_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.dvt"
    path.write_bytes(FILE[:-1])
    with pytest.raises(ModuleError, match=r"broken\.dvt is damaged"):
        Module.load(path)
    with pytest.raises(ModuleError, match=r"cannot read module .*absent\.dvt"):
        Module.load(tmp_path / "absent.dvt")


def test_a_saved_file_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "module.dvt"
    path.write_bytes(b"before")
    copy_module().save(path)
    assert Module.load(path) == copy_module()
    assert os.listdir(tmp_path) == ["module.dvt"]


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    path.write_bytes(b"before")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModuleError, match=r"cannot write .*file: No space left on device"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModuleError, match=r"cannot write .*absent.module"):
        copy_module().save(tmp_path / "absent" / "module.dvt")
