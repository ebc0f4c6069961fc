"""Encryption at rest: the keys, and values that are sealed with them.

Owns the file of the keys, the form of a sealed value, and finding sealed values in a document. Does not own which
fields are sealed (`Resource.sealed`), nor the rotation of the keys (`reseal.py`).

A secret that the server has to use again (the password of a webhook, the key of a cloud account) cannot be kept as a
hash. It is encrypted with AES-256-GCM. The kind and the id of its record and the name of its field are authenticated
with it, so a sealed value that is copied to another record or field cannot be opened there.

A sealed value is a byte string: 8 bytes that say so, the id of the key (4), the nonce (12, random), the encrypted
value (as CBOR) and the tag (16). JSON has no byte strings, so no caller can store one that looks like it.

The file has a line for each key: its id and its 32 bytes, in hexadecimal. The first one is the current key, which
seals; the others only open what was sealed before.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from trunkline.store import codec, keys
from trunkline.store.directory import read_private, write_private
from trunkline.store.errors import CannotOpen, SecretExposed, SecretMissing, translate

MARK: Final = b"\x00sealed\x01"
"""The first bytes of every sealed value."""

_KEY_ID_BYTES: Final = 4
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_SEALED_BYTES_MIN: Final = len(MARK) + _KEY_ID_BYTES + _NONCE_BYTES + _TAG_BYTES
_FILE_BYTES_MAX: Final = 64 * 1024


class Sealed(NamedTuple):
    """A sealed value in a document: `holder[key]` is `value`. `field` is its path, such as `config.headers.0.value`."""

    field: str
    holder: Any
    key: Any
    value: bytes


class Keyring:
    """The encryption keys of a data directory, the current one first."""

    __slots__ = ("_keys",)

    def __init__(self, keys: dict[bytes, bytes]) -> None:
        self._keys = keys

    @property
    def current(self) -> bytes:
        """The id of the key that seals."""
        return next(iter(self._keys))

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids of all keys, the current one first."""
        return tuple(self._keys)

    def hash(self, key: bytes, size_bytes: int) -> bytes:
        """A hash of all keys in any order, from which none can be found: it has a key of its own."""
        pairs = b"".join(sorted(id + secret for id, secret in self._keys.items()))
        return hashlib.blake2b(pairs, key=key, digest_size=size_bytes).digest()

    def seal(self, value: Any, *, kind: str, id: bytes, field: str) -> bytes:
        """Encrypt a value of plain data for one field of one record."""
        head = MARK + self.current
        nonce = secrets.token_bytes(_NONCE_BYTES)
        place = _place(head, kind, id, field)
        return head + nonce + AESGCM(self._keys[self.current]).encrypt(nonce, codec.encode(value), place)

    def unseal(self, sealed: bytes, *, kind: str, id: bytes, field: str) -> Any:
        """Return the value that was sealed for this field of this record. Raises CannotOpen."""
        head, rest = sealed[: len(MARK) + _KEY_ID_BYTES], sealed[len(MARK) + _KEY_ID_BYTES :]
        if not is_sealed(sealed):
            raise CannotOpen("it is not a sealed value")
        secret = self._keys.get(head[len(MARK) :])
        if secret is None:
            raise CannotOpen(f"the encryption key {key_of(sealed).hex()} is missing")
        nonce, encrypted = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
        try:
            return codec.decode(AESGCM(secret).decrypt(nonce, encrypted, _place(head, kind, id, field)))
        except InvalidTag:
            raise CannotOpen("it was changed, or it belongs to another record or field") from None

    def with_new_key(self) -> Self:
        """A keyring with a new current key before these keys."""
        return type(self)({secrets.token_bytes(_KEY_ID_BYTES): secrets.token_bytes(_KEY_BYTES), **self._keys})

    def without_old_keys(self) -> Self:
        """A keyring with the current key only."""
        return type(self)({self.current: self._keys[self.current]})

    # The file.

    @classmethod
    def new(cls) -> Self:
        """A keyring with one new key."""
        return cls({}).with_new_key()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file of the keys.

        Raises SecretMissing if there is none, SecretExposed if others may read it or if it is damaged.
        """
        try:
            text = read_private(path, _FILE_BYTES_MAX)
        except FileNotFoundError:
            raise SecretMissing(_missing(path)) from None
        try:
            pairs = [line.split(" ") for line in text.decode("ascii").splitlines()]
            found = {bytes.fromhex(id): bytes.fromhex(secret) for id, secret in pairs}
        except ValueError:
            found = {}
        lengths = {(len(id), len(secret)) for id, secret in found.items()}
        if lengths != {(_KEY_ID_BYTES, _KEY_BYTES)} or len(found) != len(pairs):
            raise SecretExposed(
                f"{path} is damaged: each line should hold the id of an encryption key and the key, "
                f"{2 * _KEY_ID_BYTES} and {2 * _KEY_BYTES} hexadecimal digits."
            )
        return cls(found)

    @classmethod
    def require(cls, path: Path, *, new: bool) -> Self:
        """Read the file; make it if there is none and `new` data is begun.

        Raises as `read`. A new key in place of a lost one would hide the loss: only the operator makes one.
        """
        if new and not os.path.lexists(path):
            cls.new().write(path)
        return cls.read(path)

    def write(self, path: Path) -> None:
        """Write the file, atomically; only its owner may read it. It is on disk when this returns."""
        lines = "".join(f"{id.hex()} {secret.hex()}\n" for id, secret in self._keys.items())
        try:
            write_private(path, lines.encode())
        except OSError as error:
            raise translate(error, f"writing of {path}") from error


def is_sealed(value: Any) -> bool:
    """Whether a value of a document is a sealed one."""
    return isinstance(value, bytes) and value.startswith(MARK) and len(value) >= _SEALED_BYTES_MIN


def key_of(sealed: bytes) -> bytes:
    """The id of the key with which a value was sealed."""
    return sealed[len(MARK) : len(MARK) + _KEY_ID_BYTES]


def sealed_values(document: Any, path: str = "") -> Iterator[Sealed]:
    """Yield every sealed value in a document, at any depth."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        field = f"{path}.{key}" if path else str(key)
        if is_sealed(value):
            yield Sealed(field, document, key, value)
        elif isinstance(value, dict | list):
            yield from sealed_values(value, field)


def without_sealed(document: Any) -> Any:
    """A copy of a document without its sealed values."""
    if isinstance(document, dict):
        return {key: without_sealed(value) for key, value in document.items() if not is_sealed(value)}
    if isinstance(document, list):
        return [without_sealed(value) for value in document if not is_sealed(value)]
    return document


def record_place(key: bytes) -> tuple[str, bytes]:
    """The kind and the id of the record at a key in RECORDS."""
    return key[: -2 * keys.ID_BYTES - 1].decode(), key[-keys.ID_BYTES :]


def _place(head: bytes, kind: str, id: bytes, field: str) -> bytes:
    """What is authenticated with a sealed value."""
    return b"\x00".join((head, kind.encode(), id, field.encode()))


def _missing(path: Path) -> str:
    return (
        f"There is no file {path}, which holds the encryption keys of the stored secrets. Copy it from where the "
        "data came from, or name its place with the setting `encryption_keys_file`. If it is lost, run: trunkline "
        "secret rekey --discard (passwords and keys of other services must then be set again)."
    )
