"""The account of the current user."""

from __future__ import annotations

from trunkline.actors.messages.account import MeChoice, MePatch, MeView, PatchMe
from trunkline.actors.messages.applications import CountRange, DeviceCounts
from trunkline.actors.messages.reads import CountMyDevices, GetMe
from trunkline.http.route import ME, Route

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
        then=GetMe,
        reply=MeView,
        access="write",
        reach="user",
        also={401: "currentCredentials.password is not the present password"},
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
