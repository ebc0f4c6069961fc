"""The experience of an application: its endpoints, and the groups and users of those who call them."""

from __future__ import annotations

from dataclasses import replace

from trunkline.actors.experience.endpoints import ENDPOINTS
from trunkline.actors.experience.groups import GROUPS
from trunkline.actors.experience.resource import (
    ExperienceResource,
    GetExperienceRecord,
    ListExperienceRecords,
    ShowExperienceRecord,
)
from trunkline.actors.experience.users import EXPERIENCE_USERS
from trunkline.actors.records.messages import GetRecord, ListRecords
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH, EXPERIENCE_ACTOR, NoQuery, Route

EXPERIENCE = APP_PATH + "/experience"


def _routes(path: str, resource: ExperienceResource) -> tuple[Route, ...]:
    """The five routes of a resource, with the reads of experiences. Only a GET chooses how a record is shown."""
    routes = []
    for route in resource_routes(EXPERIENCE + path, resource, to=EXPERIENCE_ACTOR):
        if route.message is ListRecords:
            route = replace(route, message=ListExperienceRecords)
        elif route.message is GetRecord:
            route = replace(route, message=GetExperienceRecord)
        elif route.then is GetRecord:
            route = replace(route, then=ShowExperienceRecord, query=NoQuery)
        routes.append(route)
    return tuple(routes)


ROUTES = (
    *_routes("/endpoints", ENDPOINTS),
    *_routes("/groups", GROUPS),
    *_routes("/users", EXPERIENCE_USERS),
)
