"""Reads of the audit logs of organizations and of users. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.listing import Listing, find_access_paths, read_page
from trunkline.actors.core.records.page import envelope
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.timestamps import iso, resolve_timestamp
from trunkline.actors.people.audit.messages import (
    AUDIT_ENTRY,
    AUDIT_FIELDS,
    AuditLogFilter,
    AuditLogView,
    AuditPage,
    GetAuditLog,
    GetOwnAuditLog,
    ListAuditLogs,
    ListOwnAuditLogs,
)

_SHAPE = Shape(AuditLogView)


def get_audit_log(reading: Reading, message: GetAuditLog) -> dict[str, Any]:
    """One entry of an organization."""
    return _entry(reading, _Log(message.org, "orgId"), message.audit_log)


def get_own_audit_log(reading: Reading, message: GetOwnAuditLog) -> dict[str, Any]:
    """One entry about applications of a user."""
    return _entry(reading, _Log(message.user, "userId"), message.audit_log)


def list_audit_logs(kinds: Mapping[str, Kind], reading: Reading, message: ListAuditLogs) -> dict[str, Any]:
    """A page of entries of an organization. Raises `PayloadTooLarge` if they are too large for one answer."""
    _check_names(kinds, message.query)
    return _page(reading, _Log(message.org, "orgId"), message.query, message.now_ms)


def list_own_audit_logs(
    kinds: Mapping[str, Kind], reading: Reading, message: ListOwnAuditLogs
) -> dict[str, Any]:
    """A page of entries about applications of a user. Raises `PayloadTooLarge` likewise."""
    _check_names(kinds, message.query)
    return _page(reading, _Log(message.user, "userId"), message.query, message.now_ms)


def _check_names(kinds: Mapping[str, Kind], page: AuditPage) -> None:
    """Raise `Invalid` for a type of a part of an application that no kind of record has."""
    choices = msgspec.UNSET if page.audit_log_filter is None else page.audit_log_filter.secondary_target
    names = sorted(kind.audited_as for kind in kinds.values() if kind.audited_as is not None)
    for position, choice in enumerate(choices or ()):
        if choice.type is not msgspec.UNSET and choice.type not in names:
            raise Invalid(
                f"auditLogFilter.secondaryTarget[{position}].type: is {choice.type[:100]!r}; "
                f"give one of {', '.join(names)}."
            )


class _Log(NamedTuple):
    """Whose log it is, and the field in which answers say that."""

    owner: bytes
    field: str

    def show(self, found: Found) -> dict[str, Any]:
        id = found.id.hex()
        shown = {"id": id, "auditLogId": id, self.field: self.owner.hex(), **_SHAPE.of(found.doc)}
        return shown | {"_etag": found.revision, "_type": AUDIT_ENTRY.name}


def _entry(reading: Reading, log: _Log, id: bytes) -> dict[str, Any]:
    found = records.find(reading.snapshot, AUDIT_ENTRY, log.owner, id)
    if found is None:
        raise NotFound(f"There is no audit log entry {id.hex()} here; old entries are removed.")
    return log.show(found)


def _page(reading: Reading, log: _Log, page: AuditPage, now_ms: int) -> dict[str, Any]:
    query = compile_query(_query_of(reading, page, now_ms), AUDIT_FIELDS, at="auditLogFilter")
    paths = tuple(find_access_paths(AUDIT_ENTRY, log.owner, query.bounds))
    listing = Listing.of(page, AUDIT_ENTRY, log.owner, match=query.matches, access_paths=paths)
    found, total = read_page(reading, listing)
    shown = envelope("auditLogs", [log.show(each) for each in found], total, page)
    return shown if log.field == "userId" else {**shown, log.field: log.owner.hex()}


def _query_of(reading: Reading, page: AuditPage, now_ms: int) -> dict[str, Any]:
    """The time range and the filter of a page as an advanced query."""
    oldest_ms = now_ms - round(reading.limits.audit_entry_keep_s * 1000)
    start_ms = 0 if page.start is None else resolve_timestamp(page.start, now_ms, field="start")
    time = {"$gte": iso(max(start_ms, oldest_ms))}
    if page.end is not None:
        time["$lte"] = iso(resolve_timestamp(page.end, now_ms, field="end"))
    wanted = page.audit_log_filter or AuditLogFilter()
    conditions: list[dict[str, Any]] = [{"creationDate": time}]
    for prefix, choices in (
        ("primaryTarget", wanted.primary_target),
        ("secondaryTarget", wanted.secondary_target),
        ("actor", wanted.actor),
        ("request", wanted.request),
    ):
        if choices is not msgspec.UNSET and choices:
            conditions.append({"$or": [_condition(prefix, choice) for choice in choices]})
    if wanted.response_code is not msgspec.UNSET and wanted.response_code:
        conditions.append({"responseStatus": {"$in": wanted.response_code}})
    return {"$and": conditions}


def _condition(prefix: str, choice: msgspec.Struct) -> dict[str, Any]:
    """The condition of one item of the filter."""
    given = msgspec.to_builtins(choice)
    if "id" in given:
        given["id"] = given["id"].lower()
    return {prefix + name.capitalize(): value for name, value in given.items()}
