"""What a configuration must say so that the server can connect it. Owns the form; whether anybody answers there is
seen when it is connected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.certificates import read_certificates
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.header_texts import HEADER_NAME
from trunkline.actors.core.values.hosts import is_host
from trunkline.actors.core.values.private_keys import read_private_key

FRAMING: Final = frozenset({"host", "content-length", "transfer-encoding"})
"""Headers that no handshake can have beside its own."""
_OF_HANDSHAKES: Final = FRAMING | {
    "connection",
    "upgrade",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-version",
}
_TARGET: Final = re.compile(r"[!-~]*")


def check_connectable(type: str, config: Doc, topics: list[str]) -> None:
    """Raise `Invalid` for a field of the type `mqtt` or `websocket` that cannot be used. No secret is sealed."""
    at = f"{type}Config"
    for field, text in _texts(at, config, topics):
        if "{{" in text:
            raise Invalid(f"{field}: is a template, and none are filled in here; give the text itself.")
    if type == "websocket":
        _check_url(config["url"])
        _check_headers(config)
    else:
        _check_broker(config)
    _check_certificates(config, at)


def is_target(text: str) -> bool:
    """Whether a text can be in the first line of a request."""
    return _TARGET.fullmatch(text) is not None


def _texts(at: str, config: Doc, topics: list[str]) -> Iterator[tuple[str, str]]:
    """The texts, each with the name of its field."""
    for index, topic in enumerate(topics):
        yield f"topics[{index}]", topic
    for name, value in config.items():
        if isinstance(value, str):
            yield f"{at}.{name}", value
    for index, header in enumerate(config.get("headers", ())):
        for name, value in header.items():
            yield f"{at}.headers[{index}].{name}", value


def _check_url(text: str) -> None:
    try:
        url = urlsplit(text)
        fits = url.scheme in ("ws", "wss") and is_host(url.hostname or "") and url.port != 0
    except ValueError:
        fits = False
    if not fits or not is_target(text):
        raise Invalid(
            "websocketConfig.url: must begin with ws:// or wss:// and name a host; other characters as %20."
        )
    if url.username is not None or url.password is not None:
        raise Invalid("websocketConfig.url: must not contain a user name or a password; give them beside it.")


def _check_headers(config: Doc) -> None:
    """Check what a handshake can carry."""
    has_login = "username" in config or "password" in config
    for index, each in enumerate(config.get("headers", ())):
        at = f"websocketConfig.headers[{index}]"
        name = each["headerKey"]
        if HEADER_NAME.fullmatch(name) is None:
            raise Invalid(f"{at}.headerKey: is not a valid name of a header; give one such as X-Api-Key.")
        if name.lower() in _OF_HANDSHAKES:
            raise Invalid(
                f"{at}.headerKey: {name} belongs to the handshake, which has its own; leave it out."
            )
        if name.lower() == "authorization" and has_login:
            raise Invalid(f"{at}.headerKey: {name} is made of username and password; leave it out, or these.")
        value = each["headerValue"]
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise Invalid(f"{at}.headerValue: has characters that no header may have; give printable ASCII.")


def _check_broker(config: Doc) -> None:
    host, _, path = config["host"].partition("/")
    if not is_host(host) or not is_target(path):
        raise Invalid(
            "mqttConfig.host: must be the name or the address of a host, without a scheme and a port, and for ws and "
            "wss perhaps a path, such as broker.example.com/mqtt; an IPv6 address without brackets, other characters "
            "as %20."
        )
    for name in ("clientId", "username"):
        if "\0" in config.get(name, ""):
            raise Invalid(f"mqttConfig.{name}: has the character U+0000, which MQTT forbids; leave it out.")


def _check_certificates(config: Doc, at: str) -> None:
    if "caCertificate" in config:
        read_certificates(config["caCertificate"], field=f"{at}.caCertificate")
    certificate, private_key = config.get("certificate"), config.get("privateKey")
    if certificate is None and private_key is None:
        return
    if certificate is None or private_key is None:
        raise Invalid(f"{at}: give certificate and privateKey together, or neither of them.")
    _, chain = read_certificates(certificate, field=f"{at}.certificate")
    key = read_private_key(private_key, field=f"{at}.privateKey", only_pem=True)
    if key.public_key() != chain[0].public_key():
        raise Invalid(f"{at}.privateKey: is not the key of the certificate; give the pair.")
