"""Reads of applications, each with its summary of counts. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.listing import Listing, Union, read_page, read_union
from trunkline.actors.core.records.page import Page, all_of, envelope, glob_match
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.records.summary import STORED_BYTES, STORED_FILES, chosen_counts
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.membership import (
    ORGANIZATION,
    Membership,
    find_membership,
    memberships,
    selection_of,
)
from trunkline.actors.platform.applications.messages import ApplicationView, GetApplication, ListApplications
from trunkline.actors.platform.applications.notebook_minutes import NO_RUNS
from trunkline.store.keyring import without_sealed
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
    is_shown = chosen_counts(counted, query.summary_include, query.summary_exclude)
    return _show(counted, reading.snapshot, found, is_shown, {})


def list_applications(counted: Counted, reading: Reading, message: ListApplications) -> Shown:
    """A page of the applications that a user can read, or of those of one organization or of the user alone."""
    query = message.query
    is_shown = chosen_counts(counted, query.summary_include, query.summary_exclude)
    found, total = readable_applications(reading, message.user, query.org_id, query, query.filter_field)
    orgs: dict[str, Shown] = {}
    items = [_show(counted, reading.snapshot, each, is_shown, orgs) for each in found]
    return envelope("applications", items, total, query)


def readable_applications(
    reading: Reading, user: bytes, org_id: str | None, page: Page, filter_field: str | None
) -> tuple[list[Found], int]:
    """A page of the applications that a user can read, and the number of all that match.

    `org_id` narrows them to those of an organization, or to those that belong to the user if it is blank. Raises
    `Invalid` for an organization that the user does not belong to.
    """
    listing = Listing.of(page, APPLICATION, ROOT, match=all_of(glob_match(page, filter_field)))
    union = _readable(reading.snapshot, user, org_id)
    if len(union.facets) == 1 and not union.hidden and not union.added:
        return read_page(reading, replace(listing, facet=union.facets[0]))
    return read_union(reading, listing, union)


def _readable(snapshot: Snapshot, user: bytes, org_id: str | None) -> Union:
    facets, hidden, added = [], set[bytes](), set[bytes]()
    members: Iterable[Membership] = ()
    if not org_id:
        facets.append(user.hex())
    if org_id is None:
        members = memberships(snapshot, user)
    elif org_id:
        member = find_membership(snapshot, bytes.fromhex(org_id), user)
        if member is None:
            raise Invalid(f"orgId: you belong to no organization {org_id.lower()}; `GET /orgs` lists yours.")
        members = [member]
    for member in members:
        selection = selection_of(snapshot, member)
        if selection.only is None:
            facets.append(member.org.hex())
            hidden |= selection.hidden
        else:
            added |= selection.only
    return Union(tuple(facets), frozenset(hidden), frozenset(added))


def _show(
    counted: Counted,
    snapshot: Snapshot,
    found: Found,
    is_shown: Callable[[str], bool],
    orgs: dict[str, Shown],
) -> Shown:
    """Return an application as the caller sees it. `orgs` keeps the organizations that were read already."""
    id, doc = found.id.hex(), found.doc
    if doc["ownerType"] == "organization":
        doc = doc | _of_organization(snapshot, doc["ownerId"], orgs)
    shown: Shown = {"id": id, "applicationId": id, **_APPLICATION.of(doc)}
    if "archiveConfig" in shown:
        shown["archiveConfig"] = without_sealed(shown["archiveConfig"])
    shown["summary"] = {
        field: records.total(snapshot, kind, found.id) for field, kind in counted.items() if is_shown(field)
    }
    if is_shown("storageStats"):
        shown["summary"]["storageStats"] = {
            name: sum(records.counted(snapshot, kind, found.id, field) for kind in counted.values())
            for name, field in (("count", STORED_FILES), ("size", STORED_BYTES))
        }
    if is_shown("notebookStats"):
        shown["summary"]["notebookStats"] = {**NO_RUNS}
    return shown | {"_etag": found.revision, "_type": "application"}


def _of_organization(snapshot: Snapshot, id: str, orgs: dict[str, Shown]) -> Shown:
    """The fields of an application that show the organization that owns it."""
    if id not in orgs:
        org = records.find(snapshot, ORGANIZATION, ROOT, bytes.fromhex(id))
        doc = {} if org is None else org.doc
        orgs[id] = {"organizationName": doc.get("name"), "organizationIconColor": doc.get("iconColor")}
    return orgs[id]
