"""Signatures of module files: Ed25519 over the SHA-512 of all that a file holds.

A signed file has, before its checksum, ``TRAILER`` with the signature and the public key that
belongs to it.  The key in the file only tells who says to have signed: what counts is the key that
the user gives.  Source: RFC 8032; keys are PEM files, as OpenSSL writes them.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

from dovetail.isa.files import replace_file

from ..errors import ModuleError
from ..files import DIGEST_BYTES, digest, read_file
from ..module import MAGIC, TRAILER, Module, trailer_of

__all__ = ["load_signed", "make_keys", "sign_file"]

CONTEXT = b"dovetail module signature 1\0"
"""Begins what is signed, so that no signature of something else is one of a module."""
SIGNATURE_BYTES = 64


def make_keys(stem: Path) -> tuple[Path, Path]:
    """Write a new pair of keys, ``STEM.key`` for the user alone and ``STEM.pub``; their paths.

    Raises ModuleError when a file is there already or cannot be written, which leaves neither,
    or for want of the package ``cryptography``.
    """
    crypto = _Cryptography()
    private, public = stem.with_name(f"{stem.name}.key"), stem.with_name(f"{stem.name}.pub")
    key = crypto.new_key()
    made: list[Path] = []
    try:
        for path, content, mode in (
            (private, crypto.private_pem(key), 0o600),
            (public, crypto.public_pem(key), 0o644),
        ):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            handle = os.open(path, flags, mode)
            made.append(path)
            with open(handle, "wb") as file:
                file.write(content)
    except BaseException as error:
        for each in made:
            each.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise ModuleError(f"cannot write key {path}: {error.strerror}") from None
    return private, public


def sign_file(path: Path, key: Path) -> None:
    """Sign a module with the private key in the file ``key``; a signature before gives way.

    Raises ModuleError when either cannot be read, or the module not be written.
    """
    crypto = _Cryptography()
    private = crypto.private_key(_content(key), key)
    data = _content(path)
    Module.from_bytes(data, str(path))
    body = data[: -DIGEST_BYTES - len(trailer_of(data))]
    signature = private.sign(_message(body))
    trailer = TRAILER + crypto.raw(private.public_key()) + signature
    try:
        replace_file(path, [body, trailer, digest(body, trailer)])
    except OSError as error:
        raise ModuleError(f"cannot write {path}: {error.strerror}") from None


def load_signed(path: Path, key: Path) -> Module:
    """Read a module that the owner of the public key in the file ``key`` has signed.

    What is checked is what is loaded: the file is read once.
    Raises ModuleError when it is not signed, by another key, or not as it was signed; and as
    ``Module.load``.
    """
    crypto = _Cryptography()
    public = crypto.public_key(_content(key), key)
    try:
        data, _ = read_file(path)
    except OSError as error:
        raise ModuleError(f"cannot read module {path}: {error.strerror}") from None
    trailer = bytes(trailer_of(data))
    if data[: len(MAGIC)] == MAGIC and not trailer:
        raise ModuleError(
            f"{path} is not signed; required a signature by {key}; whoever made it signs it with: "
            "dovetail sign MODULE --key FILE.key"
        )
    signer = trailer[len(TRAILER) : -SIGNATURE_BYTES]
    if trailer and signer != crypto.raw(public):
        raise ModuleError(
            f"{path} is signed by another key ({signer.hex()[:16]}...); required {key} "
            f"({crypto.raw(public).hex()[:16]}...)"
        )
    body = data[: -DIGEST_BYTES - len(trailer)]
    if trailer and not crypto.holds(public, trailer[-SIGNATURE_BYTES:], _message(body)):
        raise ModuleError(
            f"{path} was changed after it was signed: its signature does not fit; get it again "
            "from whoever signed it"
        )
    return Module.from_bytes(data, str(path))


def _message(body: memoryview | bytes) -> bytes:
    return CONTEXT + hashlib.sha512(body).digest()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModuleError(f"cannot read {path}: {error.strerror}") from None


class _Cryptography:
    """The functions of ``cryptography`` that are used; the package is imported on demand."""

    def __init__(self) -> None:
        """Raises ModuleError when the package is not installed."""
        try:
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.asymmetric import ed25519
        except ModuleNotFoundError:
            raise ModuleError(
                "signatures need cryptography, which is not installed; install the extra: "
                "pip install 'dovetail[sign]'"
            ) from None
        self._form, self._curve, self._wrong = serialization, ed25519, InvalidSignature

    def new_key(self) -> Any:
        """A private key."""
        return self._curve.Ed25519PrivateKey.generate()

    def private_key(self, content: bytes, path: Path) -> Any:
        """Raises ModuleError for what is not a private key of this kind."""
        try:
            found = self._form.load_pem_private_key(content, None)
        except (ValueError, TypeError) as error:
            raise ModuleError(f"{path} is not a private key: {error}") from None
        if not isinstance(found, self._curve.Ed25519PrivateKey):
            raise ModuleError(f"{path} is a key of another kind; required Ed25519")
        return found

    def public_key(self, content: bytes, path: Path) -> Any:
        """Raises ModuleError for what is not a public key of this kind."""
        try:
            found = self._form.load_pem_public_key(content)
        except ValueError as error:
            raise ModuleError(f"{path} is not a public key: {error}") from None
        if not isinstance(found, self._curve.Ed25519PublicKey):
            raise ModuleError(f"{path} is a key of another kind; required Ed25519")
        return found

    def private_pem(self, key: Any) -> bytes:
        """The content of a file."""
        plain = self._form.NoEncryption()
        kind = self._form.PrivateFormat.PKCS8
        return bytes(key.private_bytes(self._form.Encoding.PEM, kind, plain))

    def public_pem(self, key: Any) -> bytes:
        """The content of a file, of the public half of a private key."""
        kind = self._form.PublicFormat.SubjectPublicKeyInfo
        return bytes(key.public_key().public_bytes(self._form.Encoding.PEM, kind))

    def raw(self, key: Any) -> bytes:
        """The 32 bytes of a public key."""
        return bytes(key.public_bytes_raw())

    def holds(self, key: Any, signature: bytes, message: bytes) -> bool:
        """True if ``signature`` is one of ``message``."""
        try:
            key.verify(signature, message)
        except self._wrong:
            return False
        return True
