"""Signed links to contents, and signed forms for uploads: whoever has one needs no token until it expires.

Owns what they contain, and their verification. Does not own whether the content exists.

Each is signed with a key of its own, derived from the secret of the data directory: a link is no form, neither is a
token, and a new secret invalidates all. A link contains all that is needed to serve the content; the time of expiry is
in it. A form has the fields that its policy names, with the same values; a form with other values is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

import msgspec

from trunkline.actors.core.values.errors import Forbidden, Gone, Invalid
from trunkline.actors.core.values.signed_claims import NotSigned, SignedClaims, key_for
from trunkline.actors.core.values.timestamps import iso
from trunkline.store.object_store import Stored

CONTENTS_PATH: Final = "/contents"
PUBLIC_PATH: Final = "/files"
UPLOADS_PATH: Final = "/uploads"
NAME_CHARS_MAX: Final = 200
"""Of a longer file name a link contains the beginning, and so does the file that a browser writes."""
_FORM_ALGORITHM: Final = "HMAC-SHA256"
_FORM_BYTES_MAX: Final = 8192


class Link(msgspec.Struct, frozen=True):
    """A link to a content. `name` and `type` are those of the file."""

    application: bytes
    content: bytes
    stored: Stored
    name: str
    type: str
    expires_ms: int


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an upload form permits: one content of one record, of this size and type, until it expires."""

    kind: str
    application: bytes
    record: bytes
    content: bytes
    size_bytes: int | None
    """None if the content may have any size that the application has room for."""
    type: str
    expires_ms: int
    issued_ms: int


class Signatures:
    """Signs and verifies links and forms. `base_url` is the server's URL for clients, without a slash at the end."""

    def __init__(self, secret: bytes) -> None:
        self._links = SignedClaims(key_for(secret, b"trunkline contents"))
        self._form_key = key_for(secret, b"trunkline uploads")
        self._webhook_key = key_for(secret, b"trunkline webhooks")
        self.base_url = ""

    def webhook_secret(self, application: bytes, webhook: bytes) -> str:
        """The part of the token of a new webhook that nobody can guess: 192 bits, which follow from its ids."""
        digest = hmac.digest(self._webhook_key, application + webhook, hashlib.sha256)
        return base64.urlsafe_b64encode(digest[:24]).decode()

    # Links.

    def link(self, link: Link) -> str:
        """The URL from which a content can be downloaded until it expires."""
        claims = {
            "a": link.application.hex(),
            "c": link.content.hex(),
            "s": link.stored.size_bytes,
            "h": link.stored.sha256,
            "n": link.name[:NAME_CHARS_MAX],
            "t": link.type,
            "exp": link.expires_ms // 1000,
        }
        return f"{self.base_url}{CONTENTS_PATH}?token={self._links.sign(claims)}"

    def read_link(self, token: str, now_ms: int) -> Link:
        """What a link names. Raises Forbidden for one that this server did not sign, Gone for an expired one."""
        try:
            claims = self._links.read(token, "exp")
            link = Link(
                bytes.fromhex(claims["a"]),
                bytes.fromhex(claims["c"]),
                Stored(claims["s"], claims["h"]),
                claims["n"],
                claims["t"],
                claims["exp"] * 1000,
            )
        except (NotSigned, ValueError, KeyError, TypeError):
            raise Forbidden(
                "token: this is not a link of this server, or it is incomplete; copy the whole link."
            ) from None
        if now_ms >= link.expires_ms:
            raise Gone("The link has expired; read the file again for a new one.")
        return link

    # Forms.

    @property
    def upload_url(self) -> str:
        """The URL to which forms are sent."""
        return self.base_url + UPLOADS_PATH

    def form(self, policy: Policy) -> dict[str, str]:
        """The fields of a form that permits one upload."""
        text = base64.urlsafe_b64encode(msgspec.json.encode(policy)).decode()
        return {**self._named_fields(policy), "policy": text, "signature": self._sign(text)}

    def _named_fields(self, policy: Policy) -> dict[str, str]:
        """The fields whose values follow from the policy."""
        application = policy.application.hex()
        return {
            "key": f"{application}/{policy.content.hex()}",
            "bucket": application,
            "Content-Type": policy.type,
            "algorithm": _FORM_ALGORITHM,
            "credential": f"{policy.kind}/{policy.record.hex()}",
            "date": iso(policy.issued_ms),
        }

    def read_form(self, fields: Mapping[str, str], now_ms: int) -> Policy:
        """The policy of a form, whose fields are complete and unchanged.

        Raises Forbidden if this server did not sign it, Gone if it has expired, Invalid for a field that differs.
        """
        text, signature = fields.get("policy", ""), fields.get("signature", "")
        if len(text) > _FORM_BYTES_MAX or not hmac.compare_digest(
            self._sign(text).encode(), signature.encode("utf-8", "replace")
        ):
            raise Forbidden(
                "signature: this form was not made by this server, or its policy was changed; "
                "send each of upload.fields unchanged."
            )
        policy = msgspec.json.decode(base64.urlsafe_b64decode(text), type=Policy)
        if now_ms >= policy.expires_ms:
            raise Gone("policy: the form has expired; change the file, which gives a new one.")
        wanted = {**self._named_fields(policy), "policy": text, "signature": signature}
        for name, value in wanted.items():
            if name not in fields and name == "bucket":
                continue  # object stores do not ask for it, so clients of these leave it out
            if fields.get(name) != value:
                raise Invalid(f"{name}: differs from upload.fields; send each of them unchanged.")
        for name in fields.keys() - wanted.keys():
            raise Invalid(f"{name[:100]}: is not a field of this form; send upload.fields, and then file.")
        return policy

    def _sign(self, text: str) -> str:
        return hmac.digest(self._form_key, text.encode("utf-8", "replace"), hashlib.sha256).hex()
