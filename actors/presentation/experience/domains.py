"""Domains of an experience: under which names it is reached, with which certificate, and which version serves.

A name is unique in the server, so that a request finds its application by it. Which names there may be is up to the
operator (`domain_names.py`).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.values.changes import Removable, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Id, Name, RecordView
from trunkline.actors.presentation.experience.content import DEVELOP_NAME, check_number, check_version
from trunkline.actors.presentation.experience.domain_names import DomainNames
from trunkline.actors.presentation.experience.kind import DOMAIN
from trunkline.actors.presentation.experience.tls import (
    check_certificate,
    check_chain,
    check_key,
    key_fingerprint,
)
from trunkline.store import keys

_LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"({_LABEL}\.)+(?!\d+$){_LABEL}")
_DomainName = Annotated[str, Meta(min_length=3, max_length=45)]
_Pem = Annotated[str, Meta(min_length=50, max_length=32767)]


class DomainPost(Body, frozen=True):
    """A new domain. `version` is `develop` if it is left out; with null, no version serves it."""

    domain_name: _DomainName
    ssl_key: Removable[_Pem] | UnsetType = UNSET
    ssl_cert: Removable[_Pem] | UnsetType = UNSET
    ssl_bundle: Removable[_Pem] | UnsetType = UNSET
    version: Name | UnsetType | None = UNSET


@changes_of(DomainPost)
class DomainPatch(Body, frozen=True):
    """Changes of a domain; omitted fields stay as they are. Null removes a certificate, a key or the version."""

    ssl_key: _Pem | UnsetType | None = UNSET


class DomainPage(Page, frozen=True):
    """A page of domains."""

    sort_field: Literal["domainName", "id", "creationDate", "lastUpdated"] = "domainName"
    filter_field: Literal["domainName"] | None = None


class DomainView(RecordView, frozen=True, kw_only=True):
    """A domain. The key is never shown."""

    experience_domain_id: Id
    application_id: Id
    domain_name: str
    ssl_cert: str | None = None
    ssl_bundle: str | None = None
    version: str | None = None


async def _prepare(body: DomainPost | DomainPatch) -> Any:
    """Check the private key before the actor is asked, because that takes long."""
    if isinstance(body.ssl_key, str):
        await check_key(body.ssl_key)
    return body


def _check(change: Change) -> None:
    """Check the name, the version, and that certificate, key and name fit each other."""
    owner, new, named = change.owner, change.new, change.named
    if change.old is None:
        raw = Staged(owner).get(keys.COUNTS, keys.total_key(DOMAIN.name, owner.ref.id))
        check_number(raw, owner.system.limits.experience_domains_max, "domains")
        if "version" not in named:
            new["version"] = DEVELOP_NAME
    if "domainName" in named:
        new["domainName"] = new["domainName"].lower()
        if not _DOMAIN.fullmatch(new["domainName"]):
            raise Invalid(
                f"domainName: {new['domainName']!r} is not the name of a domain; write it as www.example.com."
            )
        if change.old is None or change.old["domainName"] != new["domainName"]:
            owner.system.component(DomainNames).check(new["domainName"], owner.ref.id)
    if named.get("version") is not None:
        check_version(Staged(owner), owner.ref.id, new["version"])
    _check_tls(change)


def _check_tls(change: Change) -> None:
    new, named = change.new, change.named
    if named.get("sslKey") is not None:
        new["sslKeyFingerprint"] = key_fingerprint(named["sslKey"])
    elif "sslKey" in named:
        new.pop("sslKeyFingerprint", None)
    if ("sslCert" in new) != ("sslKey" in new):
        given, missing = ("sslCert", "sslKey") if "sslCert" in new else ("sslKey", "sslCert")
        raise Invalid(f"{missing}: is missing; it is stored and removed together with {given}.")
    if "sslBundle" in new and "sslCert" not in new:
        raise Invalid("sslBundle: belongs to a certificate, and there is no sslCert; send or remove both.")
    if named.get("sslCert") is not None or named.get("sslBundle") is not None:
        check_chain(new["sslCert"], new.get("sslBundle"), change.now_ms)
    if "sslCert" in new and named.keys() & {"sslCert", "sslKey", "domainName"}:
        check_certificate(new["sslCert"], new["sslKeyFingerprint"], new["domainName"])


DOMAINS: Final = Resource(
    name="experienceDomain",
    kind=DOMAIN,
    post=DomainPost,
    patch=DomainPatch,
    page=DomainPage,
    view=DomainView,
    hidden=frozenset({"sslKeyFingerprint"}),
    sealed=frozenset({"sslKey"}),
    check=_check,
    prepare=_prepare,
)
