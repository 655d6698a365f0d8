"""Signatures: what is not signed, signed by another, or changed since is not loaded."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path
from shutil import which

import pytest

from dovetail.runtime import Module, Session
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.files import DIGEST_BYTES, digest
from dovetail.runtime.trust.signature import load_signed, make_keys, sign_file
from tests.runtime.sample import copy_module

pytest.importorskip("cryptography")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return make_keys(tmp_path / "mine")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    copy_module().save(tmp_path / "m.dvt")
    return tmp_path / "m.dvt"


def test_a_signed_module_loads_with_and_without_its_key(
    path: Path, keys: tuple[Path, Path]
) -> None:
    before = Module.load(path)
    sign_file(path, keys[0])
    assert load_signed(path, keys[1]).to_bytes() == Module.load(path).to_bytes()
    assert Module.load(path).to_bytes() == before.to_bytes()


def test_signing_again_replaces_the_signature(
    path: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    other = make_keys(tmp_path / "other")
    sign_file(path, other[0])
    size = path.stat().st_size
    sign_file(path, keys[0])
    assert path.stat().st_size == size
    load_signed(path, keys[1])
    with pytest.raises(ModuleError, match=r"signed by another key \([0-9a-f]{16}\.\.\.\)"):
        load_signed(path, other[1])


def test_an_unsigned_module_is_refused(path: Path, keys: tuple[Path, Path]) -> None:
    with pytest.raises(ModuleError, match="is not signed; required a signature by"):
        Session(path, require_signature=keys[1])
    with pytest.raises(ModuleError, match="a module in memory has no signature"):
        Session(Module.load(path), require_signature=keys[1])


@pytest.mark.parametrize("place", [10, 40, -300, -DIGEST_BYTES - 1, -DIGEST_BYTES - 70])
def test_a_change_is_noticed_though_the_checksum_is_made_to_fit(
    path: Path, keys: tuple[Path, Path], place: int
) -> None:
    sign_file(path, keys[0])
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    data[-DIGEST_BYTES:] = digest(bytes(data[:-DIGEST_BYTES]))
    path.write_bytes(data)
    with pytest.raises(ModuleError, match=r"changed after it was signed|another key"):
        load_signed(path, keys[1])


def test_a_signature_of_other_content_does_not_pass(
    path: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    sign_file(path, keys[0])
    trailer = path.read_bytes()[-DIGEST_BYTES - 104 : -DIGEST_BYTES]
    body = path.read_bytes()[: -DIGEST_BYTES - 104].replace(b'"logits"', b'"l0gits"')
    body = body if b"l0gits" in body else body[:-1] + b"\x01"
    path.write_bytes(body + trailer + digest(body, trailer))
    with pytest.raises(ModuleError, match="changed after it was signed"):
        load_signed(path, keys[1])


def test_the_private_key_is_the_users_alone_and_is_not_overwritten(
    keys: tuple[Path, Path], tmp_path: Path
) -> None:
    assert stat.S_IMODE(keys[0].stat().st_mode) & 0o077 == 0
    with pytest.raises(ModuleError, match="cannot write key"):
        make_keys(tmp_path / "mine")


@pytest.mark.skipif(which("openssl") is None, reason="openssl is not installed")
def test_openssl_finds_the_signature_right(
    path: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    sign_file(path, keys[0])
    data = path.read_bytes()
    body, signature = data[: -DIGEST_BYTES - 104], data[-DIGEST_BYTES - 64 : -DIGEST_BYTES]
    message = b"dovetail module signature 1\0" + hashlib.sha512(body).digest()
    (tmp_path / "message").write_bytes(message)
    (tmp_path / "signature").write_bytes(signature)
    words = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", keys[1], "-rawin"]
    files = ["-in", tmp_path / "message", "-sigfile", tmp_path / "signature"]
    subprocess.run([*words, *files], check=True, capture_output=True)


def test_what_is_no_key_is_refused(path: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"key")
    with pytest.raises(ModuleError, match="is not a private key"):
        sign_file(path, wrong)
    with pytest.raises(ModuleError, match="is not a public key"):
        load_signed(path, wrong)
    with pytest.raises(ModuleError, match="cannot read"):
        load_signed(path, tmp_path / "none")


def test_a_pair_of_keys_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "own.pub").write_text("another's")
    with pytest.raises(ModuleError, match=r"own\.pub: File exists"):
        make_keys(tmp_path / "own")
    assert os.listdir(tmp_path) == ["own.pub"]
    assert (tmp_path / "own.pub").read_text() == "another's"
