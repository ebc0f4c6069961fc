"""Tokens with which the users of an experience are logged in: signed, verified, and ended before their time.

A token is a JWT, signed with a key of its application, which is made from the secret of the data directory: no token of
one application is valid in another one, none is a token of this API, and none of this API is valid here. Nothing of a
token is stored. A token ends when its time is over, when its user is deleted, and when `tokenCutoff` of the user or
`expUserTokenCutoff` of the application is later than the time at which it was made.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.source import Source
from trunkline.actors.core.values.errors import Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.signed_claims import NotSigned, SignedClaims, key_for
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.presentation.experience.kind import USER

TOKEN_CHARS_MAX: Final = 8192
"""Browsers do not keep cookies that are half as long; a header may be longer."""


class LoggedIn(NamedTuple):
    """The user of a valid token, and what the token says: `issuedAt`, `expiresAt` (or null) and `extraData`."""

    user: Found
    auth_info: Doc


class ExperienceTokens:
    """Makes and checks the tokens of one data directory. `secret` is that of the directory."""

    def __init__(self, secret: bytes) -> None:
        self._secret = key_for(secret, b"trunkline experience users")

    def make_token(
        self, application: bytes, user: bytes, *, now_ms: int, ttl_s: float | None = None, data: Any = None
    ) -> str:
        """A token of a user, valid for `ttl_s` seconds (None: without end). `data` is any JSON that it carries."""
        claims: dict[str, Any] = {"sub": user.hex(), "iat": now_ms / 1000}
        if ttl_s is not None:
            claims["exp"] = now_ms / 1000 + ttl_s
        if data is not None:
            claims["data"] = data
        return self._signed(application).sign(claims)

    def check_token(self, source: Source, application: bytes, token: str, now_ms: int) -> LoggedIn:
        """The user of a token. Raises `Unauthorized` for a token that is not valid in this application."""
        if len(token) > TOKEN_CHARS_MAX:
            raise _foreign()
        try:
            claims = self._signed(application).read(token, "sub", "iat")
            id, made_ms = bytes.fromhex(claims["sub"]), round(claims["iat"] * 1000)
            ends_ms = None if "exp" not in claims else round(claims["exp"] * 1000)
        except (NotSigned, ValueError):
            raise _foreign() from None
        if ends_ms is not None and now_ms >= ends_ms:
            raise Unauthorized("The token has expired; log in again.")
        user = records.find(source, USER, application, id)
        if user is None:
            raise Unauthorized("The user of this token does not exist any more.")
        if made_ms < _cutoff_ms(source, application, user):
            raise Unauthorized("The token was ended before its time; log in again.")
        info = {"issuedAt": iso(made_ms), "expiresAt": None if ends_ms is None else iso(ends_ms)}
        return LoggedIn(user, {**info, "extraData": claims.get("data")})

    def _signed(self, application: bytes) -> SignedClaims:
        return SignedClaims(key_for(self._secret, application))


def _foreign() -> Unauthorized:
    return Unauthorized("The token is not one of this experience.")


def _cutoff_ms(source: Source, application: bytes, user: Found) -> int:
    """The time before which tokens of a user are not valid."""
    owner = records.find(source, APPLICATION, ROOT, application)
    of_all = None if owner is None else owner.doc.get("expUserTokenCutoff")
    return max(of_all or 0, user.doc.get("tokenCutoff") or 0)
