"""Logging in at another place: the configured identity providers, and the code host.

Owns the configuration as it is used, and asking the code host. Does not own what an answer of SAML must contain
(`saml.py`), nor which user logs in (the user's actor).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from cryptography import x509
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.outgoing.http_calls import Undelivered, get_json
from trunkline.actors.core.records.kind import OTHER_OWNER, Kind
from trunkline.actors.core.values.errors import Overloaded, Unauthorized
from trunkline.actors.core.values.signed_claims import key_for
from trunkline.actors.core.values.structs import FORM, Body, Message
from trunkline.actors.people.accounts.messages import Scopes
from trunkline.actors.people.accounts.saml import Partners, read_signers
from trunkline.limits.errors import SettingsError
from trunkline.limits.extras import how_to_install, lacks, library_missing
from trunkline.limits.settings import Settings
from trunkline.limits.sso import SsoDomain
from trunkline.limits.table import Limits

_ANSWER_BYTES_MAX: Final = 64 * 1024
"""Bytes of an answer of the code host: some hundred addresses."""
SSO_LOGINS: Final = Kind(
    name="ssoLogins",
    noun="list of used assertions",
    home="owner",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)
"""One record for each user who has logged in by SAML: its id and its parent are the id of the user."""

Provider = Literal["saml", "codehost"]


class SamlLogin(Body, frozen=True):
    """The answer of an identity provider, as the form of the browser contains it, and the domain of the user."""

    saml_response: Annotated[str, Meta(min_length=4, max_length=100_000)] = msgspec.field(name="SAMLResponse")
    saml_domain: Annotated[str, Meta(min_length=3, max_length=45)] = msgspec.field(name="SAMLDomain")
    requested_scopes: Scopes | UnsetType = UNSET
    token_ttl: Annotated[int, Meta(ge=0)] | UnsetType = msgspec.field(default=UNSET, name="tokenTTL")


class CodehostToken(Body, frozen=True):
    """A token of the code host, by which it says who its bearer is."""

    access_token: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1024,
            pattern=r"^[\x21-\x7e]+(?!\n)$",
            extra={FORM: "a token of 1 to 1024 visible ASCII characters"},
        ),
    ]


class CodehostLogin(CodehostToken, frozen=True):
    """A login with a token of the code host."""

    requested_scopes: Scopes | UnsetType = UNSET
    token_ttl: Annotated[int, Meta(ge=0)] | UnsetType = msgspec.field(default=UNSET, name="tokenTTL")


class BeginSession(Message, frozen=True):
    """Log in a user whom a provider knows by one of these addresses; the answer is the new `Session`.

    Raises `Unauthorized` if the user's address is another one or is not verified, or if `assertion` (its expiry in ms
    and its id) was used before.
    """

    provider: Provider
    emails: tuple[str, ...]
    assertion: tuple[int, str] | None = None


class ConnectCodehost(Message, frozen=True):
    """Permit logins by the code host, which knows the user by one of these addresses."""

    emails: tuple[str, ...]


class DisconnectCodehost(Message, frozen=True):
    """Refuse logins by the code host from now on."""


class SingleSignOn:
    """The domains with single sign-on, and the code host.

    Raises `SettingsError` for an unusable certificate, and for domains where the library is missing.
    """

    def __init__(self, settings: Settings, limits: Limits, secret: bytes) -> None:
        if settings.sso and lacks("saml"):
            raise SettingsError(
                "sso", f"names identity providers, and {library_missing('saml')}", how_to_install("saml")
            )
        self._limits = limits
        self._codehost_url = settings.codehost_url
        self._key = key_for(secret, b"trunkline single sign-on")
        self._domains: dict[str, tuple[SsoDomain, tuple[x509.Certificate, ...]]] = {
            domain: (sso, read_signers(domain, sso)) for domain, sso in settings.sso.items()
        }

    def partners(self, domain: str, base_url: str, now_ms: int) -> Partners | None:
        """The sides of a login from this domain; None if it has no single sign-on."""
        domain = domain.lower()
        found = self._domains.get(domain)
        if found is None:
            return None
        sso, certificates = found
        return Partners(
            domain=domain,
            sso=sso,
            certificates=certificates,
            base_url=base_url,
            key=self._key,
            limits=self._limits,
            now_ms=now_ms,
        )

    async def codehost_emails(self, access_token: str) -> tuple[str, ...]:
        """The verified addresses of the bearer of a token, as the code host says.

        Raises `Unauthorized` if there is no code host or it refuses the token, `Overloaded` if it does not answer.
        """
        if self._codehost_url is None:
            raise Unauthorized("This server has no code host to log in with; log in with the password.")
        try:
            status, answer = await get_json(
                self._codehost_url,
                {"Authorization": f"Bearer {access_token}"},
                timeout_s=self._limits.outgoing_timeout_s,
                bytes_max=_ANSWER_BYTES_MAX,
            )
        except Undelivered as reason:
            raise Overloaded(f"The code host cannot be asked. {reason}") from None
        if status >= 500 or status == 429:
            raise Overloaded(f"The code host cannot be asked: it answered with {status}. Try again later.")
        emails = _emails_in(answer) if status == 200 else ()
        if not emails:
            raise Unauthorized("accessToken: the code host names no verified e-mail address for it.")
        return emails


def _emails_in(answer: Any) -> tuple[str, ...]:
    """The verified addresses in an answer: an object with `email`, or a list of such objects.

    An object of a list must say that its address is verified. A single object may leave it out.
    """
    entries = answer if isinstance(answer, list) else [answer]
    found = []
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("email"), str):
            verified = entry.get("verified", entry.get("email_verified", not isinstance(answer, list)))
            if verified is True:
                found.append(entry["email"])
    return tuple(found)
