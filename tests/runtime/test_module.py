"""The module file: what is written is read, and what is damaged is refused."""

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.errors import DovetailError
from dovetail.runtime import run
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.files import DIGEST_BYTES, write_whole
from dovetail.runtime.module import ALIGNMENT, Module, Placement
from dovetail.runtime.native.image import Image
from dovetail.runtime.native.model import ModelPart
from dovetail.runtime.native.part import Constant, CpuPart
from dovetail.runtime.native.program import ProgramCode
from dovetail.runtime.tensors import TensorSignature

from .sample import SHAPE, copy_module

FILE = copy_module().to_bytes()
TENSOR = {"name": "x", "shape": [1, 2, 3, 8], "dtype": "int8"}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def with_checksum(body: bytes) -> bytes:
    inner = zlib.crc32(body).to_bytes(4, "little")
    return body + zlib.crc32(inner).to_bytes(4, "little")


def manifest_of(file: bytes) -> Any:
    return json.loads(file[16 : 16 + int.from_bytes(file[8:16], "little")])


def with_manifest(manifest: object, file: bytes = FILE) -> bytes:
    """The file with another manifest, and the right checksum."""
    text = json.dumps(manifest).encode()
    sections = file[16 + int.from_bytes(file[8:16], "little") : -4]
    return with_checksum(file[:8] + len(text).to_bytes(8, "little") + text + sections)


MANIFEST = manifest_of(FILE)


@given(
    data=st.binary(max_size=200),
    values=JSON_VALUES,
    shape=st.lists(st.integers(-1, 9), max_size=4).map(tuple),
)
def test_a_module_survives_its_file(data: bytes, values: object, shape: tuple[int, ...]) -> None:
    tensors = (TensorSignature("x", shape, "int8"), TensorSignature("y", shape, "bfloat16"))
    first = ModelPart(tensors, (TensorSignature("z", shape, "bool"),), data, values, values)
    second = ModelPart(first.outputs, (TensorSignature("w", (2,), "int8"),), b"", None, values)
    placed = (Placement("node", "Conv", "cpu", "why"),)
    outputs = (*second.outputs, *first.outputs, tensors[0])
    module = Module("cpu", tensors, outputs, (first, second), placed)
    assert Module.from_bytes(module.to_bytes()) == module


def test_the_same_module_gives_the_same_bytes() -> None:
    assert copy_module().to_bytes() == FILE


@pytest.mark.parametrize("name", ["x", "xy", "x" * 61])
def test_sections_begin_at_whole_words_of_memory(name: str) -> None:
    """So that a file in memory can be used where it lies."""
    tensor = TensorSignature(name, (1,), "int8")
    part = ModelPart((tensor,), (tensor,), b"a section", [], [])
    data = Module("cpu", (tensor,), (tensor,), (part,)).to_bytes()
    assert data.index(b"a section") % ALIGNMENT == 0
    assert (len(data) - DIGEST_BYTES) % ALIGNMENT == 0


@given(st.integers(0, len(FILE) - 1))
def test_a_truncated_file_is_refused(length: int) -> None:
    with pytest.raises(ModuleError, match=r"is damaged|is not a dovetail module"):
        Module.from_bytes(FILE[:length])


@pytest.mark.parametrize("length", [0, 1, 7, 8, 15, 16, 17, 47, 48, len(FILE) - 4, len(FILE) - 1])
def test_a_file_cut_at_a_boundary_is_refused(length: int) -> None:
    with pytest.raises(ModuleError, match=r"is damaged|is not a dovetail module"):
        Module.from_bytes(FILE[:length])


@given(st.integers(0, 8 * len(FILE) - 1))
def test_a_flipped_bit_is_found(bit: int) -> None:
    data = bytearray(FILE)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ModuleError, match=r"is damaged|is not a dovetail module|of format"):
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
        ({"format": 2}, "m is a module of format 2; this version reads format 9: compile"),
        ({"format": None}, "required are the entries format, target, inputs"),
        ({"inputs": [{"name": "x"}]}, r"field inputs\[0\]: no entry 'shape'"),
        ({"inputs": 3}, "field inputs: found 3, required a list"),
        ({"inputs": [3]}, r"inputs\[0\]: found 3, required an object with name, shape, dtype"),
        ({"inputs": []}, "part 0: no tensor 'x'; there are: "),
        ({"outputs": [TENSOR, TENSOR]}, "the outputs: two tensors of one name among x"),
        ({"outputs": [{**TENSOR, "dtype": "int9"}]}, r"outputs\[0\]: tensor 'x' has .*'int9'"),
        ({"outputs": [{**TENSOR, "shape": [2]}]}, r"found tensor x: int8\[1, 2, 3, 8\], required"),
        ({"sections": [191]}, "m has 256 bytes of sections, the manifest lists 192"),
        ({"sections": [256, 1]}, "m has 256 bytes of sections, the manifest lists 320"),
        ({"sections": [-1]}, "m has a section of -1 bytes"),
        ({"parts": [["tpu", {}]]}, "a part of an unknown kind 'tpu'; there are"),
        ({"sparts": []}, "required are the entries format, target, inputs"),
    ],
)
def test_a_wrong_manifest_with_a_right_checksum_is_refused(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(ModuleError, match=message):
        Module.from_bytes(with_manifest({**MANIFEST, **change}), "m")


def damaged(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every way to damage one field of ``value``, and the path of the field."""
    for wrong in (None, -1, 1 << 70, "?", 0.5, [], {}, [None], True):
        yield path, wrong
    items = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else items:
        inner = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip(".")
        if isinstance(value, dict):
            yield path, {name: other for name, other in value.items() if name != key}
        for place, changed in damaged(each, inner):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = changed
            yield place, copy


def test_every_field_that_is_damaged_is_refused_by_its_name_or_harmless() -> None:
    """A right checksum does not make a manifest right: no raw error reaches the user."""
    errors = []
    for path, manifest in damaged(MANIFEST):
        try:
            module = Module.from_bytes(with_manifest(manifest), "m.dvt")
            run(module, np.zeros(SHAPE, np.int8), "sim")
        except DovetailError as error:
            errors.append((path, str(error)))
    code = ProgramCode(Image(b"\xc3" * 80, {"main": 8}, ("exp",)), "main", 64, 1, None, 10, ("n",))
    constants = (Constant("float32", (2, 3), 0),)
    part = CpuPart(
        *(copy_module().inputs, copy_module().outputs, code, constants, bytes(64)),
        *("z80", ("flag",), (("node",),), ("x",)),
    )
    file = Module("cpu", part.inputs, part.outputs, (part,)).to_bytes()
    for path, manifest in damaged(manifest_of(file)):
        try:
            Module.from_bytes(with_manifest(manifest, file), "m.dvt")
        except ModuleError as error:
            errors.append((path, str(error)))
    assert len(errors) > 1500
    named = [path for path, error in errors if path.split("[")[0].split(".")[0] in error]
    assert len(named) > 0.9 * len(errors)


@given(st.binary(max_size=120))
def test_a_manifest_of_any_bytes_with_a_right_checksum_is_refused(rest: bytes) -> None:
    with pytest.raises(ModuleError):
        Module.from_bytes(with_checksum(FILE[:8] + rest + bytes(8)))


def test_a_file_of_an_older_version_is_told_from_a_damaged_one() -> None:
    """Its checksum was another one."""
    older = with_manifest({**MANIFEST, "format": 2})[:-4] + bytes(range(32))
    with pytest.raises(ModuleError, match="m is a module of format 2; this version reads format 9"):
        Module.from_bytes(older, "m")


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
