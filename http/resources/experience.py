"""The experience of an application: its endpoints, and the groups and users of those who call them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trunkline.actors.experience.domains import DOMAINS
from trunkline.actors.experience.endpoints import ENDPOINTS
from trunkline.actors.experience.groups import GROUPS
from trunkline.actors.experience.resource import (
    ExperienceResource,
    GetExperienceRecord,
    ListExperienceRecords,
    ShowExperienceRecord,
)
from trunkline.actors.experience.slugs import SLUGS
from trunkline.actors.experience.users import EXPERIENCE_USERS
from trunkline.actors.experience.versions import VERSIONS, GetExperienceVersion, ListExperienceVersions
from trunkline.actors.experience.views import VIEWS
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


def _version_routes() -> Iterator[Route]:
    """The five routes of versions: the path has an id or a name, and `develop` is always there."""
    for route in resource_routes(EXPERIENCE + "/versions", VERSIONS, to=EXPERIENCE_ACTOR):
        path = route.path.replace("{experienceVersionId}", "{experienceVersionIdOrName}")
        if route.message is ListRecords:
            yield replace(route, message=ListExperienceVersions)
        elif route.message is GetRecord:
            yield replace(route, path=path, message=GetExperienceVersion)
        else:
            yield replace(route, path=path, then=GetExperienceVersion if route.then is GetRecord else None)


ROUTES = (
    *_routes("/endpoints", ENDPOINTS),
    *_routes("/views", VIEWS),
    *_version_routes(),
    *_routes("/domains", DOMAINS),
    *_routes("/slugs", SLUGS),
    *_routes("/groups", GROUPS),
    *_routes("/users", EXPERIENCE_USERS),
)
