"""The audit logs of organizations and persons: which calls get an entry, and what stands in it.

An entry is made for each call of an audited operation (`Route.audited`) on what belongs to an organization, or on an
application that belongs to a person, when the call has ended, whether it succeeded or was refused. A call that concerns
several of them, such as a transfer, has an entry in the log of each. The response leaves after all entries are on disk.
The entry of a call that has changed something is tried again where it cannot be stored; if it never can, the response
says that the call was done all the same. A call that is refused before it reaches its operation (no valid token, no
scope, a throttle, overload) has no entry; and none in the log of an owner where the caller may not act.

Secrets never reach an entry. Of a body that creates or changes a record, only those values are kept that the record
shows at the same place, as it shows them. Of the body of a refused call, only the names of its fields are kept.
Whatever its name says to be a secret is left out everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
import trio

from trunkline.actors.access.authority import Principal
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Overloaded,
    StorageFull,
    TooManyRequests,
)
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.audit.messages import (
    ActorType,
    AddEntry,
    AuditEntry,
    PrimaryTarget,
)
from trunkline.http.calls.call import Call, Concerned
from trunkline.http.calls.errors import error_response
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import Route
from trunkline.http.wire.request_context import current_request

Json = dict[str, Any]

HIDDEN: Final = "***"
_OMITTED: Final = "omitted"
_LOOKED_THROUGH: Final = 4
"""A body whose short fields are so many times as long as an entry may be is not looked through for secrets."""
_FIELDS_MAX: Final = 200
_PAUSES_S: Final = (0.1, 0.5, 2.0)
"""Before an entry is tried again that could not be stored."""
_DELETIONS: Final = frozenset({"delete", "removeData", "truncate"})
"""The actions that make room, so that their entries may use the room for deletions."""
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
SECRET: Final = re.compile(r"password|secret|token|passphrase|privatekey|sslkey|credential|code$|hash$", re.I)


async def execute_audited(
    call: Call, get: Route | None, execute: Callable[[], Awaitable[Response]]
) -> Response:
    """Execute a call of an audited operation, and add its entry.

    `get` is the route that reads what is at the path of the call, if there is one. The call is not cancelled when its
    client leaves, because what it has changed must have an entry. Raises what `execute` raises; and `Crashed`, if the
    entry of a call that was done cannot be stored: then the call is not acknowledged.
    """
    with trio.CancelScope(shield=True):
        response = await _execute(call, get, execute)
    return response  # noqa: RET504 - to mypy a cancel scope may end its block early


async def _execute(call: Call, get: Route | None, execute: Callable[[], Awaitable[Response]]) -> Response:
    owner = _owner_of_path(call)
    before = await _read(call, get)
    owner = owner or _owner_of_record(before)
    try:
        response = await execute()
    except (TooManyRequests, Overloaded):
        raise
    except DomainError as refusal:
        status, _, body = error_response(refusal)
        for each in _unique(owner, *call.concerned):
            await _add(call, each, before, status, msgspec.json.decode(body))
        raise
    shown: Json = _fields(response.body or b"{}", _bytes_max(call))
    problem: DomainError | None = None
    for each in _unique(owner, _owner_of_record(shown), *call.concerned):
        try:
            await _add(call, each, before, response.status, shown)
        except DomainError as failure:
            problem = failure
    if problem is not None:
        raise Crashed(
            "The call was done, but its entry in the audit log could not be stored. Do not repeat it; read what "
            "is there."
        ) from problem
    return response


def _unique(*owners: Concerned | None) -> list[Concerned]:
    """Each owner once, with what was said first."""
    found: dict[bytes, Concerned] = {}
    for each in owners:
        if each is not None:
            found.setdefault(each.owner, each)
    return list(found.values())


async def _add(call: Call, owner: Concerned, before: Json | None, status: int, shown: Json) -> None:
    """Store the entry of a call that ended with `status` and the response `shown`. Raises `DomainError`."""
    resource, _, action = call.route.operation.partition(".")
    bytes_max = _bytes_max(call)
    sent = _sent(call, bytes_max)
    is_record = "_type" in shown and "items" not in shown
    if isinstance(sent, dict) and not _is_omitted(sent) and (is_record or status >= 400):
        sent = _visible(sent, shown if is_record else {})
    changed = {
        name: value
        for name, value in (before or {}).items()
        if is_record
        and isinstance(sent, dict)
        and name in sent
        and (_is_omitted(value) or shown.get(name) != value)
    }
    request = current_request.get()
    target_type, target_id = _secondary_target(call)
    name = (shown if is_record else before or {}).get("name")
    entry = AuditEntry(
        primary_target_id=owner.id,
        primary_target_type=owner.type,
        primary_target_name=owner.name,
        secondary_target_id=target_id,
        secondary_target_type=target_type,
        secondary_target_name=name if target_id is not None and isinstance(name, str) else None,
        **_actor(call.principal),
        ip_address=call.request.address,
        request_id=None if request is None else request.request_id.decode("ascii"),
        request_resource=resource,
        request_action=action,
        request_path_params={
            part.placeholder: _text(call.ids[part.name]) for part in call.route.path_parameters
        },
        request_query_params=_kept(msgspec.to_builtins(call.query), bytes_max) or {},
        request_body=_kept(sent, bytes_max),
        previous=_kept(changed, bytes_max),
        response_status=status,
        response_body=_kept(shown, bytes_max),
    )
    add = AddEntry(
        entry=entry,
        completes=None if status >= 400 else "deletion" if action in _DELETIONS else "stored",
    )
    log, system = Ref("auditLog", ROOT, owner.owner), call.service.system
    for pause_s in _PAUSES_S if status < 400 else ():
        try:
            await system.ask(log, add)
        except (Crashed, Overloaded, StorageFull):
            if system.journal.is_lost:
                raise  # the server ends, and would wait for this call
            await trio.sleep(pause_s)
        else:
            return
    await system.ask(log, add)


def _owner_of_path(call: Call) -> Concerned | None:
    """The organization that the path of a call names, or the owner of the application that it names."""
    if "org" in call.ids:
        invites = "/invites" in call.route.path
        return Concerned(call.ids["org"], "OrgInvite" if invites else None, None, None)
    application: bytes | None = call.ids.get("application")
    if application is None:
        return None
    with call.service.system.store.snapshot() as snapshot:
        found = records.find(snapshot, APPLICATION, ROOT, application)
    if found is None:
        return None
    owner = bytes.fromhex(found.doc["ownerId"])
    return Concerned(owner, "Application", application.hex(), found.doc["name"])


def _owner_of_record(shown: Any) -> Concerned | None:
    """The owner of a record: of an application, also one that a clone or an import answers with, or an organization
    with a dashboard of no application."""
    if isinstance(shown, dict):
        shown = shown.get("application", shown)
    if not isinstance(shown, dict) or "ownerType" not in shown:
        return None
    kind: PrimaryTarget = "Application" if shown["_type"] == "application" else "Dashboard"
    if kind == "Dashboard" and shown["ownerType"] != "organization":
        return None
    return Concerned(bytes.fromhex(shown["ownerId"]), kind, shown["id"], shown.get("name"))


def _secondary_target(call: Call) -> tuple[str | None, str | None]:
    """The part of an application that a call is about: the last id of its path that is one."""
    if "application" in call.ids:
        for name, id in reversed(call.ids.items()):
            kind = KINDS.get(name)
            if kind is not None and kind.audited_as is not None and isinstance(id, bytes):
                return kind.audited_as, id.hex()
    return None, None


def _actor(principal: Principal) -> dict[str, Any]:
    """Who made the call: a workflow with its author, an API token, or else the user or the device.

    Who declines an invitation by its mail need not be a user, and then has an address only.
    """
    type: ActorType
    if principal.author is not None:
        author = principal.author
        actor = {"actor_type": "Flow", "actor_id": author.id, "actor_name": author.name[:1024]}
        for mandate in author.mandates[:1]:
            actor |= {
                "on_behalf_of_type": mandate.type,
                "on_behalf_of_id": mandate.id,
                "on_behalf_of_name": mandate.name[:1024],
            }
        return actor
    if principal.token_id is not None:
        type, id = "ApiToken", principal.token_id
    elif principal.user_id is not None:
        type, id = "User", principal.user_id
    elif principal.device_id is not None:
        type, id = "Device", principal.device_id
    else:
        return {"actor_type": "User", "actor_name": principal.name[:1024]}
    return {"actor_type": type, "actor_id": id.hex(), "actor_name": principal.name[:1024]}


async def _read(call: Call, get: Route | None) -> Json | None:
    """The record at the path of a call as it is before the call; None if the path names none."""
    if get is None or not get.path.endswith("}"):
        return None
    read = Call(call.service, get, call.request, call.now_ms, call.principal, call.ids)
    try:
        read.query, _ = get.parser.parse(b"")
        if get.handler is not None:
            return _object(_fields((await get.handler(read)).body, _bytes_max(call)))
        assert get.message is not None
        value = await call.service.read(read, get.message)
    except DomainError:
        return None
    return _object(getattr(value, "value", value))


def _object(value: Any) -> Json | None:
    return value if isinstance(value, dict) else None


# What is kept of bodies.


def _bytes_max(call: Call) -> int:
    return call.service.system.limits.audit_body_bytes_max


def _fields(text: bytes, bytes_max: int) -> Any:
    """The JSON of a body. Of a field that is longer than an entry may be only how long it is, and of a long body with
    more fields than any record has as well; the items of a long array are not decoded.

    So a body of any length is decoded within a turn of the loop. Raises `msgspec.DecodeError` and `RecursionError`.
    """
    if len(text) <= bytes_max:
        return msgspec.json.decode(text)
    found = msgspec.json.decode(text, type=dict[str, msgspec.Raw] | list[msgspec.Raw])
    if isinstance(found, list):
        return found
    if len(found) > _FIELDS_MAX:
        return {_OMITTED: f"{len(text)} bytes"}
    return {
        name: {_OMITTED: f"{len(raw)} bytes"} if len(raw) > bytes_max else msgspec.json.decode(raw)
        for name, raw in found.items()
    }


def _is_omitted(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_OMITTED}


def _sent(call: Call, bytes_max: int) -> Any:
    """The body of a call as it was sent, of an array the number of items; None without one, or if it is not JSON."""
    if not call.request.body:
        return None
    try:
        sent = _fields(call.request.body, bytes_max)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return {"count": len(sent)} if isinstance(sent, list) else sent


def _visible(sent: Json, shown: Json) -> Json:
    """What the record shows where `sent` has a value; what it does not show is hidden."""
    visible: Json = {}
    for name, value in sent.items():
        now = shown.get(name)
        if isinstance(value, dict) and isinstance(now, dict) and not _is_omitted(value):
            visible[name] = _visible(value, now)
        else:
            visible[name] = now if now is not None or value is None else HIDDEN
    return visible


def _kept(value: Any, bytes_max: int) -> Json | None:
    """A JSON object without secrets, signed links and revisions; only the length of what is too long of it."""
    if not isinstance(value, dict) or not value:
        return None
    short: Json = {}
    sizes: list[int] = []
    for name, each in value.items():
        size = len(msgspec.json.encode(each))
        sizes.append(size)
        short[name] = each if size <= bytes_max else {_OMITTED: f"{size} bytes"}
    if sum(size for size in sizes if size <= bytes_max) <= _LOOKED_THROUGH * bytes_max:
        kept: Json = _without_secrets(short)
        if len(msgspec.json.encode(kept)) <= bytes_max:
            return kept
    return {_OMITTED: f"{sum(sizes)} bytes"}


def _without_secrets(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if isinstance(each, str) and _is_secret(name, each) else _without_secrets(each)
            for name, each in value.items()
            if name not in ("_links", "_etag")
        }
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


def _is_secret(name: str, text: str) -> bool:
    """Whether a text must not be kept: also a link, or the signature of a form, that needs no token."""
    return SECRET.search(name) is not None or "?token=" in text or name == "signature"


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
