"""Reads of applications, each with its summary of counts. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.actors.applications.messages import ApplicationView, GetApplication, ListApplications
from trunkline.actors.records import records
from trunkline.actors.records.kind import Kind
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.records.listing import Listing, read_page
from trunkline.actors.records.page import all_of, envelope, glob_match
from trunkline.actors.records.reading import Reading
from trunkline.actors.records.revision import Found
from trunkline.actors.records.shape import Shape
from trunkline.actors.records.summary import chosen_counts
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.ids import ROOT
from trunkline.store.snapshot import Snapshot

Shown = dict[str, Any]
Counted = Mapping[str, Kind]
"""The fields of an application's summary, each with the kind of records that it counts."""

_APPLICATION = Shape(ApplicationView)


def get_application(counted: Counted, reading: Reading, message: GetApplication) -> Shown:
    """One application."""
    found = records.find(reading.snapshot, APPLICATION, ROOT, message.application)
    if found is None:
        raise NotFound(f"There is no application {message.application.hex()}.")
    query = message.query
    is_shown = chosen_counts(query.summary_include, query.summary_exclude)
    return _show(counted, reading.snapshot, found, is_shown)


def list_applications(counted: Counted, reading: Reading, message: ListApplications) -> Shown:
    """A page of the applications of one user."""
    query = message.query
    if query.org_id:
        raise Invalid("orgId: organizations are not supported by this server yet; leave it out.")
    is_shown = chosen_counts(query.summary_include, query.summary_exclude)
    match = all_of(glob_match(query, query.filter_field))
    listing = Listing.of(query, APPLICATION, ROOT, match=match, facet=message.user.hex())
    found, total = read_page(reading, listing)
    items = [_show(counted, reading.snapshot, each, is_shown) for each in found]
    return envelope("applications", items, total, query)


def _show(counted: Counted, snapshot: Snapshot, found: Found, is_shown: Callable[[str], bool]) -> Shown:
    """Return an application as the caller sees it."""
    id = found.id.hex()
    shown: Shown = {"id": id, "applicationId": id, **_APPLICATION.of(found.doc)}
    shown["summary"] = {
        field: records.total(snapshot, kind, found.id) for field, kind in counted.items() if is_shown(field)
    }
    return shown | {"_etag": found.revision, "_type": "application"}
