"""Reads of applications and of the current user, each with its summary of counts. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.actors.accounts.messages import GetMe, MeView
from trunkline.actors.accounts.tokens import API_TOKEN
from trunkline.actors.applications.messages import ApplicationView, GetApplication, ListApplications
from trunkline.actors.records import records
from trunkline.actors.records.kind import Kind
from trunkline.actors.records.kinds import APPLICATION, USER
from trunkline.actors.records.listing import Listing, ids_of_facet, read_page
from trunkline.actors.records.page import all_of, envelope, glob_match
from trunkline.actors.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.records.revision import Found
from trunkline.actors.records.shape import Shape
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.ids import ROOT
from trunkline.store.snapshot import Snapshot

Shown = dict[str, Any]
Counted = Mapping[str, Kind]
"""The fields of an application's summary, each with the kind of records that it counts."""

_APPLICATION = Shape(ApplicationView)
_ME = Shape(MeView)


def get_application(counted: Counted, reading: Reading, message: GetApplication) -> Shown:
    """One application."""
    found = records.find(reading.snapshot, APPLICATION, ROOT, message.application)
    if found is None:
        raise NotFound(f"There is no application {message.application.hex()}.")
    query = message.query
    return _show(counted, reading.snapshot, found, query.summary_include, query.summary_exclude)


def list_applications(counted: Counted, reading: Reading, message: ListApplications) -> Shown:
    """A page of the applications of one user."""
    query = message.query
    if query.org_id:
        raise Invalid("orgId: organizations are not supported by this server yet; leave it out.")
    match = all_of(glob_match(query, query.filter_field))
    listing = Listing.of(query, APPLICATION, ROOT, match=match, facet=message.user.hex())
    found, total = read_page(reading, listing)
    include, exclude = query.summary_include, query.summary_exclude
    items = [_show(counted, reading.snapshot, each, include, exclude) for each in found]
    return envelope("applications", items, total, query)


def _show(
    counted: Counted, snapshot: Snapshot, found: Found, include: str | None, exclude: str | None
) -> Shown:
    """Return an application as the caller sees it."""
    id = found.id.hex()
    shown: Shown = {"id": id, "applicationId": id, **_APPLICATION.of(found.doc)}
    shown["summary"] = {
        field: records.total(snapshot, kind, found.id)
        for field, kind in counted.items()
        if _is_in_summary(field, include, exclude)
    }
    return shown | {"_etag": found.revision, "_type": "application"}


def _is_in_summary(field: str, include: str | None, exclude: str | None) -> bool:
    if include is not None and field not in include.split(","):
        return False
    return exclude is None or field not in exclude.split(",")


def get_me(counted: Counted, reading: Reading, message: GetMe) -> Shown:
    """The current user."""
    snapshot, user = reading.snapshot, message.user
    reading.check_time(is_long=records.total(snapshot, APPLICATION, ROOT, user.hex()) > SCAN_INLINE_MAX)
    found = records.find(snapshot, USER, ROOT, user)
    if found is None:
        raise NotFound("The user of this token does not exist any more.")
    doc, id = found.doc, found.id.hex()
    names = [doc[field] for field in ("firstName", "lastName") if doc.get(field)]
    query = message.query
    summary = {
        field: value
        for field, value in _summary_of(counted, snapshot, user).items()
        if _is_in_summary(field, query.summary_include, query.summary_exclude)
    }
    return {
        "id": id,
        "userId": id,
        **_ME.of({**doc, "tokenCutoff": doc["tokenCutoff"] or None}),
        "emailVerified": False,
        "needsToVerifyEmail": False,
        "twoFactorAuthEnabled": False,
        "fullName": " ".join(names),
        "summary": summary,
        "_etag": found.revision,
        "_type": "me",
    }


def _summary_of(counted: Counted, snapshot: Snapshot, user: bytes) -> dict[str, int]:
    """Return the counts of what the user owns."""
    owned = list(ids_of_facet(snapshot, APPLICATION, ROOT, user.hex()))
    return {
        "apiTokenCount": records.total(snapshot, API_TOKEN, user),
        "appCount": len(owned),
        **{
            field: sum(records.total(snapshot, counted[field], application) for application in owned)
            for field in ("deviceCount", "keyCount")
        },
    }
