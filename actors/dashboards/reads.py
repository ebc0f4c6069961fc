"""Reads of dashboards by their id alone, and lists over all owners that a user reaches. Pure reads of a snapshot."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from trunkline.actors.dashboards.context import InvalidContext, resolve_context
from trunkline.actors.dashboards.holder import Holder, find_holder
from trunkline.actors.dashboards.kind import DASHBOARD
from trunkline.actors.dashboards.messages import (
    FindDashboard,
    ListOwnedDashboards,
    OwnedDashboardPage,
    ValidateContext,
)
from trunkline.actors.dashboards.resource import DASHBOARDS
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.records.listing import ids_of_facet
from trunkline.actors.records.page import envelope, glob_match
from trunkline.actors.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.records.resource import missing
from trunkline.actors.records.revision import Found
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.snapshot import Snapshot


class Held(NamedTuple):
    """A dashboard, its parent, and how it is shown to a user."""

    holder: Holder
    found: Found
    shown: Doc


def find_dashboard(reading: Reading, message: FindDashboard) -> Held:
    """Find a dashboard. Raises `NotFound`.

    The id does not contain the parent, so each parent that has dashboards is asked: one look-up for each.
    """
    snapshot, id = reading.snapshot, message.dashboard
    first = () if message.user is None else (message.user,)
    for number, parent in enumerate((*first, *_parents(snapshot))):
        reading.check_time(is_long=number >= SCAN_INLINE_MAX)
        found = records.find(snapshot, DASHBOARD, parent, id)
        holder = None if found is None else find_holder(snapshot, parent)
        if found is not None and holder is not None:
            return Held(holder, found, _show(snapshot, holder, found))
    raise missing(DASHBOARD, id)


def validate_context(reading: Reading, message: ValidateContext) -> Doc:
    """Check the values of the parameters of a dashboard; the answer says what is wrong, or gives all values."""
    reading.check_time(is_long=True)  # a pattern or a query may be applied to a long text
    held = find_dashboard(reading, FindDashboard(dashboard=message.dashboard, user=message.user))
    doc, query = held.found.doc, message.query
    shown = {"name": doc["name"], "id": held.found.id.hex()}
    for name in ("duration", "resolution", "refreshRate"):
        value = getattr(query, name, None)
        value = doc.get(name) if value is None else value
        if value is not None:
            shown[name] = value
    try:
        ctx = resolve_context(reading.snapshot, held.holder, doc, message.ctx)
    except InvalidContext as refusal:
        return {
            "type": refusal.type,
            "message": refusal.message,
            "invalidCtxName": refusal.name,
            "ctx": refusal.ctx,
            "dashboard": shown,
        }
    return {"success": True, "ctx": ctx, "dashboard": shown}


def list_owned_dashboards(reading: Reading, message: ListOwnedDashboards) -> dict[str, Any]:
    """A page of the dashboards that a user reaches, from the indexes of their parents."""
    snapshot, query = reading.snapshot, message.query
    holders = _holders(snapshot, message)
    counts = [records.total(snapshot, DASHBOARD, holder.id) for holder in holders]
    matches = glob_match(query, query.filter_field)
    steps = len(holders) + (sum(counts) if matches else (query.page + 1) * query.per_page)
    reading.check_time(is_long=steps > SCAN_INLINE_MAX)
    ranked = _ranked(snapshot, holders, query)
    if matches:
        (match,) = matches
        kept = [each for each in ranked if match(_found(snapshot, *each).doc)]
        ranked, total = iter(kept), len(kept)
    else:
        total = sum(counts)
    skip = query.page * query.per_page
    size = reading.answer_size()
    items = []
    for holder, id in islice(ranked, skip, skip + query.per_page):
        found = _found(snapshot, holder, id)
        size.add(len(found.raw))
        items.append(_show(snapshot, holder, found))
    shown = envelope("dashboards", items, total, query)
    if query.application_id:
        shown["applicationId"] = query.application_id.lower()
    if query.org_id:
        shown["orgId"] = query.org_id.lower()
    return shown


def _holders(snapshot: Snapshot, message: ListOwnedDashboards) -> list[Holder]:
    """The parents whose dashboards are listed."""
    query = message.query
    if query.org_id:
        raise Invalid("orgId: organizations are not supported by this server yet; leave it out.")
    owners = [Holder("user", message.user)]
    applications = [
        Holder("application", id)
        for owner in owners
        for id in ids_of_facet(snapshot, APPLICATION, ROOT, owner.id.hex())
    ]
    if query.application_id is None:
        return owners + applications
    if not query.application_id:
        return owners
    asked = Holder("application", bytes.fromhex(query.application_id))
    if asked not in applications:
        raise NotFound(f"There is no application {asked.id.hex()} that this user reaches.")
    return [asked]


def _ranked(
    snapshot: Snapshot, holders: list[Holder], query: OwnedDashboardPage
) -> Iterator[tuple[Holder, bytes]]:
    """Yield the parent and the id of all their dashboards in order; ties are broken by id."""
    field, descending = query.sort_field, query.sort_direction == "desc"
    if field in ("ownerId", "applicationId"):
        for holder in sorted(holders, key=lambda each: _rank(snapshot, each, field), reverse=descending):
            for key in _keys(snapshot, holder, "id", descending=descending):
                yield holder, key[-keys.ID_BYTES :]
        return
    entries = [_entries(snapshot, holder, field, descending=descending) for holder in holders]
    for key, holder in heapq.merge(*entries, reverse=descending):
        yield holder, key[-keys.ID_BYTES :]


def _entries(
    snapshot: Snapshot, holder: Holder, field: str, *, descending: bool
) -> Iterator[tuple[bytes, Holder]]:
    for key in _keys(snapshot, holder, field, descending=descending):
        yield key, holder


def _keys(snapshot: Snapshot, holder: Holder, field: str, *, descending: bool) -> Iterator[bytes]:
    """The index keys of the dashboards of a parent, in order, without the prefix that contains the parent."""
    if field == "id":
        db, prefix = keys.RECORDS, keys.record_prefix(DASHBOARD.name, holder.id)
    else:
        db, prefix = keys.INDEXES, keys.index_prefix(DASHBOARD.name, holder.id, field)
    for key in snapshot.keys(db, prefix, keys.prefix_end(prefix), reverse=descending):
        yield bytes(key[len(prefix) :])


def _rank(snapshot: Snapshot, holder: Holder, field: str) -> tuple[str, bytes]:
    if field == "applicationId":
        return holder.id.hex() if holder.kind == "application" else "", holder.id
    return _owner(snapshot, holder)["ownerId"], holder.id


def _found(snapshot: Snapshot, holder: Holder, id: bytes) -> Found:
    found = records.find(snapshot, DASHBOARD, holder.id, id)
    assert found is not None, "an index entry leads to no dashboard"
    return found


def _parents(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield every parent that has dashboards."""
    prefix = keys.kind_prefix(DASHBOARD.name)
    low, high = prefix, keys.prefix_end(prefix)
    while (key := next(snapshot.keys(keys.RECORDS, low, high), None)) is not None:
        parent = bytes(key[len(prefix) : len(prefix) + keys.ID_BYTES])
        yield parent
        after = keys.prefix_end(prefix + parent)
        assert after is not None
        low = after


def _show(snapshot: Snapshot, holder: Holder, found: Found) -> Doc:
    """A dashboard as its owner sees it."""
    shown = DASHBOARDS.show({holder.kind: holder.id}, found, None)
    return shown | _owner(snapshot, holder)


def _owner(snapshot: Snapshot, holder: Holder) -> Doc:
    """The fields that say to whom a dashboard belongs."""
    if holder.kind == "user":
        return {"ownerId": holder.id.hex(), "ownerType": "user"}
    application = records.find(snapshot, APPLICATION, ROOT, holder.id)
    assert application is not None
    doc = application.doc
    return {"applicationName": doc["name"], "ownerId": doc["ownerId"], "ownerType": doc["ownerType"]}
