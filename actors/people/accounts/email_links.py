"""Links by which a user proves to read the mail of an address: signed, and valid for a limited time.

Owns the token of a link and the text of the mail. A link is for one user and one address, so it has no effect after
the address has changed. It is signed with a key of its own, which is made from the secret of the data directory: no
link is a bearer token, and no bearer token is a link.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from trunkline.actors.core.outgoing.mail import MailMessage
from trunkline.actors.core.values.errors import Forbidden, NotFound
from trunkline.actors.core.values.signed_claims import NotSigned, SignedClaims, key_for
from trunkline.actors.core.values.structs import Query
from trunkline.actors.core.values.timestamps import iso

PATH: Final = "/auth/verifyEmail"
_PURPOSE: Final = "verify-email"


class EmailLink(Query, frozen=True):
    """The token of a link in a mail."""

    token: str


class Proof(NamedTuple):
    """What a link proves: that the user reads the mail of the address."""

    user: bytes
    email: str


class EmailLinks:
    """Makes and reads the links of one data directory. `secret` is that of the directory."""

    def __init__(self, secret: bytes) -> None:
        self._signed = SignedClaims(key_for(secret, b"trunkline e-mail addresses"), _PURPOSE)

    def mail(self, user: bytes, email: str, base_url: str, now_ms: int, ttl_s: int, id: str) -> MailMessage:
        """The mail with a link that is valid for `ttl_s` seconds."""
        expires_s = now_ms // 1000 + ttl_s
        claims = {"sub": user.hex(), "email": email, "exp": expires_s}
        token = self._signed.sign(claims)
        text = (
            f"Somebody, probably you, asked {base_url} to verify this e-mail address.\n\n"
            f"To verify it, open this link before {iso(expires_s * 1000)} and press the button:\n"
            f"{base_url}{PATH}?token={token}\n\n"
            "If it was not you, do nothing.\n"
        )
        return MailMessage(id, email, "Verify your e-mail address", text, now_ms)

    def read(self, token: str, now_ms: int) -> Proof:
        """Read the token of a link. Raises `Forbidden` for one of others, `NotFound` for one that has expired."""
        try:
            claims = self._signed.read(token, "sub", "email", "exp")
            proof = Proof(bytes.fromhex(claims["sub"]), claims["email"])
        except (NotSigned, ValueError):
            raise Forbidden(
                "This is not a link of this server, or it is incomplete; copy the whole link."
            ) from None
        if now_ms >= claims["exp"] * 1000:
            raise NotFound("The link has expired; ask for a new one.")
        return proof
