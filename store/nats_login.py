"""How a client logs in to a NATS server: as a user with a password, with a token, or with an nkey.

An nkey is a pair of Ed25519 keys. The client signs what the server sends at the start of the connection, so the seed
never leaves this machine. A seed is base32 of two bytes of kinds, 32 bytes, and a checksum (CRC-16/XMODEM, low byte
first). Source: https://docs.nats.io/running-a-nats-service/nats_admin/security/nkeys
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_SEED: Final = 18 << 3
_USER: Final = 20 << 3
_SEED_BYTES: Final = 36


@dataclass(frozen=True, slots=True)
class Login:
    """At most one of: `user` with `password`, `token`, `seed`."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    seed: str = field(default="", repr=False)

    def fields(self, nonce: str) -> Mapping[str, str]:
        """What CONNECT says, for the nonce of the server. Raises ValueError if `seed` is no seed of a user."""
        if self.seed:
            public, signature = signed(self.seed, nonce.encode())
            return {"nkey": public, "sig": signature}
        if self.user:
            return {"user": self.user, "pass": self.password}
        return {"auth_token": self.token} if self.token else {}


NOBODY: Final = Login()
"""No login: the server accepts everybody."""


def signed(seed: str, nonce: bytes) -> tuple[str, str]:
    """The public nkey of a seed, and the signature of a nonce in base64url without padding.

    Raises ValueError for what is no seed of a user.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(_private_bytes(seed))
    public = bytes([_USER]) + key.public_key().public_bytes_raw()
    name = base64.b32encode(public + _checksum(public)).rstrip(b"=").decode()
    return name, base64.urlsafe_b64encode(key.sign(nonce)).rstrip(b"=").decode()


def _private_bytes(seed: str) -> bytes:
    text = seed.strip()
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error:
        raw = b""
    # The first bits are those of a seed, the next ones the kind of key: a seed of a user begins with SU.
    kind = ((raw[0] & 7) << 5 | raw[1] >> 3) if len(raw) == _SEED_BYTES else -1
    if kind != _USER or raw[0] & 0xF8 != _SEED or _checksum(raw[:-2]) != raw[-2:]:
        raise ValueError(
            "This is not the seed of an nkey of a user: it has 58 letters and digits and begins with SU."
        )
    return raw[2:-2]


def _checksum(raw: bytes) -> bytes:
    return binascii.crc_hqx(raw, 0).to_bytes(2, "little")
