"""The overview of an application."""

from __future__ import annotations

from trunkline.actors.overview.fleet import Fleets
from trunkline.actors.overview.messages import GetOverview, Overview, OverviewChoice
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import json_response
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import APP_PATH, Route


async def get_overview(call: Call) -> Response:
    """Show the overview; its fleet is counted before, if that is due."""
    await call.service.system.component(Fleets).count(call.application)
    return json_response(call, 200, await call.service.read(call, GetOverview))


ROUTES = (
    Route(
        method="GET",
        path=APP_PATH + "/overview",
        operation="application.overview",
        summary="Show whether the devices report, what was refused, and what happened last",
        message=GetOverview,
        query=OverviewChoice,
        handler=get_overview,
        reply=Overview,
    ),
)
