"""Reads of dashboards by their id alone, and lists over all owners that a user reaches. Pure reads of a snapshot."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.records.page import envelope, glob_match
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.membership import (
    ORGANIZATION,
    Membership,
    applications_of,
    find_membership,
    memberships,
)
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.presentation.dashboards.context import InvalidContext, resolve_context
from trunkline.actors.presentation.dashboards.holder import Holder, find_holder
from trunkline.actors.presentation.dashboards.kind import DASHBOARD
from trunkline.actors.presentation.dashboards.messages import (
    FindDashboard,
    ListOwnedDashboards,
    OwnedDashboardPage,
    ValidateContext,
)
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS
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
    first = () if message.first is None else (message.first,)
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
    held = find_dashboard(reading, FindDashboard(dashboard=message.dashboard, first=message.first))
    doc, query = held.found.doc, message.query
    shown = {"name": doc["name"], "id": held.found.id.hex()}
    for name in ("duration", "resolution", "refreshRate"):
        value = getattr(query, name, None)
        value = doc.get(name) if value is None else value
        if value is not None:
            shown[name] = value
    try:
        ctx = resolve_context(
            reading.snapshot, held.holder, doc, message.ctx, message.refused, refuses_defaults=True
        ).values
    except InvalidContext as refusal:
        return {
            "type": refusal.type,
            "message": refusal.message,
            "invalidCtxName": refusal.name,
            "ctx": refusal.ctx,
            "dashboard": shown,
        }
    return {"success": True, "ctx": ctx, "dashboard": shown}


class Source(NamedTuple):
    """A parent whose dashboards are listed. `member`: only those that the roles of this member allow."""

    holder: Holder
    member: Membership | None = None

    def allows(self, id: bytes) -> bool:
        """Whether the list shows this dashboard."""
        return self.member is None or self.member.dashboard_level(id) >= Level.READ

    def total(self, snapshot: Snapshot) -> int:
        """How many dashboards the list shows."""
        if self.member is None or not self.member.dashboard_roles:
            visible = self.member is None or self.member.level >= Level.READ
            return records.total(snapshot, DASHBOARD, self.holder.id) if visible else 0
        return sum(1 for key in self.keys(snapshot, "id") if self.allows(key))

    def keys(self, snapshot: Snapshot, field: str, *, descending: bool = False) -> Iterator[bytes]:
        """The index keys of all dashboards of the parent, in order, without the prefix that contains the parent."""
        if field == "id":
            db, prefix = keys.RECORDS, keys.record_prefix(DASHBOARD.name, self.holder.id)
        else:
            db, prefix = keys.INDEXES, keys.index_prefix(DASHBOARD.name, self.holder.id, field)
        for key in snapshot.keys(db, prefix, keys.prefix_end(prefix), reverse=descending):
            yield bytes(key[len(prefix) :])

    def ranked(self, snapshot: Snapshot, field: str, *, descending: bool) -> Iterator[tuple[bytes, Holder]]:
        """The keys that the list shows, each with the parent."""
        for key in self.keys(snapshot, field, descending=descending):
            if self.allows(key[-keys.ID_BYTES :]):
                yield key, self.holder


def list_owned_dashboards(reading: Reading, message: ListOwnedDashboards) -> dict[str, Any]:
    """A page of the dashboards that a user reaches, from the indexes of their parents."""
    snapshot, query = reading.snapshot, message.query
    sources = list(_sources(snapshot, message))
    steps = len(sources) + (query.page + 1) * query.per_page
    reading.check_time(is_long=steps > SCAN_INLINE_MAX)
    total = sum(source.total(snapshot) for source in sources)
    matches = glob_match(query, query.filter_field)
    reading.check_time(is_long=bool(matches) and total > SCAN_INLINE_MAX)
    ranked = _ranked(snapshot, sources, query)
    if matches:
        (match,) = matches
        kept = [each for each in ranked if match(_found(snapshot, *each).doc)]
        ranked, total = iter(kept), len(kept)
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


def _sources(snapshot: Snapshot, message: ListOwnedDashboards) -> Iterator[Source]:
    """Yield the parents whose dashboards are listed."""
    user, query = message.user, message.query
    members = memberships(snapshot, user)
    if query.org_id:
        member = find_membership(snapshot, bytes.fromhex(query.org_id), user)
        if member is None:
            raise Invalid(
                f"orgId: you belong to no organization {query.org_id.lower()}; `GET /orgs` lists yours."
            )
        members = iter([member])
    elif query.org_id == "":
        members = iter(())
    owned = [] if query.org_id else [Source(Holder("user", user))]
    applications = [] if query.org_id else list(ids_of_facet(snapshot, APPLICATION, ROOT, user.hex()))
    for member in members:
        owned.append(Source(Holder("org", member.org), member))
        applications += applications_of(snapshot, member)
    if query.application_id:
        asked = bytes.fromhex(query.application_id)
        if asked not in applications:
            raise Invalid(f"applicationId: there is no application {asked.hex()} that you reach.")
        yield Source(Holder("application", asked))
        return
    yield from owned
    if query.application_id is None:
        for id in applications:
            yield Source(Holder("application", id))


def _ranked(
    snapshot: Snapshot, sources: list[Source], query: OwnedDashboardPage
) -> Iterator[tuple[Holder, bytes]]:
    """Yield the parent and the id of all listed dashboards in order; ties are broken by id."""
    field, descending = query.sort_field, query.sort_direction == "desc"
    if field in ("ownerId", "applicationId"):
        in_order = sorted(sources, key=lambda each: _rank(snapshot, each.holder, field), reverse=descending)
        for source in in_order:
            for key, holder in source.ranked(snapshot, "id", descending=descending):
                yield holder, key
        return
    entries = [source.ranked(snapshot, field, descending=descending) for source in sources]
    for key, holder in heapq.merge(*entries, reverse=descending):
        yield holder, key[-keys.ID_BYTES :]


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
    if holder.kind == "org":
        return _organization(snapshot, holder.id)
    application = records.find(snapshot, APPLICATION, ROOT, holder.id)
    assert application is not None
    doc = application.doc
    owner = {"ownerId": doc["ownerId"], "ownerType": doc["ownerType"]}
    if doc["ownerType"] == "organization":
        owner = _organization(snapshot, bytes.fromhex(doc["ownerId"]))
    return {"applicationName": doc["name"], **owner}


def _organization(snapshot: Snapshot, id: bytes) -> Doc:
    found = records.find(snapshot, ORGANIZATION, ROOT, id)
    doc = {} if found is None else found.doc
    shown = {"ownerId": id.hex(), "ownerType": "organization"}
    names = {"organizationName": doc.get("name"), "organizationIconColor": doc.get("iconColor")}
    return shown | {name: value for name, value in names.items() if value is not None}
