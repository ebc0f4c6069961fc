"""Events of an application: records of what people should look at, and what they did about it."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.errors import PreconditionFailed
from trunkline.actors.messages.events import (
    CreateEvent,
    DeleteEvent,
    DeleteEvents,
    EventChoice,
    EventPage,
    EventPatch,
    EventPost,
    EventReport,
    EventsDeleted,
    EventView,
    PatchEvent,
    PatchEvents,
    RecentChoice,
    RecentEvent,
)
from trunkline.actors.messages.reads import GetEvent, GetMostRecentEvent, ListEvents
from trunkline.actors.messages.terms import EventQuery
from trunkline.http.call import Call, Response
from trunkline.http.dispatch import SUCCESS
from trunkline.http.errors import JSON
from trunkline.http.route import APP, Route

EVENTS = APP + "/events"
EVENT = EVENTS + "/{eventId}"
_MANY = {413: "The body, or the change of so many events, is larger than a call may be; nothing was changed"}


async def patch_events(call: Call) -> Response:
    """Update all events that the filters and the query mean, or none of them."""
    await _changed(call, PatchEvents)
    return Response(200, [JSON], SUCCESS)


async def delete_events(call: Call) -> Response:
    """Delete all events that the query matches, or none of them. The query `{}` matches every event."""
    removed = await _changed(call, DeleteEvents)
    return Response(200, [JSON], msgspec.json.encode({"removed": removed}))


async def _changed(call: Call, message: Any) -> int:
    if call.if_match is not None and call.if_match.strip() != "*":
        raise PreconditionFailed(
            "If-Match: names a revision of one record, and this call changes many; leave it out."
        )
    dispatcher = call.dispatcher
    answer = await dispatcher.system.ask(dispatcher.ref(call), dispatcher.message(call, message))
    count: int = answer.value
    return count


ROUTES = (
    Route(
        method="GET",
        path=EVENTS,
        operation="events.get",
        summary="List events",
        message=ListEvents,
        query=EventPage,
        reply=("list", EventView),
        also={413: "What belongs to the events is larger than an answer may be; ask for a shorter page"},
    ),
    Route(
        method="POST",
        path=EVENTS,
        operation="events.post",
        summary="Create an event",
        message=CreateEvent,
        body=EventPost,
        to="eventLog",
        creates="record",
        then=GetEvent,
        reply=EventView,
        ok=201,
        access="write",
        also={429: "More than 15 calls in 15 seconds for this application"},
    ),
    Route(
        method="PATCH",
        path=EVENTS,
        operation="events.patch",
        summary="Update many events, all of them or none",
        query=EventChoice,
        body=EventPatch,
        to="eventLog",
        access="write",
        handler=patch_events,
        also=_MANY,
    ),
    Route(
        method="POST",
        path=EVENTS + "/delete",
        operation="events.delete",
        summary="Delete many events, all of them or none",
        query=EventReport,
        body=EventQuery,
        to="eventLog",
        reply=EventsDeleted,
        access="write",
        handler=delete_events,
        also=_MANY,
    ),
    Route(
        method="GET",
        path=EVENTS + "/mostRecentBySeverity",
        operation="events.mostRecentBySeverity",
        summary="Get the newest of the most severe new events, and how many are new",
        message=GetMostRecentEvent,
        query=RecentChoice,
        reply=RecentEvent,
    ),
    Route(
        method="GET",
        path=EVENT,
        operation="event.get",
        summary="Get an event",
        message=GetEvent,
        reply=EventView,
    ),
    Route(
        method="PATCH",
        path=EVENT,
        operation="event.patch",
        summary="Update an event",
        message=PatchEvent,
        body=EventPatch,
        to="eventLog",
        then=GetEvent,
        reply=EventView,
        access="write",
    ),
    Route(
        method="DELETE",
        path=EVENT,
        operation="event.delete",
        summary="Delete an event with its updates",
        message=DeleteEvent,
        to="eventLog",
        access="write",
    ),
)
