"""CreateEventNode, DeleteEventNode, GetEventNode and UpdateEventNode: events of the application.

The fields of an event come from templates (`dataMethod` "individualFields"; what is blank is left out), from the JSON
of `eventJsonTemplate` ("jsonTemplate"), or from `eventPayloadPath` ("payloadPath"). With templates, the `eventTags` of
an update are changed one by one: a tag without a value is removed, others stay. The data of an event is at
`dataSourcePath`, or the JSON of `dataSourceJson` (`dataSourceType` "jsonTemplate").

An event is chosen by its id, or by `queryTemplate`: the first one by `sortField` and `sortDirection`, without them the
newest. All that match are got with `findMultiple`, a page of them, and changed with `updateMultiple`. A deletion by a
query is of all that match, unless `deleteMultiple` is false: exports that delete all do not have the field. What is too
much for one change is done by a job, which goes on after the run.

`resultPath` gets the event, null if there is none, `{"success": true}` for a deletion and for a change of many, or the
error; without it an error fails the run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from trunkline.actors.core.formulas.paths import compile_path
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events.jobs import DELETE_EVENTS, PATCH_EVENTS
from trunkline.actors.data.events.messages import (
    CreateEvent,
    DeleteEvent,
    DeleteEvents,
    EventChoice,
    EventPage,
    EventPatch,
    EventPost,
    EventTags,
    GetEvent,
    ListEvents,
    PatchEvent,
    PatchEvents,
)
from trunkline.actors.engine.bodies import body_of, id_of, json_reader, plain, query_reader, with_error
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.large_changes import change_or_queue
from trunkline.actors.engine.tools import (
    Config,
    Reader,
    choice_of,
    list_of,
    needed_path,
    needed_text_reader,
    path_of,
    shortened,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Prepare, Visit, refused
from trunkline.actors.platform.jobs.job import JobKind

_Fields = Callable[[Visit], dict[str, Any]]

_PAYLOAD_TIME: Final = compile_path("time")


def _create(config: Config) -> NodeStep:
    fields, time = _fields(config, "message", ("levelTemplate", "subjectTemplate")), _time(config)
    result, tags = path_of(config, "resultPath"), _tags(config)
    untracked = {"disableTagChangeTracking": True} if config.get("disableTagChangeTracking") is True else {}

    async def create(visit: Visit) -> Any:
        given = {**untracked, **time(visit), **fields(visit)}
        set_tags = {key: value for key, value in tags(visit).items() if value is not None}
        body = body_of(EventPost, {**({"eventTags": set_tags} if set_tags else {}), **given}, "dataMethod")
        world = visit.world
        created = await visit.ask(_log(visit), CreateEvent(body=body, by=world.creator, origin=world.origin))
        return None if result is None else await _event(visit, created["id"])

    return lambda visit: with_error(visit, result, create(visit))


def _get(config: Config) -> NodeStep:
    result = needed_path(config, "resultPath")
    is_many = config.get("findMultiple") is True
    if is_many or (text_of(config, "queryTemplate") and not text_of(config, "eventIdTemplate")):
        page = _page(config)
        with_counts = config.get("findMetadata") is True

        async def find(visit: Visit) -> Any:
            found = await visit.read(ListEvents(application=visit.world.application, query=page(visit)))
            items = [plain(each) for each in found["items"]]
            if not is_many:
                return items[0] if items else None
            if not with_counts:
                return items
            return {"items": items, **{name: found[name] for name in _COUNTS}}

        async def step(visit: Visit) -> int:
            output = await with_error(visit, result, find(visit))
            check_payload(visit)
            return output

        return step
    id = needed_text_reader(config, "eventIdTemplate")

    async def get(visit: Visit) -> Any:
        text = id(visit).strip()
        return await _event(visit, bytes.fromhex(text)) if is_id(text) else None

    return lambda visit: with_error(visit, result, get(visit))


_COUNTS: Final = ("count", "totalCount", "page", "perPage")


def _update(config: Config) -> NodeStep:
    fields, result, tags = _fields(config, "comment"), path_of(config, "resultPath"), _tags(config)
    removed = {"deviceId": None} if config.get("deviceIdTemplate", "") is None else {}

    def read(visit: Visit) -> tuple[EventPatch, dict[str, str | None]]:
        body = body_of(EventPatch, {**removed, **fields(visit)}, "dataMethod")
        changed = tags(visit)
        body_of(EventTags, {key: value for key, value in changed.items() if value is not None}, "eventTags")
        return body, changed

    if config.get("updateMultiple") is True:
        query = query_reader(config, "queryTemplate")

        async def update_all(visit: Visit) -> Any:
            body, changed = read(visit)
            choice, by, origin = EventChoice(query=query(visit)), visit.world.creator, visit.world.origin
            message = PatchEvents(query=choice, body=body, by=by, tags=changed, origin=origin)
            input = {"choice": choice, "body": body, "tags": changed, "origin": origin}
            await _change_all(visit, message, PATCH_EVENTS, input)
            return {"success": True}

        return lambda visit: with_error(visit, result, update_all(visit))
    chosen = _chosen(config, "targetEventIdTemplate")

    async def update(visit: Visit) -> Any:
        body, changed = read(visit)
        id = await chosen(visit)
        if id is None:
            return None
        by, origin = visit.world.creator, visit.world.origin
        await visit.ask(_log(visit), PatchEvent(event=id, body=body, by=by, tags=changed, origin=origin))
        return None if result is None else await _event(visit, id)

    return lambda visit: with_error(visit, result, update(visit))


def _delete(config: Config) -> NodeStep:
    result = path_of(config, "resultPath")
    if config.get("deleteMultiple") is not False and not text_of(config, "eventIdTemplate"):
        query = query_reader(config, "queryTemplate")

        async def delete_all(visit: Visit) -> Any:
            body = query(visit)
            await _change_all(visit, DeleteEvents(body=body), DELETE_EVENTS, {"query": body})
            return {"success": True}

        return lambda visit: with_error(visit, result, delete_all(visit))
    chosen = _chosen(config, "eventIdTemplate")

    async def delete(visit: Visit) -> Any:
        id = await chosen(visit)
        if id is None:
            return None
        await visit.ask(_log(visit), DeleteEvent(event=id))
        return {"success": True}

    return lambda visit: with_error(visit, result, delete(visit))


# The events.


def _log(visit: Visit) -> Ref:
    return Ref("eventLog", visit.world.application, visit.world.application)


async def _event(visit: Visit, id: bytes) -> Any:
    """An event as the API shows it, None if there is none."""
    try:
        return plain(await visit.read(GetEvent(application=visit.world.application, event=id)))
    except NotFound:
        return None


async def _change_all(visit: Visit, message: Message, kind: JobKind, input: dict[str, Any]) -> None:
    """Change many events, or queue the job of which nobody gets a mail."""
    change = partial(visit.ask, _log(visit), message)
    await change_or_queue(visit, change, kind.operation, input, result_to=[])


def _chosen(config: Config, name: str) -> Callable[[Visit], Any]:
    """Finds the id of the event that a node changes; None if no event matches a query."""
    if text_of(config, name) or not text_of(config, "queryTemplate"):
        text = needed_text_reader(config, name)

        async def given(visit: Visit) -> bytes:
            return id_of(text(visit).strip(), name)

        return given
    page = _page({**config, "findMultiple": False})

    async def first(visit: Visit) -> bytes | None:
        found = await visit.read(ListEvents(application=visit.world.application, query=page(visit)))
        return bytes.fromhex(found["items"][0]["id"]) if found["items"] else None

    return first


def _page(config: Config) -> Callable[[Visit], EventPage]:
    """Reads what a list of events is asked for: a page, or the first event."""
    query = query_reader(config, "queryTemplate") if config.get("queryTemplate") else lambda _visit: {}
    sort = {name: text for name in ("sortField", "sortDirection") if (text := text_of(config, name))}
    is_many = config.get("findMultiple") is True
    pages = {
        name: text_reader(config, field)
        for name, field in (("page", "resultsPage"), ("perPage", "resultsPerPage"))
    }

    def read(visit: Visit) -> EventPage:
        paging: dict[str, Any] = {"perPage": 1}
        if is_many:
            texts = {name: page(visit).strip() for name, page in pages.items()}
            paging = {name: int(text) if text.isdecimal() else text for name, text in texts.items() if text}
        page: EventPage = body_of(EventPage, {"query": query(visit), **sort, **paging}, "queryTemplate")
        return page

    return read


# The fields of an event.


def _fields(config: Config, text: str, needed: tuple[str, ...] = ()) -> _Fields:
    """Reads the fields of an event, `text` being its message or the comment of a change."""
    method = choice_of(config, "dataMethod", ("individualFields", "jsonTemplate", "payloadPath"))
    if method != "individualFields":
        name = "eventJsonTemplate" if method == "jsonTemplate" else "eventPayloadPath"
        given = json_reader(config, name) if method == "jsonTemplate" else _at_path(config, name)

        def whole(visit: Visit) -> dict[str, Any]:
            fields = given(visit)
            if not isinstance(fields, dict):
                raise refused(f"config.{name}: gives {shortened(fields)}, not an object with the fields.")
            return fields

        return whole
    for name in needed:
        needed_text_reader(config, name)
    texts = [
        (field, text_reader(config, f"{field}Template"))
        for field in ("level", "state", "subject", text, "deviceId")
    ]
    data = _data(config)

    def read(visit: Visit) -> dict[str, Any]:
        found: dict[str, Any] = {field: value for field, each in texts if (value := each(visit))}
        value = data(visit)
        return found if value is UNDEFINED else {**found, "data": value}

    return read


def _at_path(config: Config, name: str) -> Reader:
    path = needed_path(config, name)
    return lambda visit: path.get(visit.payload)


def _data(config: Config) -> Reader:
    if choice_of(config, "dataSourceType", ("payloadPath", "jsonTemplate")) == "jsonTemplate":
        has_json = bool(config.get("dataSourceJson"))
        return json_reader(config, "dataSourceJson") if has_json else lambda _visit: UNDEFINED
    path = path_of(config, "dataSourcePath")
    return (lambda _visit: UNDEFINED) if path is None else lambda visit: path.get(visit.payload)


def _tags(config: Config) -> Callable[[Visit], dict[str, str | None]]:
    """Reads tags by key; None for one without a value. Only templates have tags one by one."""
    listed = []
    if (
        choice_of(config, "dataMethod", ("individualFields", "jsonTemplate", "payloadPath"))
        == "individualFields"
    ):
        listed = [
            (text_reader(each, "keyTemplate"), text_reader(each, "valueTemplate"))
            for each in list_of(config, "eventTags")
        ]

    def read(visit: Visit) -> dict[str, str | None]:
        tags = {key(visit): value(visit) or None for key, value in listed}
        return {key: value for key, value in tags.items() if key}

    return read


def _time(config: Config) -> _Fields:
    """Reads `creationDate`, unless it is now."""
    kind = choice_of(config, "timeSourceType", ("now", "payloadTime", "payloadPath"))
    if kind == "now":
        return lambda _visit: {}
    path = _PAYLOAD_TIME if kind == "payloadTime" else needed_path(config, "timeSourcePath")

    def read(visit: Visit) -> dict[str, Any]:
        time = path.get(visit.payload)
        if time is UNDEFINED or time is None:
            raise refused(f"config.timeSourceType: there is no time at {path.text}.")
        return {"creationDate": time}

    return read


TYPES: Final[dict[str, Prepare]] = {
    "CreateEventNode": _create,
    "DeleteEventNode": _delete,
    "GetEventNode": _get,
    "UpdateEventNode": _update,
}
