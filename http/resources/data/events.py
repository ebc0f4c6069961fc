"""Events of an application: records of incidents, and how people responded to them."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.values.errors import ChangeTooLarge
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
from trunkline.http.calls.dispatch import SUCCESS
from trunkline.http.calls.errors import JSON
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import APP_PATH, EVENT_LOG_ACTOR, Route
from trunkline.http.resources.platform.jobs import check_no_revision, queue_job

EVENTS = APP_PATH + "/events"
EVENT = EVENTS + "/{eventId}"
_LARGE = {413: "The body, or the data in it, has more bytes than allowed; the message says how many are"}


async def patch_events(call: Call) -> Response:
    """Update all events that match the filters and the query: at once, all or none; many of them by a job."""
    check_no_revision(call)
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
    email, callback_url = call.query.email, call.query.callback_url
    return await queue_job(call, call.application, input, email=email, callback_url=callback_url)


ROUTES = (
    Route(
        method="GET",
        path=EVENTS,
        operation="events.get",
        summary="List events",
        message=ListEvents,
        query=EventPage,
        reply=("list", EventView),
    ),
    Route(
        method="POST",
        path=EVENTS,
        operation="events.post",
        takes_key=True,
        summary="Create an event",
        message=CreateEvent,
        body=EventPost,
        to=EVENT_LOG_ACTOR,
        new_id="event",
        then=GetEvent,
        reply=EventView,
        ok=201,
        access="write",
        also=_LARGE | {429: "More than 15 calls in 15 seconds for this application"},
    ),
    Route(
        method="PATCH",
        path=EVENTS,
        operation="events.patch",
        summary="Update many events",
        query=EventChoice,
        body=EventPatch,
        to=EVENT_LOG_ACTOR,
        access="write",
        handler=patch_events,
        uses=(PatchEvents,),
        job=JobQueued,
        also=_LARGE,
    ),
    Route(
        method="POST",
        path=EVENTS + "/delete",
        operation="events.delete",
        summary="Delete many events",
        query=EventReport,
        body=EventQuery,
        to=EVENT_LOG_ACTOR,
        reply=EventsDeleted,
        access="write",
        handler=delete_events,
        uses=(DeleteEvents,),
        job=JobQueued,
    ),
    Route(
        method="GET",
        path=EVENTS + "/mostRecentBySeverity",
        operation="events.mostRecentBySeverity",
        summary="Get the newest of the most severe new events, and the number of new events",
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
        to=EVENT_LOG_ACTOR,
        then=GetEvent,
        reply=EventView,
        access="write",
        also=_LARGE,
    ),
    Route(
        method="DELETE",
        path=EVENT,
        operation="event.delete",
        summary="Delete an event and its updates",
        message=DeleteEvent,
        to=EVENT_LOG_ACTOR,
        access="write",
    ),
)
