"""Events of an application: records of incidents, and how people responded to them."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.values.errors import ChangeTooLarge, Invalid
from trunkline.actors.data.events.messages import (
    CreateEvent,
    DeleteEvent,
    DeleteEvents,
    EventChoice,
    EventPage,
    EventPatch,
    EventPost,
    EventQuery,
    EventReport,
    EventsDeleted,
    EventView,
    GetEvent,
    GetMostRecentEvent,
    ListEvents,
    PatchEvent,
    PatchEvents,
    RecentChoice,
    RecentEvent,
)
from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS
from trunkline.http.calls.route import APP_PATH, EVENT_LOG_ACTOR
from trunkline.http.calls.verbs import Shown, delete, get, list_of, patch, post
from trunkline.http.resources.platform.jobs import check_no_revision, queue_job

EVENTS = APP_PATH + "/events"
EVENT = EVENTS + "/{eventId}"
_LARGE = {413: "The body, or the data in it, has more bytes than allowed; the message says how many are"}


async def patch_events(call: Call) -> Response:
    """Update all events that match the filters and the query: at once, all or none; many of them by a job."""
    check_no_revision(call)
    if call.query.filter and call.query.filter_field is None:
        raise Invalid(
            "filterField: is not given, so that all events would change whatever filter is; give subject."
        )
    try:
        await _ask(call, PatchEvents)
    except ChangeTooLarge:
        choice = msgspec.to_builtins(call.query)
        for name in ("email", "callbackUrl"):
            choice.pop(name, None)
        return await _queue(call, {"choice": choice, "body": msgspec.to_builtins(call.body)})
    return Response(200, [JSON], SUCCESS)


async def delete_events(call: Call) -> Response:
    """Delete all events that match the query: at once, all or none; many of them by a job.

    The query `{}` matches every event.
    """
    check_no_revision(call)
    try:
        removed = await _ask(call, DeleteEvents)
    except ChangeTooLarge:
        return await _queue(call, {"query": call.body})
    return Response(200, [JSON], msgspec.json.encode({"removed": removed}))


async def _ask(call: Call, message: Any) -> int:
    service = call.service
    answer = await service.system.ask(service.ref(call), service.message(call, message))
    count: int = answer.value
    return count


async def _queue(call: Call, input: dict[str, Any]) -> Response:
    return await queue_job(call, call.application, input, notify=(call.query,))


_EVENT = Shown(GetEvent, EventView)
ROUTES = (
    list_of(EVENTS, "events.get", "List events", ListEvents, EventView, EventPage, beside={"state": str}),
    post(
        EVENTS,
        "events.post",
        "Create an event",
        CreateEvent,
        _EVENT,
        takes_key=True,
        body=EventPost,
        to=EVENT_LOG_ACTOR,
        new_id="event",
        ok=201,
        also=_LARGE | {429: "More than 15 calls in 15 seconds for this application"},
    ),
    patch(
        EVENTS,
        "events.patch",
        "Update many events",
        patch_events,
        query=EventChoice,
        body=EventPatch,
        to=EVENT_LOG_ACTOR,
        uses=(PatchEvents,),
        job=JobQueued,
        also=_LARGE,
    ),
    post(
        EVENTS + "/delete",
        "events.delete",
        "Delete many events",
        delete_events,
        query=EventReport,
        body=EventQuery,
        to=EVENT_LOG_ACTOR,
        reply=EventsDeleted,
        uses=(DeleteEvents,),
        job=JobQueued,
    ),
    get(
        EVENTS + "/mostRecentBySeverity",
        "events.mostRecentBySeverity",
        "Get the newest of the most severe new events, and the number of new events",
        GetMostRecentEvent,
        RecentEvent,
        query=RecentChoice,
    ),
    get(EVENT, "event.get", "Get an event", _EVENT),
    patch(
        EVENT,
        "event.patch",
        "Update an event",
        PatchEvent,
        _EVENT,
        body=EventPatch,
        to=EVENT_LOG_ACTOR,
        also=_LARGE,
    ),
    delete(EVENT, "event.delete", "Delete an event and its updates", DeleteEvent, to=EVENT_LOG_ACTOR),
)
