"""The verification of calls by Alexa: each is signed, and names the address of the certificate of its signer.

The rules are those that Amazon publishes for skills that are hosted as a web service. The address must be one of
Amazon's, the chain of certificates must be valid for `echo-api.amazon.com` and lead to an authority that is trusted,
the signature must be of the body, and the body must have been written just now.

The certificates are fetched over HTTPS and kept, at most a few: Amazon uses the same one for months.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import certifi
import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from trunkline.actors.connections.webhooks.messages import ReceiveCall
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.errors import Forbidden, Invalid, Overloaded
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.limits.table import Limits

SIGNER: Final = "echo-api.amazon.com"
AGE_MAX_MS: Final = 150_000
_HOST: Final = "s3.amazonaws.com"
_FOLDER: Final = "/echo.api/"
_AUTHORITY: Final = ("organizationName", "Amazon")
_BAD_CHAIN: Final = "SignatureCertChainUrl: its certificates are not those of Alexa."

Fetch = Callable[[str], Awaitable[bytes]]
"""Returns what lies at a URL. Raises `Undelivered`."""


class AlexaCertificates:
    """The keys with which Alexa signs, by the URL of their certificates. The default authorities are Amazon's."""

    def __init__(self, fetch: Fetch, limits: Limits, authorities: Store | None = None) -> None:
        self._fetch = fetch
        self._length_max = limits.alexa_certificates_max
        self._authorities = authorities
        self._kept: dict[str, tuple[RSAPublicKey, datetime]] = {}

    async def key(self, url: str, now_ms: int) -> RSAPublicKey:
        """The key of the signer whose certificates are at `url`.

        Raises `Forbidden` if they are not valid for Alexa, `Overloaded` if they cannot be fetched.
        """
        url = certificate_url(url)
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        kept = self._kept.get(url)
        if kept is not None and now < kept[1]:
            return kept[0]
        try:
            chain = await self._fetch(url)
        except Undelivered as failure:
            raise Overloaded(f"The certificate of Alexa cannot be fetched: {failure}") from None
        key, until = await in_thread(SHORT, self._verified, chain, now)
        self._kept.pop(url, None)
        if len(self._kept) >= self._length_max:
            del self._kept[next(iter(self._kept))]
        self._kept[url] = key, until
        return key

    def _verified(self, chain: bytes, now: datetime) -> tuple[RSAPublicKey, datetime]:
        """The key of the first certificate, and when it expires."""
        if self._authorities is None:
            self._authorities = _authorities()
        policy = PolicyBuilder().store(self._authorities).time(now.replace(tzinfo=None))
        try:
            leaf, *others = x509.load_pem_x509_certificates(chain)
            policy.build_server_verifier(x509.DNSName(SIGNER)).verify(leaf, others)
        except (ValueError, VerificationError):
            raise Forbidden(_BAD_CHAIN) from None
        key = leaf.public_key()
        if not isinstance(key, RSAPublicKey):
            raise Forbidden(_BAD_CHAIN)
        return key, leaf.not_valid_after_utc


def _authorities() -> Store:
    """The authorities of Amazon, of those that browsers trust."""
    context = ssl.create_default_context(cafile=certifi.where())
    every = zip(context.get_ca_certs(), context.get_ca_certs(binary_form=True), strict=True)
    return Store(
        [
            x509.load_der_x509_certificate(certificate)
            for about, certificate in every
            if any(_AUTHORITY in part for part in about["subject"])
        ]
    )


def certificate_url(given: str) -> str:
    """The URL of a chain of certificates in one spelling. Raises `Forbidden` if it is not one of Amazon's."""
    try:
        parts = urlsplit(given)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    path = posixpath.normpath(parts.path)
    if (
        parts.scheme.lower() != "https"
        or host != _HOST
        or port not in (None, 443)
        or not path.startswith(_FOLDER)
        or not (given.isascii() and given.isprintable())
    ):
        raise Forbidden(f"SignatureCertChainUrl: is not an address of https://{_HOST}{_FOLDER}.")
    return f"https://{_HOST}{path}"


def check_call(call: ReceiveCall, key: RSAPublicKey, skill: str, now_ms: int) -> None:
    """Check the signature, the time and, unless `skill` is empty, the id of the skill. Raises `Forbidden`."""
    try:
        signature = base64.b64decode(call.headers.get(b"signature-256", b""), validate=True)
        key.verify(signature, call.body, PKCS1v15(), SHA256())
    except (binascii.Error, ValueError, InvalidSignature):
        raise Forbidden("Signature-256: is not the signature of the body.") from None
    try:
        body = msgspec.json.decode(call.body)
        written_ms = parse_iso(str(body["request"]["timestamp"]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError, Invalid):
        raise Forbidden("request.timestamp: is not there, or is not a valid time.") from None
    if abs(now_ms - written_ms) > AGE_MAX_MS:
        raise Forbidden(f"request.timestamp: is more than {AGE_MAX_MS // 1000} seconds away from now.")
    if skill and skill not in _skills(body):
        raise Forbidden("applicationId: is not the verification code of this webhook.")


def _skills(body: dict[str, Any]) -> set[Any]:
    """The ids of the skill in a request: of the context, and of the session."""
    found = set()
    for steps in (("context", "System", "application"), ("session", "application")):
        part: Any = body
        for step in (*steps, "applicationId"):
            part = part.get(step) if isinstance(part, dict) else None
        if isinstance(part, str):
            found.add(part)
    return found
