"""Reading applications, access keys, API tokens and the current user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.actors.devices.selection import all_of, envelope, glob_match
from trunkline.actors.messages.reads import (
    GetApplication,
    GetMe,
    GetRecord,
    ListApplications,
    ListKeys,
    ListTokens,
)
from trunkline.actors.query.compile import APPLICATION_KEY_FIELDS, compile_query
from trunkline.actors.records import records
from trunkline.actors.records.kinds import (
    API_TOKEN,
    APPLICATION,
    APPLICATION_KEY,
    DATA_TABLE,
    DEVICE,
    EVENT,
    KINDS,
    USER,
)
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.terms import Page
from trunkline.actors.values.timestamps import iso
from trunkline.store.snapshot import Snapshot

Shown = dict[str, Any]

_COUNTED = {
    "apiTokenCount": API_TOKEN,
    "dataTableCount": DATA_TABLE,
    "deviceCount": DEVICE,
    "eventCount": EVENT,
    "keyCount": APPLICATION_KEY,
}
"""Summary fields and the kinds that they count."""


def _dates(found: records.Found) -> Shown:
    doc = found.doc
    return {"creationDate": iso(doc["creationDate"]), "lastUpdated": iso(doc["lastUpdated"])}


# Applications.


def get_application(snapshot: Snapshot, message: GetApplication) -> Shown:
    """One application."""
    found = records.find(snapshot, APPLICATION, ROOT, message.application)
    if found is None:
        raise NotFound(f"There is no application {message.application.hex()}.")
    query = message.query
    return show_application(snapshot, found, query.summary_include, query.summary_exclude)


def show_application(
    snapshot: Snapshot, found: records.Found, include: str | None, exclude: str | None
) -> Shown:
    """An application as the caller sees it."""
    doc, id = found.doc, found.id.hex()
    shown: Shown = {"id": id, "applicationId": id, **_dates(found)}
    for field in (
        "ownerId",
        "ownerType",
        "name",
        "description",
        "endpointSlug",
        "endpointDefaultCors",
        "globals",
        "blobUrlTTL",
        "ftueTracking",
    ):
        if field in doc:
            shown[field] = doc[field]
    if "expUserTokenCutoff" in doc:
        shown["expUserTokenCutoff"] = iso(doc["expUserTokenCutoff"])
    shown["summary"] = {
        field: records.total(snapshot, kind, found.id)
        for field, kind in _COUNTED.items()
        if _summarised(field, include, exclude)
    }
    return shown | {"_etag": found.etag, "_type": "application"}


def _summarised(field: str, include: str | None, exclude: str | None) -> bool:
    if include is not None and field not in include.split(","):
        return False
    return exclude is None or field not in exclude.split(",")


def list_applications(snapshot: Snapshot, message: ListApplications) -> Shown:
    """A page of the applications of one user."""
    query = message.query
    owner = message.user.hex()
    if query.org_id:
        raise Invalid("orgId: organizations are not supported by this server yet; leave it out.")
    matches = [lambda doc: doc["ownerId"] == owner, *glob_match(query, query.filter_field)]
    found, total = _page(snapshot, APPLICATION, ROOT, query, query.sort_field, matches)
    items = [show_application(snapshot, each, query.summary_include, query.summary_exclude) for each in found]
    return envelope("applications", items, total, query, query.sort_field, query.filter_field)


def _page(
    snapshot: Snapshot,
    kind: records.Kind,
    parent: bytes,
    query: Page,
    sort_field: str,
    matches: list[Callable[[Mapping[str, Any]], bool]],
) -> tuple[list[records.Found], int]:
    listing = records.Listing(
        kind=kind,
        parent=parent,
        sort_field=sort_field,
        descending=query.sort_direction == "desc",
        page=query.page,
        per_page=query.per_page,
        match=all_of(matches),
    )
    return records.page(snapshot, listing)


# Plain kinds.


def get_record(snapshot: Snapshot, message: GetRecord) -> Shown:
    """One access key or API token."""
    kind = KINDS[message.kind]
    found = records.find(snapshot, kind, message.parent, message.record)
    if found is None:
        raise NotFound(f"There is no {kind.noun} {message.record.hex()} here.")
    return _SHOW[message.kind](snapshot, message.parent, found)


def _show_key(_snapshot: Snapshot, parent: bytes, found: records.Found) -> Shown:
    doc, id = found.doc, found.id.hex()
    hidden = ("secretHash", "creationDate", "lastUpdated", "createdByName", "lastUpdatedByName")
    return {
        "id": id,
        "applicationKeyId": id,
        "applicationId": parent.hex(),
        **_dates(found),
        **{field: value for field, value in doc.items() if field not in hidden and value is not None},
        "_etag": found.etag,
        "_type": "applicationKey",
    }


def _show_token(snapshot: Snapshot, parent: bytes, found: records.Found) -> Shown:
    doc, id = found.doc, found.id.hex()
    owned = records.find(snapshot, APPLICATION, ROOT, parent) is not None
    shown: Shown = {
        "id": id,
        "apiTokenId": id,
        "ownerId": parent.hex(),
        "ownerType": "application" if owned else "user",
        "creatorId": doc["createdById"],
        "creatorType": doc["createdByType"],
        "creatorName": doc["createdByName"],
        **_dates(found),
        "name": doc["name"],
        "scope": doc["scope"],
        "status": doc["status"],
    }
    if owned:
        shown["applicationId"] = parent.hex()
    if "description" in doc:
        shown["description"] = doc["description"]
    if "expirationDate" in doc:
        shown["expirationDate"] = iso(doc["expirationDate"])
    return shown | {"_etag": found.etag, "_type": "apiToken"}


_SHOW: dict[str, Callable[[Snapshot, bytes, records.Found], Shown]] = {
    APPLICATION_KEY.name: _show_key,
    API_TOKEN.name: _show_token,
}


def list_keys(snapshot: Snapshot, message: ListKeys) -> Shown:
    """A page of access keys."""
    query = message.query
    matches = glob_match(query, query.filter_field)
    if query.query is not None:
        compiled = compile_query(query.query, APPLICATION_KEY_FIELDS, at="query")
        matches.append(compiled.matches)
    found, total = _page(snapshot, APPLICATION_KEY, message.application, query, query.sort_field, matches)
    items = [_show_key(snapshot, message.application, each) for each in found]
    shown = envelope("applicationKeys", items, total, query, query.sort_field, query.filter_field)
    return shown | {"applicationId": message.application.hex()}


def list_tokens(snapshot: Snapshot, message: ListTokens) -> Shown:
    """A page of API tokens."""
    query = message.query
    matches = glob_match(query, query.filter_field)
    found, total = _page(snapshot, API_TOKEN, message.parent, query, query.sort_field, matches)
    items = [_show_token(snapshot, message.parent, each) for each in found]
    shown = envelope("apiTokens", items, total, query, query.sort_field, query.filter_field)
    owned = records.find(snapshot, APPLICATION, ROOT, message.parent) is not None
    if owned:
        shown["applicationId"] = message.parent.hex()
    return shown | {"ownerId": message.parent.hex(), "ownerType": "application" if owned else "user"}


# The current user.


def get_me(snapshot: Snapshot, message: GetMe) -> Shown:
    """The current user."""
    found = records.find(snapshot, USER, ROOT, message.user)
    if found is None:
        raise NotFound("The user of this token does not exist any more.")
    doc, id = found.doc, found.id.hex()
    shown: Shown = {"id": id, "userId": id, **_dates(found)}
    shown["passwordLastUpdated"] = iso(doc["passwordLastUpdated"])
    names = [doc[field] for field in ("firstName", "lastName") if doc.get(field)]
    shown |= {
        "email": doc["email"],
        "emailVerified": False,
        "needsToVerifyEmail": False,
        "twoFactorAuthEnabled": False,
        "fullName": " ".join(names),
    }
    for field in ("firstName", "lastName", "companyName", "title", "phoneNumber", "location", "url"):
        if field in doc:
            shown[field] = doc[field]
    if doc["tokenCutoff"]:
        shown["tokenCutoff"] = iso(doc["tokenCutoff"])
    query = message.query
    shown["summary"] = {
        field: value
        for field, value in _my_summary(snapshot, message.user).items()
        if _summarised(field, query.summary_include, query.summary_exclude)
    }
    return shown | {"_etag": found.etag, "_type": "me"}


def _my_summary(snapshot: Snapshot, user: bytes) -> dict[str, int]:
    owned = [id for id, doc in records.scan(snapshot, APPLICATION, ROOT) if doc["ownerId"] == user.hex()]
    return {
        "apiTokenCount": records.total(snapshot, API_TOKEN, user),
        "appCount": len(owned),
        "deviceCount": sum(records.total(snapshot, DEVICE, application) for application in owned),
        "keyCount": sum(records.total(snapshot, APPLICATION_KEY, application) for application in owned),
    }
