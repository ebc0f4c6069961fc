"""Every list of the API is sorted by each of its sort fields, paged, and filtered by each of its filter fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints
from urllib.parse import parse_qsl

import httpx
import msgspec
import pytest

from tests.e2e.conftest import Json, running_server
from tests.e2e.lists import FILLED, template_folder
from trunkline.actors.core.query.fields import FieldKind, Fields
from trunkline.actors.core.records.kind import value_at
from trunkline.actors.data.events.kind import EVENT_STATES, LEVELS
from trunkline.http.calls.query_string import query_fields
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE
from trunkline.store.keys import sortable

LISTS: Final = {
    route.operation: route
    for route in TABLE.routes
    if "sortField" in route.query.__struct_encode_fields__ and route.operation != "application.actors"
}
"""The lists of records. That of actors shows what is in memory; `test_actors.py` sorts it."""

CONNECTION: Final[Mapping[int | None, str | None]] = {None: None, 1: "connected", 0: "disconnected"}

SHOWN_AS: Final[Mapping[tuple[str, str], Callable[[Json], Any]]] = {
    ("events.get", "level"): lambda item: LEVELS.index(item["level"]),
    ("events.get", "state"): lambda item: EVENT_STATES.index(item["state"]),
    ("devices.get", "connectionStatus"): lambda item: CONNECTION[
        item.get("connectionInfo", {}).get("connected")
    ],
}
"""Values by which records are sorted that are no text or number of the same name."""

SAME_ORDER: Final = {
    "devices.getCompositeState": ("devices.get", "compositeState"),
    "applications.periodSummaries": ("applications.get", "periodSummaries"),
    "applications.health": ("applications.get", "health"),
}
"""Lists that do not show what they are sorted by: another list of the same records, and the end of their path."""

COMPUTED: Final = {
    ("notebooks.get", "lastExecutionRequested"): "nothing is executed",
    ("resourceJobs.get", "lastExecutionRequested"): "nothing is executed",
    ("experienceEndpoints.get", "order"): "how specific the route is",
    ("experienceEndpoints.get", "requestCount"): "no request is counted yet",
    ("applicationJobLogs.get", "status"): "all jobs were completed",
    ("applications.get", "ownerId"): "one user owns them",
    ("auditLogs.get", "actorName"): "one user made the calls",
    ("userAuditLogs.get", "actorName"): "one user made the calls",
    ("dashboards.get", "applicationId"): "they are of no application",
    ("dashboards.get", "ownerId"): "one user owns them",
    ("edgeDeployments.get", "currentVersion"): "no device has reported one",
    ("devices.get", "deletedAt"): "only deleted devices have it",
    ("experienceUsers.get", "lastLogin"): "nobody has logged in",
}
"""Sort fields by which these records are all equal, or that are not shown."""

SPECIFIED: Final[Mapping[str, tuple[str, str]]] = {
    "flows.get": ("name id creationDate lastUpdated", "name"),
    "flowVersions.get": ("version id creationDate lastUpdated", "version"),
    "embeddedDeployments.get": ("lastUpdated id creationDate", ""),
    "edgeDeployments.get": (
        "lastUpdated id deviceId flowId desiredVersion currentVersion creationDate",
        "",
    ),
    "experienceEndpoints.get": (
        "order method route id creationDate requestCount lastUpdated",
        "method route",
    ),
    "experienceGroups.get": ("name id creationDate lastUpdated", "name"),
    "webhooks.get": ("name id creationDate lastUpdated", "name"),
    "integrations.get": ("name id creationDate integrationType lastUpdated", "name integrationType"),
    "privateFiles.get": ("lastUpdated type name creationDate", "name"),
    "applicationTemplates.get": ("name id creationDate lastUpdated", "name authorName"),
}
"""The sort fields (default first) and filter fields of the lists that the specification names, and this server has."""

QUERIED: Final[Mapping[str, str]] = {
    "applicationKeys.get": (
        "id creationDate lastUpdated status deviceIds deviceTags key description filterType pubTopics subTopics"
    ),
    "flows.get": "name enabled",
    "flows.getByVersion": "flowId",
    "flowVersions.get": "version",
    "experienceGroups.get": "name lastUpdated",
}
"""The fields of advanced queries that the specification names."""


def choices(route: Route, parameter: str) -> list[str]:
    """The values that a parameter takes; none if there is no such parameter."""
    names = dict(zip(route.query.__struct_encode_fields__, route.query.__struct_fields__, strict=True))
    if parameter not in names:
        return []
    hint = get_type_hints(route.query)[names[parameter]]
    return [str(value) for value in _literals(hint)]


def _literals(hint: Any) -> Iterable[Any]:
    for part in get_args(hint):
        if isinstance(part, str):
            yield part
        else:
            yield from _literals(part)


def default(route: Route, parameter: str) -> Any:
    (found,) = (each for each in msgspec.structs.fields(route.query) if each.encode_name == parameter)
    return found.default


def test_every_list_is_filled() -> None:
    assert LISTS.keys() <= FILLED.keys()


def test_the_lists_of_the_specification_take_what_it_says() -> None:
    for operation, (sort_fields, filter_fields) in SPECIFIED.items():
        if operation not in LISTS:
            continue
        route, names = LISTS[operation], sort_fields.split()
        assert default(route, "sortField") == names[0], operation
        assert set(choices(route, "sortField")) == set(names), operation
        assert set(choices(route, "filterField")) == set(filter_fields.split()), operation
        embedded = operation == "embeddedDeployments.get"
        assert default(route, "sortDirection") == ("desc" if embedded else "asc"), operation
        assert default(route, "perPage") == (1000 if embedded else 100), operation
        assert default(route, "page") == 0, operation
    for operation, fields in QUERIED.items():
        if operation in LISTS:
            assert fields_of(LISTS[operation]).keys() >= set(fields.split()), operation


class List:
    """A filled list, as a client reads it."""

    def __init__(self, client: httpx.AsyncClient, operation: str, path: str) -> None:
        self.client = client
        self.operation = operation
        self.route = LISTS[operation]
        self.path, _, given = path.partition("?")
        self.given = dict(parse_qsl(given))

    async def read(self, **query: Any) -> Json:
        response = await self.client.get(self.path, params=self.given | query)
        assert response.status_code == 200, (self.path, query, response.text)
        return response.json()

    async def items(self, **query: Any) -> list[Json]:
        items: list[Json] = (await self.read(**query))["items"]
        return items

    async def refusal(self, **query: Any) -> str:
        response = await self.client.get(self.path, params=self.given | query)
        assert response.status_code == 400, (self.path, query, response.text)
        return str(response.json()["message"])

    def value(self, item: Json, field: str) -> Any:
        """What an item is sorted by."""
        shown_as = SHOWN_AS.get((self.operation, field))
        return value_at(item, field) if shown_as is None else shown_as(item)


def ident(item: Json) -> str:
    """What identifies an item of a list."""
    if "verdict" in item:  # the health of an application
        return str(item["applicationId"])
    return str(item["id"] if "id" in item else item["name"])


def idents(items: Iterable[Json]) -> list[str]:
    return [ident(item) for item in items]


async def check_order(found: List, field: str) -> None:
    """One field sorts in both directions, and the pages are the list."""
    ascending = await found.items(sortField=field, sortDirection="asc")
    descending = await found.items(sortField=field, sortDirection="desc")
    assert len(ascending) >= 4, field
    assert len(set(idents(ascending))) == len(ascending), field
    assert idents(descending) == idents(ascending)[::-1], field
    if "perPage" in found.route.query.__struct_encode_fields__:
        for direction, whole in (("asc", ascending), ("desc", descending)):
            paged: list[Json] = []
            for page in range(len(whole) // 2 + 1):
                paged += await found.items(sortField=field, sortDirection=direction, perPage=2, page=page)
            assert idents(paged) == idents(whole), (field, direction)
    if found.operation in SAME_ORDER:
        operation, end = SAME_ORDER[found.operation]
        other = List(found.client, operation, found.path.removesuffix(f"/{end}"))
        assert idents(ascending) == idents(await other.items(sortField=field)), field
    elif (found.operation, field) not in COMPUTED:
        values = [sortable(found.value(item, field)) for item in ascending]
        assert values == sorted(values), field
        assert len(set(values)) > 1, f"all records have the same {field}"


async def check_filter(found: List, field: str) -> None:
    """One field filters by whole texts and by patterns, without regard to case."""
    everything = await found.items()
    texts = sorted({str(value_at(item, field)) for item in everything})
    assert len(texts) > 1, f"all records have the same {field}"
    for text in texts[:3]:
        half = len(text) // 2
        for pattern in (
            text.upper(),
            f"{text[:half]}*",
            f"*{text[half:]}",
            f"*{text[1:-1]}*",
            f"{text[0]}*{text[-1]}",
        ):
            parts = [re.escape(part) for part in pattern.casefold().split("*")]
            wanted = re.compile(".*".join(parts), re.DOTALL)
            expected = [
                each for each in everything if wanted.fullmatch(str(value_at(each, field)).casefold())
            ]
            answer = await found.read(filterField=field, filter=pattern)
            assert idents(answer["items"]) == idents(expected) != [], (field, pattern)
            assert (answer["filterField"], answer["filter"]) == (field, pattern)
            assert answer["totalCount"] == len(expected)
    assert await found.items(filterField=field, filter="no such text") == []
    assert idents(await found.items(filterField=field, filter="")) == idents(everything)
    assert idents(await found.items(filterField="", filter="no such text")) == idents(everything)


SAMPLES: Final[Mapping[FieldKind, Any]] = {
    "value": None,
    "values": None,
    "id": "0" * 24,
    "ids": "0" * 24,
    "time": {"$gt": 0},
    "tags": {"$tagKey": "room"},
    "parts": {"type": "timer"},
}
"""A condition for each kind of field."""


async def check_query(found: List) -> None:
    """An advanced query may name each field of its table; where items show a text, equality finds just these."""
    fields = fields_of(found.route)
    everything = await found.items()
    for name, field in fields.items():
        await found.items(query=json.dumps({name: SAMPLES[field.kind]}))
        shown = [value_at(item, name) for item in everything]
        for text in sorted({each for each in shown if isinstance(each, str)})[:2]:
            answer = await found.read(query=json.dumps({name: text}))
            wanted = [ident(item) for item, each in zip(everything, shown, strict=True) if each == text]
            assert idents(answer["items"]) == wanted, (name, text)
            assert answer["totalCount"] == len(wanted)
    wrong: list[Json] = [{"colour": "red"}, {"$xor": []}, []]
    for query in wrong:
        assert (await found.refusal(query=json.dumps(query))).startswith("query")


def fields_of(route: Route) -> Fields:
    """The fields that the advanced query of a list may name; empty if it takes none."""
    hint = get_type_hints(route.query, include_extras=True).get("query")
    found = None if hint is None else query_fields(hint)
    return Fields("", {}) if found is None else found


@pytest.mark.slow
@pytest.mark.parametrize("operation", sorted(LISTS.keys() & FILLED.keys()))
async def test_a_list_is_sorted_paged_and_filtered(tmp_path: Path, operation: str) -> None:
    folder = {"templates_dir": template_folder(tmp_path / "templates")} if "Templates" in operation else {}
    async with running_server(tmp_path / "data", limits={"event_create": "off"}, **folder) as server:
        path = await FILLED[operation](server, await server.application())
        async with server.client() as client:
            found = List(client, operation, path)
            for field in choices(found.route, "sortField"):
                await check_order(found, field)
            for field in choices(found.route, "filterField"):
                await check_filter(found, field)
            if fields_of(found.route):
                await check_query(found)
            whole = await found.read()
            assert whole["count"] == whole["totalCount"] == len(whole["items"])
            for name in ("sortField", "sortDirection"):
                assert whole[name] == default(found.route, name)
            for name in ("sortField", "filterField", "sortDirection", "colour"):
                assert (await found.refusal(**{name: "colour"})).startswith(f"{name}: ")
