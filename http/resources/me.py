"""The account of the current user."""

from __future__ import annotations

from msgspec import UNSET

from trunkline.actors.accounts.messages import MeChoice, MePatch, MeView, PatchMe
from trunkline.actors.applications.messages import CountRange, DeviceCounts
from trunkline.actors.messages.reads import CountMyDevices, GetMe
from trunkline.http.calls.call import Call, Response
from trunkline.http.calls.dispatch import reply
from trunkline.http.calls.route import ME, Route


async def patch_me(call: Call) -> Response:
    """Change the current user. A wrong present password counts as a failed log-in."""
    dispatcher = call.dispatcher
    body: MePatch = call.body
    ref, message = dispatcher.ref(call), dispatcher.message(call, PatchMe)
    if body.current_credentials is UNSET:
        await dispatcher.system.ask(ref, message)
    else:
        now_s = dispatcher.system.clock.monotonic_s
        async with dispatcher.logins.attempt(ref.id.hex(), call.address, now_s):
            await dispatcher.system.ask(ref, message)
    return reply(call, 200, await dispatcher.read(call, GetMe))


ROUTES = (
    Route(
        method="GET",
        path=ME,
        operation="me.get",
        summary="Get the current user",
        message=GetMe,
        query=MeChoice,
        reply=MeView,
        reach="user",
    ),
    Route(
        method="PATCH",
        path=ME,
        operation="me.patch",
        summary="Change the current user",
        message=PatchMe,
        body=MePatch,
        query=MeChoice,
        to="account",
        reply=MeView,
        access="write",
        reach="user",
        handler=patch_me,
        also={
            401: "No token, one that does not hold, or a wrong present password",
            429: "Too many wrong passwords",
        },
    ),
    Route(
        method="GET",
        path=ME + "/deviceCounts",
        operation="me.deviceCounts",
        summary="Devices per day in all applications of the user",
        message=CountMyDevices,
        query=CountRange,
        reply=DeviceCounts,
        reach="user",
    ),
)
