"""Versions of an experience that come from another application, with the endpoints and views that they have there."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import CreateRecord, Creator, PatchRecord
from trunkline.actors.core.records.owner import RecordParent, by_fields
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Message
from trunkline.actors.presentation.experience.content import COPIES, check_reply, erase_copies
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS
from trunkline.actors.presentation.experience.kind import ENDPOINT, GROUP, VIEW
from trunkline.actors.presentation.experience.routes import RouteTree
from trunkline.actors.presentation.experience.terms import REPLIES
from trunkline.actors.presentation.experience.versions import VERSIONS
from trunkline.actors.presentation.experience.views import VIEWS


class Copied(msgspec.Struct, frozen=True):
    """An endpoint or a view of a version: the id that it has, or had, in `develop`, and the body that creates it."""

    id: bytes
    body: Any


class ImportVersion(Message, frozen=True):
    """Create the version `id` with these endpoints and views instead of those of `develop`.

    `patch`: the version exists, and its settings and its content are changed to these.
    """

    id: bytes
    body: Any
    endpoints: list[Copied]
    views: list[Copied]
    by: Creator
    patch: Any = None


def import_version(owner: RecordParent, message: ImportVersion) -> None:
    """Create a version. Raises `Invalid` as the API does for such a version, and for such endpoints and views."""
    now_ms = owner.system.clock.wall_ms()
    views = {each.id: _document(owner, VIEWS, each.body, now_ms, message.by) for each in message.views}
    endpoints = {
        each.id: _document(owner, ENDPOINTS, each.body, now_ms, message.by) for each in message.endpoints
    }
    _check_views(views)
    _check_endpoints(owner, endpoints)
    # The replies name pages of the version, which are there only afterwards.
    bare = dict.fromkeys(("not_found_reply", "unauthorized_reply"), msgspec.UNSET)
    name, by = VERSIONS.name, message.by
    if message.patch is None:
        body = msgspec.structs.replace(message.body, **bare)
        owner.on_create_record(CreateRecord(resource=name, body=body, by=by, import_id=message.id))
    else:
        patch = msgspec.structs.replace(message.patch, **bare)
        RecordParent.on_patch_record(owner, PatchRecord(resource=name, record=message.id, body=patch, by=by))
    erase_copies(owner, message.id)
    size = 0
    for kind, found in ((VIEW, views), (ENDPOINT, endpoints)):
        for id, doc in found.items():
            copy = {**doc, "of": f"{message.id.hex()}/{id.hex()}"}
            place = owner.system.ids.new(now_ms)
            size += len(records.write(owner, COPIES[kind.name], owner.ref.id, place, None, copy))
    most = owner.system.limits.experience_version_bytes_max
    if size > most:
        raise Invalid(f"The endpoints and views have {size} bytes; a version takes at most {most}.")
    _set_replies(owner, message)
    for doc in endpoints.values():
        for field in REPLIES:
            check_reply(owner, field, doc.get(field), message.id)


def _set_replies(owner: Actor, message: ImportVersion) -> None:
    """Store the replies of the version, or none instead of those that it has taken from `develop`."""
    found = records.find(Staged(owner), VERSIONS.kind, owner.ref.id, message.id)
    assert found is not None
    named = VERSIONS.stored(message.body)
    taken = (*REPLIES, "description")
    new = {name: value for name, value in found.doc.items() if name not in taken}
    new |= {name: named[name] for name in taken if named.get(name) is not None}
    for field in REPLIES:
        check_reply(owner, field, new.get(field), message.id)
    records.write(owner, VERSIONS.kind, owner.ref.id, message.id, found.doc, new)


def _document(owner: Actor, resource: Resource, body: Any, now_ms: int, by: Creator) -> Doc:
    """A copy as it is stored. What names groups that do not exist here is left out."""
    given = {name: value for name, value in resource.stored(body).items() if value is not None}
    doc: Doc = {
        "creationDate": now_ms,
        "lastUpdated": now_ms,
        **by_fields("created", by),
        **by_fields("lastUpdated", by),
        **resource.defaults,
        **given,
    }
    if resource is VIEWS:
        for field, empty in (("body", ""), ("viewTags", {}), ("headers", {})):
            doc.setdefault(field, empty)
        return doc
    doc.setdefault("endpointTags", {})
    groups = [id.lower() for id in doc.get("experienceGroupIds", ())]
    doc["experienceGroupIds"] = [
        id for id in groups if records.find(Staged(owner), GROUP, owner.ref.id, bytes.fromhex(id)) is not None
    ]
    return doc


def _check_views(views: dict[bytes, Doc]) -> None:
    names: set[tuple[str, str]] = set()
    for doc in views.values():
        name = doc["viewType"], doc["name"]
        if name in names:
            raise Invalid(f"name: the version has two views of the type {name[0]} and the name {name[1]}.")
        names.add(name)
        layout = doc.get("layoutId")
        if layout is None:
            continue
        doc["layoutId"] = layout.lower()
        found = views.get(bytes.fromhex(layout))
        if doc["viewType"] != "page" or found is None or found["viewType"] != "layout":
            raise Invalid(f"layoutId: {layout} is not a layout of this version, or the view is not a page.")


def _check_endpoints(owner: Actor, endpoints: dict[bytes, Doc]) -> None:
    most = owner.system.limits.experience_endpoints_max
    if len(endpoints) > most:
        raise Invalid(f"A version has at most {most} endpoints.")
    tree = RouteTree([])
    for id, doc in endpoints.items():
        clash = tree.clashing(doc["method"], doc["route"])
        if clash is not None:
            raise Invalid(
                f"route: {doc['method']} {doc['route']} could match the same requests as the endpoint {clash.hex()}."
            )
        tree.add(id, doc["method"], doc["route"])
