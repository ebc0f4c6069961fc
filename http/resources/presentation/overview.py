"""The overview of an application, and its actors in memory."""

from __future__ import annotations

from msgspec import convert

from trunkline.actors.core.records.page import page_fields
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.presentation.overview.actor_messages import (
    ActorList,
    ActorPage,
    DeviceActorView,
)
from trunkline.actors.presentation.overview.actors import list_actors, show_device_actor
from trunkline.actors.presentation.overview.health import verdicts_of
from trunkline.actors.presentation.overview.health_messages import (
    ChooseApplications,
    Chosen,
    GetHealth,
    Health,
    HealthList,
    HealthPage,
    VerdictCounts,
)
from trunkline.actors.presentation.overview.messages import (
    GetOverview,
    ListSilentDevices,
    Overview,
    OverviewChoice,
    SilentDevices,
    SilentPage,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH, DEVICE_PATH
from trunkline.http.calls.verbs import get


async def get_overview(call: Call) -> Response:
    """Show the overview."""
    return json_response(call, 200, await call.service.read(call, GetOverview))


async def get_health(call: Call) -> Response:
    """Show the health of the application."""
    return json_response(call, 200, await call.service.read(call, GetHealth))


async def list_health(call: Call) -> Response:
    """Show the health of a page of applications, one after the other."""
    service, query = call.service, call.query
    chosen: Chosen = await service.read(call, ChooseApplications)
    found, total = chosen
    items = []
    for id, _ in found:
        items.append(await service.read_message(GetHealth(application=id, now_ms=call.now_ms)))
    answer = HealthList(
        **page_fields(items, total, query),
        verdicts=convert(verdicts_of(items), VerdictCounts),
        sort_field=query.sort_field,
        time=iso(call.now_ms),
        filter_field=query.filter_field,
        filter=query.filter,
    )
    return json_response(call, 200, answer)


async def list_silent_devices(call: Call) -> Response:
    """List devices that are silent."""
    return json_response(call, 200, await call.service.read(call, ListSilentDevices))


async def get_actors(call: Call) -> Response:
    """List the active actors of the application."""
    return json_response(call, 200, await list_actors(call.service.system, call.application, call.query))


async def get_device_actor(call: Call) -> Response:
    """Show the actor of a device and its throttles."""
    system = call.service.system
    return json_response(call, 200, show_device_actor(system, call.application, call.ids["device"]))


ROUTES = (
    get(
        APP_PATH + "/overview",
        "application.overview",
        "Show whether the devices report, what was refused, and what happened last",
        GetOverview,
        Overview,
        query=OverviewChoice,
        handler=get_overview,
    ),
    get(
        APP_PATH + "/health",
        "application.health",
        "Show whether the application is well, and the reasons why not, the worst first",
        GetHealth,
        Health,
        handler=get_health,
    ),
    get(
        "/applications/health",
        "applications.health",
        "Show the health of the applications that the user can read",
        ChooseApplications,
        HealthList,
        query=HealthPage,
        area="organization",
        handler=list_health,
    ),
    get(
        APP_PATH + "/silentDevices",
        "application.silentDevices",
        "List the devices that are silent, or were never seen",
        ListSilentDevices,
        SilentDevices,
        query=SilentPage,
        handler=list_silent_devices,
    ),
    get(
        APP_PATH + "/actors",
        "application.actors",
        "List the actors of the application that are in memory, the busiest first",
        get_actors,
        ActorList,
        query=ActorPage,
    ),
    get(
        DEVICE_PATH + "/actor",
        "device.actor",
        "Show the actor of a device, and what is left of its throttles",
        get_device_actor,
        DeviceActorView,
    ),
)
