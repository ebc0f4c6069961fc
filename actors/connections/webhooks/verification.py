"""How the senders of a webhook prove who they are: a user name and a password, or the way of a service.

Facebook and Fitbit make one call with GET to find out whether the address belongs to their customer; it is answered
here and triggers nothing. Twilio signs each call. Pure functions of the record and the call.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final
from urllib.parse import parse_qs, parse_qsl, urlsplit, urlunsplit

from trunkline.actors.connections.webhooks.messages import CallAnswer, ReceiveCall
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Forbidden, Unauthorized

_FORM: Final = b"application/x-www-form-urlencoded"
_FIELDS_MAX: Final = 1000
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def check_password(call: ReceiveCall, username: str, password: str | None) -> None:
    """Check HTTP basic authentication. Raises `Unauthorized`; always, if there is no password any more."""
    scheme, _, encoded = call.headers.get(b"authorization", b"").partition(b" ")
    given = b""
    if scheme.lower() == b"basic":
        try:
            given = base64.b64decode(encoded.strip(), validate=True)
        except (binascii.Error, ValueError):
            given = b""
    wanted = f"{username}:{password}".encode()
    if password is None or not hmac.compare_digest(given, wanted):
        raise Unauthorized("This webhook needs the right user name and password (HTTP basic authentication).")


def check_sender(doc: Doc, call: ReceiveCall) -> CallAnswer | None:
    """Check a call in the way of the service. Returns the answer to a handshake, None for an ordinary call.

    Raises `Forbidden` for a wrong signature or code.
    """
    code = str(doc.get("verificationCode") or "")
    match doc["verificationType"]:
        case "facebook":
            return _facebook(code, call)
        case "fitbit":
            return _fitbit(code, call)
        case "twilio":
            _check_twilio(code, call)
    return None


def _facebook(code: str, call: ReceiveCall) -> CallAnswer | None:
    """`hub.mode=subscribe` with the right `hub.verify_token` is answered with `hub.challenge`."""
    query = _query(call)
    if call.method != "GET" or "hub.mode" not in query:
        return None
    if query["hub.mode"] != "subscribe" or not _same(code, query.get("hub.verify_token")):
        raise Forbidden("hub.verify_token: is not the verification code of this webhook.")
    return CallAnswer(200, query.get("hub.challenge", ""))


def _fitbit(code: str, call: ReceiveCall) -> CallAnswer | None:
    """`verify` with the right code is answered with 204, a wrong one with 404: Fitbit tries both."""
    query = _query(call)
    if call.method != "GET" or "verify" not in query:
        return None
    return CallAnswer(204 if _same(code, query["verify"]) else 404)


def _check_twilio(code: str, call: ReceiveCall) -> None:
    """Check `X-Twilio-Signature`: the HMAC with SHA-1 of the URL and, for a form, of its sorted fields.

    Of another body the SHA-256 stands in the query, which is part of the URL.
    """
    signed = ""
    content_type = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if content_type == _FORM and call.method == "POST":
        fields: dict[str, set[str]] = {}
        for name, value in _pairs(call.body):
            fields.setdefault(name, set()).add(value)
        signed = "".join(name + value for name in sorted(fields) for value in sorted(fields[name]))
    elif call.body:
        digest = hashlib.sha256(call.body).hexdigest()
        if not _same(digest, _query(call).get("bodySHA256", "").lower()):
            raise Forbidden("bodySHA256: is not the SHA-256 of the body.")
    given = call.headers.get(b"x-twilio-signature", b"")
    wanted = [
        base64.b64encode(hmac.digest(code.encode(), (url + signed).encode(), hashlib.sha1))
        for url in _spellings(call.url)
    ]
    if not code or not any(hmac.compare_digest(given, each) for each in wanted):
        raise Forbidden("X-Twilio-Signature: is not the signature of this call.")


def _spellings(url: str) -> list[str]:
    """A URL as it is, and with its default port, which some of Twilio's calls name and others leave out."""
    parts = urlsplit(url)
    default = _DEFAULT_PORTS.get(parts.scheme)
    if parts.port is None and default is not None:
        return [url, urlunsplit(parts._replace(netloc=f"{parts.netloc}:{default}"))]
    if parts.port == default and parts.netloc.endswith(f":{default}"):
        return [url, urlunsplit(parts._replace(netloc=parts.netloc.removesuffix(f":{default}")))]
    return [url]


def _query(call: ReceiveCall) -> dict[str, str]:
    """The first value of each parameter of the query. Empty if there are too many."""
    try:
        found = parse_qs(call.query.decode("latin1"), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def _pairs(form: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(form.decode("latin1"), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise Forbidden(f"The form has more than {_FIELDS_MAX} fields, so it cannot be verified.") from None


def _same(code: str, given: str | None) -> bool:
    """Whether a code is the right one. An empty code is never right."""
    return bool(code) and hmac.compare_digest(code.encode(), (given or "").encode(errors="replace"))
