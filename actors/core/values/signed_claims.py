"""Claims that only this server can have signed: what links and tokens that are stored nowhere consist of.

Owns the keys, which are made from the secret of the data directory for one purpose each, and the form of a token (JWT).
Does not own the claims, nor when they end: times are compared by the caller, with the clock of the system.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final

import jwt

_ALGORITHM: Final = "HS256"


class NotSigned(Exception):
    """The server has not signed this token for this purpose, or a claim of it is missing or is not what it must be."""


def key_for(secret: bytes, purpose: bytes) -> bytes:
    """A key for one purpose: what is signed with it is valid nowhere else, and nowhere after a change of the secret."""
    return hmac.digest(secret, purpose, hashlib.sha256)


def unverified_claims(token: str | bytes) -> dict[str, Any]:
    """What a token claims, whoever has signed it: to find out who can verify it. Empty if it is no token."""
    try:
        claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError):
        return {}
    return claims


class SignedClaims:
    """Signs and reads claims with one key. `audience` is a claim that all of its tokens have."""

    def __init__(self, key: bytes, audience: str | None = None) -> None:
        self._key = key
        self._audience = audience

    def sign(self, claims: dict[str, Any]) -> str:
        """The token of some claims."""
        said = claims if self._audience is None else {"aud": self._audience, **claims}
        return jwt.encode(said, self._key, algorithm=_ALGORITHM)

    def read(self, token: str, *required: str) -> dict[str, Any]:
        """The claims of a token, which has the required ones. Raises `NotSigned`."""
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[_ALGORITHM],
                audience=self._audience,
                options={"verify_exp": False, "verify_iat": False, "require": list(required)},
            )
        except (jwt.InvalidTokenError, ValueError) as error:
            raise NotSigned from error
        return claims
