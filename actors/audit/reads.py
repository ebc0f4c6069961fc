"""Reads of the audit log of an organization. Pure reads of a snapshot."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.audit.messages import (
    AUDIT_ENTRY,
    AUDIT_FIELDS,
    AuditLogFilter,
    AuditLogView,
    GetAuditLog,
    ListAuditLogs,
)
from trunkline.actors.query.compile import compile_query
from trunkline.actors.records import records
from trunkline.actors.records.listing import Listing, find_access_paths, read_page
from trunkline.actors.records.page import envelope
from trunkline.actors.records.reading import Reading
from trunkline.actors.records.revision import Found
from trunkline.actors.records.shape import Shape
from trunkline.actors.values.errors import NotFound
from trunkline.actors.values.timestamps import iso, resolve_timestamp

_SHAPE = Shape(AuditLogView)


def get_audit_log(reading: Reading, message: GetAuditLog) -> dict[str, Any]:
    """One entry."""
    found = records.find(reading.snapshot, AUDIT_ENTRY, message.org, message.audit_log)
    if found is None:
        raise NotFound(
            f"There is no audit log entry {message.audit_log.hex()} here; old entries are removed."
        )
    return _show(message.org, found)


def list_audit_logs(reading: Reading, message: ListAuditLogs) -> dict[str, Any]:
    """A page of entries. Raises `PayloadTooLarge` if they are too large for one answer."""
    page = message.query
    query = compile_query(_query_of(reading, message), AUDIT_FIELDS, at="auditLogFilter")
    paths = tuple(find_access_paths(AUDIT_ENTRY, message.org, query.bounds))
    listing = Listing.of(page, AUDIT_ENTRY, message.org, match=query.matches, access_paths=paths)
    found, total = read_page(reading, listing)
    shown = envelope("auditLogs", [_show(message.org, each) for each in found], total, page)
    shown["orgId"] = message.org.hex()
    return shown


def _query_of(reading: Reading, message: ListAuditLogs) -> dict[str, Any]:
    """The time range and the filter of a page as an advanced query."""
    page, now_ms = message.query, message.now_ms
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


def _show(org: bytes, found: Found) -> dict[str, Any]:
    id = found.id.hex()
    shown = {"id": id, "auditLogId": id, "orgId": org.hex(), **_SHAPE.of(found.doc)}
    return shown | {"_etag": found.revision, "_type": AUDIT_ENTRY.name}
