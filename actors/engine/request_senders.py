"""Who sends the request of a node: the settings that say so, and what proves it to the server that is called."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import httpx

from trunkline.actors.core.outgoing.http_requests import Proof
from trunkline.actors.core.values.header_texts import HEADER_NAME, has_control
from trunkline.actors.engine.credentials import credential_of
from trunkline.actors.engine.settings import KEY, ChoiceSetting, Config, JsonSetting, Setting, TemplateSetting
from trunkline.actors.engine.tools import Unusable, choice_of, needed_text_reader, text_reader
from trunkline.actors.engine.visit import Visit, refused

_AUTH_TYPE: Final = ChoiceSetting("authType", "none", "basic", "clientCert", "credential")
CREDENTIAL_NAME: Final = TemplateSetting("credentialNameTemplate")
_AUTH_CREDENTIALS: Final = JsonSetting("authCredentials")
_USERNAME: Final = TemplateSetting("usernameTemplate")
_PASSWORD: Final = TemplateSetting("passwordTemplate")
_CERT: Final = TemplateSetting("certTemplate")
_PROOF: Final = (_USERNAME, _PASSWORD, _CERT, KEY)
SENDER: Final[tuple[Setting, ...]] = (_AUTH_TYPE, CREDENTIAL_NAME, _AUTH_CREDENTIALS)
"""The settings."""


class Sender(NamedTuple):
    """Makes the URL whole, and proves who sends the request."""

    url: str
    proof: Proof | None = None


def sender_of(config: Config) -> Callable[[Visit, str], Sender]:
    """Reads what proves who sends the request."""
    kind = choice_of(config, _AUTH_TYPE)
    if kind == "none":
        return lambda _visit, url: Sender(url)
    if kind == "credential":
        name = needed_text_reader(config, CREDENTIAL_NAME)
        return lambda visit, url: _with_credential(credential_of(visit.world, name(visit), "http"), url)
    proof = config[_AUTH_CREDENTIALS] or {}
    if not isinstance(proof, dict):
        raise Unusable("config.authCredentials: is not an object.")
    given = Config(proof, _PROOF, config.place(_AUTH_CREDENTIALS))
    if kind == "basic":
        user, password = text_reader(given, _USERNAME), text_reader(given, _PASSWORD)
        return lambda visit, url: Sender(url, Proof(_origin(url), _basic(user(visit), password(visit))))
    certificate, key = needed_text_reader(given, _CERT), needed_text_reader(given, KEY)
    return lambda visit, url: Sender(
        url, Proof(_origin(url), certificate=certificate(visit), private_key=key(visit))
    )


def _with_credential(credential: dict[str, Any], url: str) -> Sender:
    base, public, secret = credential["uriMatch"], credential["publicValue"], credential["secretValue"]
    if not re.match(r"https?://", url, re.IGNORECASE):
        url = base.rstrip("/") + ("" if url.startswith("?") else "/") + url.lstrip("/")
    proof = Proof(_url(base, "uriMatch of the credential"))
    if not proof.covers(_url(url, "config.uriTemplate")):
        raise refused(f"config.uriTemplate: is not under {base}, which the credential is for.")
    how = credential["authMethod"]
    if how == "header":
        public, secret = public.strip(), secret.strip()
        if not HEADER_NAME.fullmatch(public):
            raise refused("The publicValue of the credential is not the name of a header.")
        if has_control(secret):
            raise refused("The secret of the credential has a line break or another control character.")
        proof = proof._replace(headers=((public, secret),))
    elif how == "queryParam":
        proof = proof._replace(query=((public, secret),))
    elif how == "basicAuth":
        proof = proof._replace(headers=_basic(public, secret))
    else:
        proof = proof._replace(certificate=public, private_key=secret)
    return Sender(url, proof)


def _basic(user: str, password: str) -> tuple[tuple[str, str]]:
    both = f"{user}:{password}".encode("utf-8", "replace")
    return (("Authorization", f"Basic {base64.b64encode(both).decode()}"),)


def _origin(url: str) -> httpx.URL:
    return _url(url, "config.uriTemplate").copy_with(raw_path=b"/", fragment=None)


def _url(text: str, field: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
        _ = url.host  # decodes an internationalised name, which may be malformed
    except (httpx.InvalidURL, ValueError) as error:
        raise refused(f"{field}: is not a URL: {error}.") from None
    return url
