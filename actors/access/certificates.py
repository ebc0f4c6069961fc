"""Certificates of devices, and the authorities that issue such certificates: records of an application.

A certificate selects devices as an access key does. Only the certificate is stored; an upload with a private key is
refused.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import GIVES_ACCESS, Kind
from trunkline.actors.core.records.owner import check_unused
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.values.certificates import (
    check_authorities,
    check_chain,
    check_not_expired,
    check_purpose,
    describe,
    read_certificates,
)
from trunkline.actors.core.values.changes import Fixed, changes_of
from trunkline.actors.core.values.structs import Body, View
from trunkline.actors.core.values.terms import (
    Description,
    Id,
    Ids,
    IsoTime,
    Name,
    RecordView,
    TagFilter,
    TagFilters,
    TopicFilter,
)
from trunkline.actors.people.accounts.reach import KEY_ENDS_ACCESS, TOPIC_FILTER, FilterType
from trunkline.actors.platform.applications.keys import check_selection, older_device_filter

_CHAIN_CERTIFICATES_MAX: Final = 10
"""Certificates of a chain: half a millisecond each, in a turn. Chains of devices have two or three."""
_Pem = Annotated[str, Meta(min_length=50, max_length=32767)]
_Status = Literal["active", "inactive"]


class CertificateInfo(View, frozen=True):
    """The details of a certificate, read from it."""

    serial_number: str
    fingerprint: str
    common_name: str
    issuer_name: str
    not_valid_before: IsoTime
    not_valid_after: IsoTime


# Certificates of devices.


class CertificatePost(Body, frozen=True):
    """A new certificate. It selects devices and topics as an access key does, with the same defaults."""

    certificate: _Pem
    status: _Status = "active"
    description: Description | UnsetType = UNSET
    device_ids: Fixed[Ids] | UnsetType = UNSET
    device_tags: Fixed[TagFilters] | UnsetType = UNSET
    filter_type: FilterType | UnsetType = UNSET
    pub_topics: list[TopicFilter] | UnsetType = UNSET
    sub_topics: list[TopicFilter] | UnsetType = UNSET


@changes_of(CertificatePost)
class CertificatePatch(Body, frozen=True):
    """Changes of a certificate; omitted fields stay as they are. `certificate` replaces it, as when it is renewed."""


class CertificatePage(Page, frozen=True):
    """A page of the certificates of an application."""

    sort_field: Literal["certificateInfo.commonName", "status", "id", "creationDate", "lastUpdated"] = (
        "certificateInfo.commonName"
    )
    filter_field: Literal["certificateInfo.commonName", "status"] | None = None


class CertificateView(RecordView, frozen=True, kw_only=True):
    """A certificate of devices."""

    application_certificate_id: Id
    application_id: Id
    status: _Status
    certificate: str
    certificate_info: CertificateInfo
    filter_type: FilterType
    device_ids: list[Id]
    device_tags: list[TagFilter]
    pub_topics: list[str]
    sub_topics: list[str]
    description: str | None = None
    device_filter_type: Literal["blacklist", "none"] | None = None


FINGERPRINT: Final = "certificateInfo.fingerprint"

CERTIFICATE: Final = Kind(
    name="applicationCertificate",
    noun="certificate",
    indexes=("certificateInfo.commonName", "status", "creationDate", "lastUpdated"),
    unique=(FINGERPRINT,),
    counted_as="certificateCount",
    ends_access=KEY_ENDS_ACCESS | {"certificate"},
    audited_as="ApplicationCertificate",
    not_portable=GIVES_ACCESS,
)


def _check_certificate(change: Change) -> None:
    """Read the certificate, which its issuers may follow, and check the selection of devices."""
    new = change.new
    if change.old is None:
        for name in ("pubTopics", "subTopics"):
            new.setdefault(name, [])
    check_selection(change)
    if "certificate" in change.named:
        new["certificate"], chain = read_certificates(new["certificate"], field="certificate")
        check_not_expired(chain[:1], change.now_ms, field="certificate")
        check_chain(chain, _CHAIN_CERTIFICATES_MAX, field="certificate")
        check_purpose(chain[0], ExtendedKeyUsageOID.CLIENT_AUTH, field="certificate")
        new["certificateInfo"] = describe(chain[0])
        check_unused(change, CERTIFICATE, FINGERPRINT, "certificate")


CERTIFICATES: Final = Resource(
    name="applicationCertificate",
    kind=CERTIFICATE,
    post=CertificatePost,
    patch=CertificatePatch,
    page=CertificatePage,
    view=CertificateView,
    hidden=frozenset({TOPIC_FILTER}),
    check=_check_certificate,
    derive=older_device_filter,
)


# Authorities.


class AuthorityPost(Body, frozen=True):
    """A new certificate authority."""

    name: Name
    ca_bundle: _Pem
    status: _Status = "active"
    description: Description | UnsetType = UNSET


@changes_of(AuthorityPost)
class AuthorityPatch(Body, frozen=True):
    """Changes of a certificate authority; omitted fields stay as they are."""


class AuthorityPage(Page, frozen=True):
    """A page of the certificate authorities of an application."""

    sort_field: Literal["name", "status", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name", "status"] | None = None


class AuthorityView(RecordView, frozen=True, kw_only=True):
    """A certificate authority. `caInfo` describes each certificate of the bundle, in its order."""

    application_certificate_authority_id: Id
    application_id: Id
    name: str
    status: _Status
    ca_bundle: str
    ca_info: list[CertificateInfo]
    description: str | None = None


def _check_authority(change: Change) -> None:
    """Read the bundle: certificates of authorities that are still valid."""
    new = change.new
    if "caBundle" in change.named:
        new["caBundle"], bundle = read_certificates(new["caBundle"], field="caBundle")
        check_authorities(bundle, field="caBundle")
        check_not_expired(bundle, change.now_ms, field="caBundle")
        new["caInfo"] = [describe(certificate) for certificate in bundle]


AUTHORITIES: Final = Resource(
    name="applicationCertificateAuthority",
    kind=Kind(
        name="applicationCertificateAuthority",
        noun="certificate authority",
        title=None,
        indexes=("name", "status", "creationDate", "lastUpdated"),
        counted_as="certificateAuthorityCount",
        audited_as="ApplicationCertificateAuthority",
    ),
    post=AuthorityPost,
    patch=AuthorityPatch,
    page=AuthorityPage,
    view=AuthorityView,
    check=_check_authority,
)
