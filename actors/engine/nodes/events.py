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
from trunkline.actors.engine.node_rights import may_change_found, may_read, may_write
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    DATA_METHOD,
    KEY,
    NEEDED_RESULT,
    RESULT,
    VALUE,
    ChoiceSetting,
    Config,
    FlagSetting,
    LongTemplateSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextSetting,
)
from trunkline.actors.engine.tools import (
    Reader,
    choice_of,
    is_on,
    list_of,
    needed_path,
    needed_text_reader,
    path_of,
    shortened,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.platform.jobs.job import JobKind

_MESSAGE: Final = TemplateSetting("messageTemplate")
_LEVEL: Final = TemplateSetting("levelTemplate")
_STATE: Final = TemplateSetting("stateTemplate")
_SUBJECT: Final = TemplateSetting("subjectTemplate")
_DEVICE_ID: Final = TemplateSetting("deviceIdTemplate")
_EVENT_TAGS: Final = RowsSetting("eventTags", KEY, VALUE)
_DATA_SOURCE_TYPE: Final = ChoiceSetting("dataSourceType", "payloadPath", "jsonTemplate")
_DATA_SOURCE_PATH: Final = PathSetting("dataSourcePath")
_DATA_SOURCE_JSON: Final = LongTemplateSetting("dataSourceJson")
_EVENT_JSON: Final = LongTemplateSetting("eventJsonTemplate")
_EVENT_PAYLOAD_PATH: Final = PathSetting("eventPayloadPath")
_TIME_SOURCE_TYPE: Final = ChoiceSetting("timeSourceType", "now", "payloadTime", "payloadPath")
_TIME_SOURCE_PATH: Final = PathSetting("timeSourcePath")
_DISABLE_TAG_CHANGE_TRACKING: Final = FlagSetting("disableTagChangeTracking")
_EVENT_ID: Final = TemplateSetting("eventIdTemplate")
_QUERY: Final = LongTemplateSetting("queryTemplate")
_SORT_FIELD: Final = TextSetting("sortField")
_SORT_DIRECTION: Final = TextSetting("sortDirection")
_OTHER_EVENT_ID: Final = TemplateSetting("eventIdTemplate", is_shown=False)
_OTHER_TRACKING: Final = FlagSetting("disableTagChangeTracking", is_shown=False)
"""Exports of changes have these two, which do nothing there."""
_DELETE_MULTIPLE: Final = FlagSetting("deleteMultiple", is_on=True)
_FIND_MULTIPLE: Final = FlagSetting("findMultiple")
_FIND_METADATA: Final = FlagSetting("findMetadata")
_RESULTS_PAGE: Final = TemplateSetting("resultsPage")
_RESULTS_PER_PAGE: Final = TemplateSetting("resultsPerPage")
_TARGET_EVENT_ID: Final = TemplateSetting("targetEventIdTemplate")
_PAGE_FIELDS: Final = "queryTemplate, sortField, sortDirection, resultsPage, resultsPerPage"
"""What a sentence about a page of events names, before the field of the page that does not fit."""
_UPDATE_MULTIPLE: Final = FlagSetting("updateMultiple")
_COMMENT: Final = TemplateSetting("commentTemplate")

_TEXTS: Final = {"level": _LEVEL, "state": _STATE, "subject": _SUBJECT, "deviceId": _DEVICE_ID}
_EVENT: Final = (
    *_TEXTS.values(),
    _EVENT_TAGS,
    _DATA_SOURCE_TYPE,
    _DATA_SOURCE_PATH,
    _DATA_SOURCE_JSON,
    _EVENT_JSON,
    _EVENT_PAYLOAD_PATH,
)
"""What an event is given."""

_Fields = Callable[[Visit], dict[str, Any]]

_PAYLOAD_TIME: Final = compile_path("time")


def _create(config: Config) -> NodeStep:
    fields, time = _fields(config, {"message": _MESSAGE}, (_LEVEL, _SUBJECT)), _time(config)
    result, tags = path_of(config, RESULT), _tags(config)
    untracked = {"disableTagChangeTracking": True} if is_on(config, _DISABLE_TAG_CHANGE_TRACKING) else {}

    async def create(visit: Visit) -> Any:
        given = {**untracked, **time(visit), **fields(visit)}
        set_tags = {key: value for key, value in tags(visit).items() if value is not None}
        body = body_of(EventPost, {**({"eventTags": set_tags} if set_tags else {}), **given}, "dataMethod")
        world = visit.world
        created = await visit.ask(_log(visit), CreateEvent(body=body, by=world.creator, origin=world.origin))
        return None if result is None else await _event(visit, created["id"])

    return lambda visit: with_error(visit, result, create(visit))


def _get(config: Config) -> NodeStep:
    result = needed_path(config, NEEDED_RESULT)
    is_many = is_on(config, _FIND_MULTIPLE)
    if is_many or (text_of(config, _QUERY) and not text_of(config, _EVENT_ID)):
        page = _page(config, is_many)
        with_counts = is_on(config, _FIND_METADATA)

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
    id = needed_text_reader(config, _EVENT_ID)

    async def get(visit: Visit) -> Any:
        text = id(visit).strip()
        return await _event(visit, bytes.fromhex(text)) if is_id(text) else None

    return lambda visit: with_error(visit, result, get(visit))


_COUNTS: Final = ("count", "totalCount", "page", "perPage")


def _update(config: Config) -> NodeStep:
    fields, result, tags = _fields(config, {"comment": _COMMENT}), path_of(config, RESULT), _tags(config)
    removed = {"deviceId": None} if config.is_null(_DEVICE_ID) else {}

    def read(visit: Visit) -> tuple[EventPatch, dict[str, str | None]]:
        body = body_of(EventPatch, {**removed, **fields(visit)}, "dataMethod")
        changed = tags(visit)
        body_of(EventTags, {key: value for key, value in changed.items() if value is not None}, "eventTags")
        return body, changed

    if is_on(config, _UPDATE_MULTIPLE):
        query = query_reader(config, _QUERY)

        async def update_all(visit: Visit) -> Any:
            body, changed = read(visit)
            choice, by, origin = EventChoice(query=query(visit)), visit.world.creator, visit.world.origin
            message = PatchEvents(query=choice, body=body, by=by, tags=changed, origin=origin)
            input = {"choice": choice, "body": body, "tags": changed, "origin": origin}
            await _change_all(visit, message, PATCH_EVENTS, input)
            return {"success": True}

        return lambda visit: with_error(visit, result, update_all(visit))
    chosen = _chosen(config, _TARGET_EVENT_ID)

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
    result = path_of(config, RESULT)
    if is_on(config, _DELETE_MULTIPLE) and not text_of(config, _EVENT_ID):
        query = query_reader(config, _QUERY)

        async def delete_all(visit: Visit) -> Any:
            body = query(visit)
            await _change_all(visit, DeleteEvents(body=body), DELETE_EVENTS, {"query": body})
            return {"success": True}

        return lambda visit: with_error(visit, result, delete_all(visit))
    chosen = _chosen(config, _EVENT_ID)

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


def _chosen(config: Config, setting: TemplateSetting) -> Callable[[Visit], Any]:
    """Finds the id of the event that a node changes; None if no event matches a query."""
    if text_of(config, setting) or not text_of(config, _QUERY):
        text = needed_text_reader(config, setting)

        async def given(visit: Visit) -> bytes:
            return id_of(text(visit).strip(), setting)

        return given
    page = _page(config, is_many=False)

    async def first(visit: Visit) -> bytes | None:
        found = await visit.read(ListEvents(application=visit.world.application, query=page(visit)))
        return bytes.fromhex(found["items"][0]["id"]) if found["items"] else None

    return first


def _page(config: Config, is_many: bool) -> Callable[[Visit], EventPage]:
    """Reads what a list of events is asked for: a page, or the first event."""
    query = query_reader(config, _QUERY) if config[_QUERY] else lambda _visit: {}
    sort = {each.name: text for each in (_SORT_FIELD, _SORT_DIRECTION) if (text := text_of(config, each))}
    paged = {"page": _RESULTS_PAGE, "perPage": _RESULTS_PER_PAGE} if is_many else {}
    pages = {name: text_reader(config, setting) for name, setting in paged.items()}

    def read(visit: Visit) -> EventPage:
        paging: dict[str, Any] = {"perPage": 1}
        if is_many:
            texts = {name: page(visit).strip() for name, page in pages.items()}
            paging = {name: int(text) if text.isdecimal() else text for name, text in texts.items() if text}
        page: EventPage = body_of(EventPage, {"query": query(visit), **sort, **paging}, _PAGE_FIELDS)
        return page

    return read


# The fields of an event.


def _fields(
    config: Config, text: dict[str, TemplateSetting], needed: tuple[TemplateSetting, ...] = ()
) -> _Fields:
    """Reads the fields of an event, `text` being its message or the comment of a change."""
    method = choice_of(config, DATA_METHOD)
    if method != "individualFields":
        is_json = method == "jsonTemplate"
        name = _EVENT_JSON if is_json else _EVENT_PAYLOAD_PATH
        given = json_reader(config, _EVENT_JSON) if is_json else _at_path(config, _EVENT_PAYLOAD_PATH)

        def whole(visit: Visit) -> dict[str, Any]:
            fields = given(visit)
            if not isinstance(fields, dict):
                raise refused(f"config.{name}: gives {shortened(fields)}, not an object with the fields.")
            return fields

        return whole
    for setting in needed:
        needed_text_reader(config, setting)
    texts = [(field, text_reader(config, setting)) for field, setting in (_TEXTS | text).items()]
    data = _data(config)

    def read(visit: Visit) -> dict[str, Any]:
        found: dict[str, Any] = {field: value for field, each in texts if (value := each(visit))}
        value = data(visit)
        return found if value is UNDEFINED else {**found, "data": value}

    return read


def _at_path(config: Config, setting: PathSetting) -> Reader:
    path = needed_path(config, setting)
    return lambda visit: path.get(visit.payload)


def _data(config: Config) -> Reader:
    if choice_of(config, _DATA_SOURCE_TYPE) == "jsonTemplate":
        has_json = bool(config[_DATA_SOURCE_JSON])
        return json_reader(config, _DATA_SOURCE_JSON) if has_json else lambda _visit: UNDEFINED
    path = path_of(config, _DATA_SOURCE_PATH)
    return (lambda _visit: UNDEFINED) if path is None else lambda visit: path.get(visit.payload)


def _tags(config: Config) -> Callable[[Visit], dict[str, str | None]]:
    """Reads tags by key; None for one without a value. Only templates have tags one by one."""
    listed = []
    if choice_of(config, DATA_METHOD) == "individualFields":
        listed = [(text_reader(each, KEY), text_reader(each, VALUE)) for each in list_of(config, _EVENT_TAGS)]

    def read(visit: Visit) -> dict[str, str | None]:
        tags = {key(visit): value(visit) or None for key, value in listed}
        return {key: value for key, value in tags.items() if key}

    return read


def _time(config: Config) -> _Fields:
    """Reads `creationDate`, unless it is now."""
    kind = choice_of(config, _TIME_SOURCE_TYPE)
    if kind == "now":
        return lambda _visit: {}
    path = _PAYLOAD_TIME if kind == "payloadTime" else needed_path(config, _TIME_SOURCE_PATH)

    def read(visit: Visit) -> dict[str, Any]:
        time = path.get(visit.payload)
        if time is UNDEFINED or time is None:
            raise refused(f"config.timeSourceType: there is no time at {path.text}.")
        return {"creationDate": time}

    return read


TYPES: Final[dict[str, NodeType]] = {
    "CreateEventNode": NodeType(
        _create,
        Form(
            "data",
            (
                DATA_METHOD,
                _MESSAGE,
                *_EVENT,
                _TIME_SOURCE_TYPE,
                _TIME_SOURCE_PATH,
                _DISABLE_TAG_CHANGE_TRACKING,
                RESULT,
            ),
        ),
        (may_write("events.post"),),
    ),
    "DeleteEventNode": NodeType(
        _delete,
        Form("data", (_EVENT_ID, _QUERY, _SORT_FIELD, _SORT_DIRECTION, _DELETE_MULTIPLE, RESULT)),
        (
            may_write("event.delete", _EVENT_ID),
            may_write("events.delete", _DELETE_MULTIPLE, unless=(_EVENT_ID,)),
            *may_change_found("event.delete", "events.get", unless=(_EVENT_ID, _DELETE_MULTIPLE)),
        ),
    ),
    "GetEventNode": NodeType(
        _get,
        Form(
            "data",
            (
                _EVENT_ID,
                _QUERY,
                _FIND_MULTIPLE,
                _FIND_METADATA,
                _SORT_FIELD,
                _SORT_DIRECTION,
                _RESULTS_PAGE,
                _RESULTS_PER_PAGE,
                NEEDED_RESULT,
            ),
        ),
        (may_read("events.get"),),
    ),
    "UpdateEventNode": NodeType(
        _update,
        Form(
            "data",
            (
                _TARGET_EVENT_ID,
                _QUERY,
                _SORT_FIELD,
                _SORT_DIRECTION,
                _UPDATE_MULTIPLE,
                DATA_METHOD,
                _COMMENT,
                *_EVENT,
                RESULT,
                _OTHER_EVENT_ID,
                _OTHER_TRACKING,
            ),
        ),
        (
            may_write("event.patch", _TARGET_EVENT_ID, unless=(_UPDATE_MULTIPLE,)),
            may_write("events.patch", _UPDATE_MULTIPLE),
            *may_change_found("event.patch", "events.get", unless=(_TARGET_EVENT_ID, _UPDATE_MULTIPLE)),
        ),
    ),
}
