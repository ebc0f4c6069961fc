"""The current user."""

from __future__ import annotations

from msgspec import UNSET

from trunkline.actors.fleet.devices.queries.counts import CountMyDevices, CountRange, DeviceCounts
from trunkline.actors.people.accounts.messages import GetMe, MeChoice, MePatch, MeView, PatchMe
from trunkline.actors.people.accounts.recent_items import (
    AddRecentItem,
    CheckRecentItem,
    ListRecentItems,
    RecentItemChoice,
    RecentItemList,
    RecentItemPost,
)
from trunkline.actors.platform.applications.notebook_minutes import (
    CountMyNotebookMinutes,
    MinuteRange,
    NotebookMinuteCounts,
)
from trunkline.actors.platform.applications.payload_counts import (
    BreakDownMyPayloads,
    CountMyPayloads,
    PayloadBreakdown,
    PayloadCountRange,
    PayloadPeriods,
    PayloadStats,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import json_response
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import ME_PATH, USER_ACTOR, Route


async def patch_me(call: Call) -> Response:
    """Change the current user. A wrong current password counts as a failed login."""
    service = call.service
    body: MePatch = call.body
    ref, message = service.ref(call), service.message(call, PatchMe)
    if body.current_credentials is UNSET:
        await service.system.ask(ref, message)
    else:
        now_s = service.system.clock.monotonic_s
        async with service.login_throttle.attempt(ref.id.hex(), call.request.address, now_s):
            await service.system.ask(ref, message)
    return json_response(call, 200, await service.read(call, GetMe))


async def add_recent_item(call: Call) -> Response:
    """Make an item the newest of the recent items. The response lists those of its type and parent."""
    service = call.service
    added: AddRecentItem = await service.read(call, CheckRecentItem)
    await service.system.ask(service.ref(call), added)
    choice = RecentItemChoice(item_type=call.body.item_type, parent_id=call.body.parent_id or None)
    assert call.principal.user_id is not None
    return json_response(
        call, 200, await service.read_message(ListRecentItems(user=call.principal.user_id, query=choice))
    )


ROUTES = (
    Route(
        method="GET",
        path=ME_PATH,
        operation="me.get",
        summary="Get the current user",
        message=GetMe,
        query=MeChoice,
        reply=MeView,
        area="user",
    ),
    Route(
        method="PATCH",
        path=ME_PATH,
        operation="me.patch",
        summary="Change the current user",
        message=PatchMe,
        body=MePatch,
        query=MeChoice,
        to=USER_ACTOR,
        reply=MeView,
        access="write",
        area="user",
        handler=patch_me,
        uses=(GetMe,),
        also={
            401: "No token, one that is not valid, or a wrong current password",
            429: "Too many wrong passwords",
        },
    ),
    Route(
        method="GET",
        path=ME_PATH + "/deviceCounts",
        operation="me.deviceCounts",
        summary="Count devices per day in all applications of the user",
        message=CountMyDevices,
        query=CountRange,
        reply=DeviceCounts,
        area="user",
    ),
    Route(
        method="GET",
        path=ME_PATH + "/payloadCounts",
        operation="me.payloadCounts",
        summary="Count payloads in all applications of the user",
        message=CountMyPayloads,
        query=PayloadCountRange,
        reply=PayloadStats,
        area="user",
    ),
    Route(
        method="GET",
        path=ME_PATH + "/payloadCountsBreakdown",
        operation="me.payloadCountsBreakdown",
        summary="Count payloads per hour or day in all applications of the user",
        message=BreakDownMyPayloads,
        query=PayloadPeriods,
        reply=PayloadBreakdown,
        area="user",
    ),
    Route(
        method="GET",
        path=ME_PATH + "/notebookMinuteCounts",
        operation="me.notebookMinuteCounts",
        summary="Count minutes of notebooks per day in all applications of the user",
        message=CountMyNotebookMinutes,
        query=MinuteRange,
        reply=NotebookMinuteCounts,
        area="user",
    ),
    Route(
        method="GET",
        path=ME_PATH + "/recentItems",
        operation="me.fetchRecentItems",
        summary="List what the user opened last",
        message=ListRecentItems,
        query=RecentItemChoice,
        reply=RecentItemList,
        area="user",
    ),
    Route(
        method="POST",
        path=ME_PATH + "/recentItems",
        operation="me.addRecentItem",
        summary="Note that the user opened an item",
        body=RecentItemPost,
        to=USER_ACTOR,
        reply=RecentItemList,
        access="write",
        area="user",
        handler=add_recent_item,
        uses=(CheckRecentItem,),
    ),
)
