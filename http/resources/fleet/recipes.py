"""Recipes of devices, and devices made from one: at once if they are few, else by a job."""

from __future__ import annotations

from trunkline.actors.access.authority import check_level
from trunkline.actors.core.values.errors import Forbidden, Invalid
from trunkline.actors.fleet.recipes.bulk_create import create_at_once, data_of
from trunkline.actors.fleet.recipes.messages import BulkCreate, BulkCreated, OpenRecipe
from trunkline.actors.fleet.recipes.resource import RECIPES
from trunkline.actors.fleet.recipes.rows import Rows
from trunkline.actors.people.organizations.roles import level_of
from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import post
from trunkline.http.resources.platform.jobs import queue_job

_KEY_SCOPE = "applicationKeys.post"


async def bulk_create(call: Call) -> Response:
    """Create a device for each line of a CSV, or so many that are all the same.

    A line that is not right creates nothing and does not stop the others; the result has the reason beside the line.
    Secrets of access keys are in this response only, so with them the devices must be few enough for one.
    """
    service, body, most = call.service, call.body, call.service.system.limits.changed_devices_max
    recipe = await service.read(call, OpenRecipe)
    rows = Rows(recipe, body, service.system.limits)
    by = None
    if body.make_unique_key_secret:
        if not service.tokens.covers(call.principal.scopes, _KEY_SCOPE):
            raise Forbidden(f"makeUniqueKeySecret: the token lacks {_KEY_SCOPE}, which creates access keys.")
        access = call.principal.accesses[call.application]
        check_level(access, level_of(_KEY_SCOPE, "write"), f"makeUniqueKeySecret: {_KEY_SCOPE}")
        if len(rows) > most:
            raise Invalid(
                f"makeUniqueKeySecret: secrets are shown once, in the response; send at most {most} devices a call."
            )
        by = call.principal.creator
    if len(rows) > most:
        return await queue_job(
            call,
            call.ids["deviceRecipe"],
            {"rows": len(rows)},
            notify=(body,),
            data=data_of(recipe, body),
        )
    created, failed, lines = await create_at_once(service.system, call.application, rows, by)
    return json_response(call, 201, {"created": created, "failed": failed, "csvResult": lines.decode()})


ROUTES = (
    *resource_routes(
        APP_PATH + "/device-recipes",
        RECIPES,
        examples=(
            {
                "name": "power meter",
                "deviceName": "meter",
                "attributes": [{"name": "power", "dataType": "number"}],
            },
            {"description": "For every room."},
        ),
    ),
    post(
        APP_PATH + "/device-recipes/{deviceRecipeId}/bulkCreate",
        "deviceRecipe.bulkCreate",
        "Create many devices from a recipe",
        bulk_create,
        uses=(OpenRecipe,),
        body=BulkCreate,
        reply=BulkCreated,
        ok=201,
        job=JobQueued,
    ),
)
