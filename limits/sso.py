"""Single sign-on: the e-mail domains whose users log in at an identity provider, from the tables `[sso."DOMAIN"]`.

Owns the names and the form of these settings. Does not own reading the certificate, nor the login itself.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trunkline.limits.errors import SettingsError

DOMAINS_MAX: Final = 1000
_DOMAIN: Final = re.compile(r"(?=.{3,45}\Z)[a-z0-9]([a-z0-9.-]*[a-z0-9])?\.[a-z0-9-]+", re.ASCII)
_CHARS_MAX: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class SsoDomain:
    """An e-mail domain with single sign-on by SAML 2.0.

    `url` is where the identity provider takes logins, `issuer` its name in its answers, `certfile` a PEM file with the
    certificates that it signs with. `audience` is the name of this server at the identity provider (default: its public
    URL), `acs_url` the page to which the identity provider sends its answer (default: the login at the public URL).
    `email_attribute` names the attribute with the e-mail address, if that is not the name of the subject.
    `unsolicited` also accepts answers for which this server has made no request.
    """

    url: str
    issuer: str
    certfile: str
    audience: str | None = None
    acs_url: str | None = None
    email_attribute: str | None = None
    unsolicited: bool = False


_FIELDS: Final = {field.name: field for field in dataclasses.fields(SsoDomain)}
_REQUIRED: Final = ("url", "issuer", "certfile")


def sso_domains(given: object) -> Mapping[str, SsoDomain]:
    """The domains of the table `sso` of the configuration file. Raises `SettingsError`."""
    if not isinstance(given, Mapping):
        raise SettingsError("sso", "is not a table", 'write a section such as [sso."example.com"]')
    if len(given) > DOMAINS_MAX:
        raise SettingsError("sso", f"has {len(given)} domains", f"give at most {DOMAINS_MAX}")
    return {domain: _domain(domain, each) for domain, each in given.items()}


def _domain(domain: str, given: object) -> SsoDomain:
    key = f'sso."{domain}"'
    if _DOMAIN.fullmatch(domain) is None:
        raise SettingsError(key, "is not a valid domain", "give one such as example.com, in lower case")
    if not isinstance(given, Mapping):
        raise SettingsError(key, "is not a table", f"write a section [{key}]")
    for name in _REQUIRED:
        if name not in given:
            raise SettingsError(f"{key}.{name}", "is missing", "set it")
    for name, value in given.items():
        _check(f"{key}.{name}", name, value)
    return SsoDomain(**given)


def _check(key: str, name: str, value: Any) -> None:
    if name not in _FIELDS:
        close = difflib.get_close_matches(name, _FIELDS, n=1)
        raise SettingsError(
            key, "is not a setting", f"did you mean {close[0]}?" if close else f"give {', '.join(_FIELDS)}"
        )
    if name == "unsolicited":
        if not isinstance(value, bool):
            raise SettingsError(key, f"is {value!r}", "give true or false")
    elif (
        not isinstance(value, str) or not value.strip() or len(value) > _CHARS_MAX or not value.isprintable()
    ):
        raise SettingsError(key, f"is {value!r}", f"give a text of at most {_CHARS_MAX} characters")
    elif name.endswith("url") and not value.startswith(("https://", "http://")):
        raise SettingsError(key, f"is {value!r}", "give a URL such as https://login.example.com/saml")
