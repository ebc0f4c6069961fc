"""The current user."""

from __future__ import annotations

from msgspec import UNSET

from trunkline.actors.fleet.devices.queries.counts import CountDevices, DeviceCounts
from trunkline.actors.people.accounts.messages import GetMe, MeChoice, MePatch, MeView, PatchMe
from trunkline.actors.people.accounts.recent_items import (
    AddRecentItem,
    CheckRecentItem,
    ListRecentItems,
    RecentItemChoice,
    RecentItemList,
    RecentItemPost,
)
from trunkline.actors.platform.applications.notebook_minutes import CountNotebookMinutes, NotebookMinuteCounts
from trunkline.actors.platform.applications.payload_counts import (
    BreakDownPayloads,
    CountPayloads,
    DayRange,
    PayloadBreakdown,
    PayloadCountRange,
    PayloadPeriods,
    PayloadStats,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import ME_PATH, USER_ACTOR
from trunkline.http.calls.verbs import get, patch, post


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
    get(ME_PATH, "me.get", "Get the current user", GetMe, MeView, query=MeChoice, area="user"),
    patch(
        ME_PATH,
        "me.patch",
        "Change the current user",
        PatchMe,
        body=MePatch,
        query=MeChoice,
        to=USER_ACTOR,
        reply=MeView,
        area="user",
        handler=patch_me,
        uses=(GetMe,),
        also={
            401: "No token, one that is not valid, or a wrong current password",
            429: "Too many wrong passwords",
        },
    ),
    get(
        ME_PATH + "/deviceCounts",
        "me.deviceCounts",
        "Count devices per day in all applications of the user",
        CountDevices,
        DeviceCounts,
        query=DayRange,
        area="user",
    ),
    get(
        ME_PATH + "/payloadCounts",
        "me.payloadCounts",
        "Count payloads in all applications of the user",
        CountPayloads,
        PayloadStats,
        query=PayloadCountRange,
        area="user",
    ),
    get(
        ME_PATH + "/payloadCountsBreakdown",
        "me.payloadCountsBreakdown",
        "Count payloads per hour or day in all applications of the user",
        BreakDownPayloads,
        PayloadBreakdown,
        query=PayloadPeriods,
        area="user",
    ),
    get(
        ME_PATH + "/notebookMinuteCounts",
        "me.notebookMinuteCounts",
        "Count minutes of notebooks per day in all applications of the user",
        CountNotebookMinutes,
        NotebookMinuteCounts,
        query=DayRange,
        area="user",
    ),
    get(
        ME_PATH + "/recentItems",
        "me.fetchRecentItems",
        "List what the user opened last",
        ListRecentItems,
        RecentItemList,
        query=RecentItemChoice,
        area="user",
    ),
    post(
        ME_PATH + "/recentItems",
        "me.addRecentItem",
        "Note that the user opened an item",
        add_recent_item,
        body=RecentItemPost,
        to=USER_ACTOR,
        reply=RecentItemList,
        area="user",
        uses=(CheckRecentItem,),
    ),
)
