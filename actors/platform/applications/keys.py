"""Access keys: the devices of an application log in with a key and its secret.

A key limits which devices may use it, and from which addresses. Only a hash of the secret is stored. The text of a
key is the id of its application followed by its own id, so a login finds the record without an index; it is not
secret.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.fields import ID, IDS, TAGS, TEXT, TEXTS, TIME, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import GIVES_ACCESS, Doc, Kind
from trunkline.actors.core.records.owner import check_ids
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.changes import Fixed, Removable, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.secret_texts import new_secret
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import (
    Description,
    Id,
    Ids,
    Links,
    Name,
    RecordView,
    TagFilters,
    TopicFilter,
)
from trunkline.actors.people.accounts.reach import KEY_ENDS_ACCESS, TOPIC_FILTER, FilterType, older_filter

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

APPLICATION_KEY_FIELDS: Final = Fields(
    "access key",
    {
        "id": ID,
        "creationDate": TIME,
        "lastUpdated": TIME,
        "status": TEXT,
        "deviceIds": IDS,
        "deviceTags": TAGS,
        "key": TEXT,
        "name": TEXT,
        "description": TEXT,
        "filterType": TEXT,
        "pubTopics": TEXTS,
        "subTopics": TEXTS,
        "addressFilterType": TEXT,
        "addresses": TEXTS,
    },
)

KeyQuery = Annotated[dict[str, Any], query_over(APPLICATION_KEY_FIELDS)]

_Addresses = Annotated[list[Annotated[str, Meta(max_length=48)]], Meta(max_length=100)]

_AddressFilter = Literal["all", "whitelist", "blacklist"]

KEY_TEXT: Final = re.compile(r"[0-9a-f]{48}")
"""The text of a key: the id of its application and its own id, in hexadecimal."""


class KeyPost(Body, frozen=True):
    """A new access key. `deviceIds` and `deviceTags` select its devices, by default all. `filterType` says how
    `pubTopics` and `subTopics` are meant, by default `whitelist` if the key selects devices, else `all`."""

    name: Removable[Name] | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    device_ids: Fixed[Ids] | UnsetType = UNSET
    device_tags: Fixed[TagFilters] | UnsetType = UNSET
    filter_type: FilterType | UnsetType = UNSET
    pub_topics: list[TopicFilter] | UnsetType = UNSET
    sub_topics: list[TopicFilter] | UnsetType = UNSET
    address_filter_type: _AddressFilter | UnsetType = UNSET
    addresses: _Addresses | UnsetType = UNSET


@changes_of(KeyPost)
class KeyPatch(Body, frozen=True):
    """Changes of an access key. `inactive` revokes the device tokens that were created with it."""

    status: Literal["active", "inactive"] | UnsetType = UNSET


class KeyPage(Page, frozen=True):
    """A page of the application's access keys."""

    sort_field: Literal["key", "status", "id", "creationDate", "lastUpdated", "name"] = "creationDate"
    sort_direction: Literal["asc", "desc"] = "desc"
    filter_field: Literal["key", "status", "name"] | None = None
    query: KeyQuery | None = None


class KeyView(RecordView, frozen=True, kw_only=True):
    """An access key. `secret` is shown only in the answer to its creation."""

    application_key_id: Id
    application_id: Id
    created_by_id: Id
    created_by_type: Literal["flow", "user", "apiToken"]
    last_updated_by_id: Id
    last_updated_by_type: Literal["flow", "user", "apiToken"]
    key: str
    status: Literal["active", "inactive"]
    filter_type: FilterType
    address_filter_type: _AddressFilter
    device_ids: list[Id]
    device_tags: list[Any]
    pub_topics: list[str]
    sub_topics: list[str]
    addresses: list[str]
    secret: str | None = None
    name: str | None = None
    description: str | None = None
    device_filter_type: Literal["blacklist", "none"] | None = None
    links: Links | None = msgspec.field(default=None, name="_links")


def _check(change: Change) -> None:
    """Check the selection of devices and the addresses; give a new key its text, secret and defaults."""
    new = change.new
    if change.old is None:
        secret = new_secret(48)
        change.shown_once["secret"] = secret
        new["secretHash"] = hash_secret(secret)
        new["key"] = (change.owner.ref.id + change.id).hex()
        for name in ("pubTopics", "subTopics", "addresses"):
            new.setdefault(name, [])
        new.setdefault("status", "active")
        new.setdefault("addressFilterType", "all")
    check_selection(change)
    _check_addresses(new)


def check_selection(change: Change) -> None:
    """Give a new key its selection of devices and topics; a change that names `filterType` makes it one of topics.

    For all records that select devices by `deviceIds` and `deviceTags`, and topics by `filterType`.
    """
    new = change.new
    if change.old is None:
        selects_devices = bool(new.get("deviceIds") or new.get("deviceTags"))
        new.setdefault("filterType", "whitelist" if selects_devices else "all")
        new["deviceIds"] = list(dict.fromkeys(id.lower() for id in new.get("deviceIds", [])))
        if not change.in_batch:
            check_ids(change.owner, "deviceIds", "device", "device", new["deviceIds"])
        new.setdefault("deviceTags", [])
    if change.old is None or "filterType" in change.named:
        new[TOPIC_FILTER] = True


def older_device_filter(_ids: Mapping[str, bytes], doc: Doc, _choice: object) -> Doc:
    """`deviceFilterType` of a key from the time when `filterType` was about devices, if it still matters."""
    found = older_filter(doc)
    return {} if found is None else {"deviceFilterType": found}


def _check_addresses(fields: Doc) -> None:
    for position, address in enumerate(fields.get("addresses", ())):
        try:
            ipaddress.ip_network(address, strict=False)
        except ValueError:
            raise Invalid(
                f"addresses[{position}]: {address!r} is neither an address nor a network; "
                "write it as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32."
            ) from None


def hash_secret(secret: str) -> bytes:
    """Return the hash of a key's secret. The secret has 384 random bits, so a fast hash is safe."""
    return hashlib.sha256(secret.encode()).digest()


APPLICATION_KEY: Final = Kind(
    name="applicationKey",
    noun="access key",
    title=None,
    counted_as="keyCount",
    ends_access=KEY_ENDS_ACCESS | {"addressFilterType", "addresses"},
    audited_as="ApplicationKey",
    not_portable=GIVES_ACCESS,
)

KEYS: Final = Resource(
    name="applicationKey",
    kind=APPLICATION_KEY,
    post=KeyPost,
    patch=KeyPatch,
    page=KeyPage,
    view=KeyView,
    fields=APPLICATION_KEY_FIELDS,
    hidden=frozenset({"secretHash", TOPIC_FILTER}),
    shows_once=True,
    check=_check,
    derive=older_device_filter,
)


def active_key(snapshot: Snapshot, key: str, secret: str) -> Found | None:
    """The record of the active access key with this text and secret; None if there is none.

    The first half of the text is the id of its application. Secrets are compared in constant time.
    """
    if KEY_TEXT.fullmatch(key) is None:
        return None
    found = records.find_shared(snapshot, APPLICATION_KEY, bytes.fromhex(key[:24]), bytes.fromhex(key[24:]))
    stored: bytes = found.doc["secretHash"] if found is not None else bytes(32)
    secret_matches = hmac.compare_digest(stored, hash_secret(secret))
    return found if found is not None and secret_matches and found.doc["status"] == "active" else None
