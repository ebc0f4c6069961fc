"""No request is answered with 5xx, and every error has the same form and a sentence that says what is wrong.

Systematic rather than random: every field of every body and every query parameter of every route is tried with unusual
values, with everything else valid, and real records in the path. In an ordinary run a field gets a third of the values,
and the next field the next third; in the long form (`pytest -m load`) each gets all. Hypothesis chooses further
combinations.

The file is long because the unusual values, the records and the walks over the API document are used by all its tests.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.actors.house import House, running_house
from tests.patience import PATIENCE_S
from tests.rounds import examples
from trunkline.actors import server_users
from trunkline.http.calls.auth import Tokens
from trunkline.http.calls.body_stream import BodyStream
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import ENGINE_STATUS, STATUS
from trunkline.http.calls.request import Request, Response
from trunkline.http.calls.route import Route
from trunkline.http.openapi.document import document
from trunkline.http.routes import TABLE

EMAIL, PASSWORD = "ada@example.com", "Correct-horse-7"
API: Any = document(TABLE, "test")
UNKNOWN = "0123456789abcdef01234567"
SENTENCE = re.compile(r".{3,}[.?!]", re.DOTALL)

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    1e308,
    -0.0,
    5e-324,
    "",
    " ",
    "\x00",
    "\n",
    "x" * 70_000,
    "ünïcödé \U0001f40e \u202e",
    "../../etc/passwd",
    "$where",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "10000-01-01T00:00:00Z",
    "2024-02-30",
    "-271821-04-20T00:00:00Z",
    UNKNOWN,
    UNKNOWN + "\n",
    "٠" * 24,
    "192.0.2.0/33",
    "::1%" + "x" * 40,
    "a@b",
    "http://xn--/",
    "http://[::1",
    [],
    [None],
    [[]],
    ["x"] * 1001,
    {},
    {"": ""},
    {"$date": 5},
    {"$date": "x"},
    {"$gt": {"$gt": 1}},
    {"key": "\x00"},
    {"__proto__": {"a": 1}},
)
ODD_INSIDE: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    2**64,
    10**400,
    "",
    "\x00",
    "9999-12-31T23:59:59.999999999Z",
    UNKNOWN,
    "http://xn--/",
    [],
    [None],
    {"$date": 5},
)
"""Values for the places deep inside a body, of which there are many."""

ODD_JSON = [
    *(json.dumps(value).encode() for value in ODD_VALUES),
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b"1e400",
    b"-1e400",
    b"[" * 500 + b"]" * 500,
    b'{"a":' * 500 + b"1" + b"}" * 500,
]
BROKEN = [
    b"",
    b"{",
    b"NaN",
    b"\xff",
    b'{"name": "\xc3"}',
    b"[" * 100_000,
    b"null",
    b"[]",
    b'"x"',
    b"1",
    b"{}" * 2,
]
ODD_QUERY = [
    "",
    "0",
    "-1",
    "1.5",
    "99999999999999999999",
    "1e400",
    "NaN",
    "true",
    "null",
    "%00",
    "%FF",
    "%F0%9F%90%8E",
]
ODD_QUERY += [
    "a" * 2000,
    "[",
    "{",
    "{}",
    "[]",
    "[[[",
    '{"$or":[]}',
    '{"id":{"$in":[null]}}',
    '{"name":{"$ci":1}}',
]
ODD_QUERY += [
    quote(json.dumps({"$and": [{"name": {"$contains": "x"}}] * 101})),
    "*" * 500,
    "%2A%5C%3F%5B",
    UNKNOWN,
]


THIRD_OR_ALL = pytest.mark.parametrize(
    "parts", [pytest.param(3, id="a third"), pytest.param(1, id="all", marks=pytest.mark.load)]
)
"""In how many parts the unusual values are dealt out to the fields: in an ordinary run, and in the long form."""


def dealt(values: Sequence[Any], parts: int) -> Iterator[Sequence[Any]]:
    """One part of the values for each field in turn."""
    return (values[at % parts :: parts] for at in count())


async def _receive(body: bytes) -> dict[str, Any]:
    """The only piece of a body that is read in pieces."""
    return {"type": "http.request", "body": body, "more_body": False}


class Edge:
    """A dispatcher on a real system with one record of every kind, and a user who may do everything."""

    def __init__(self, house: House, dispatcher: Dispatcher, user: str) -> None:
        self.house = house
        self.dispatcher = dispatcher
        self.ids = {"name": "a"}
        claims = {"typ": "user", "sub": user}
        token = dispatcher.tokens.issue(claims, {"all.User"}, house.clock.wall_ms(), None)
        self.headers = {b"authorization": b"Bearer " + token.encode(), b"content-type": b"application/json"}

    def path(self, route: Route) -> str:
        """The path with the ids of real records; for a deletion with unknown ids."""
        ids = {} if route.method == "DELETE" else self.ids
        return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], UNKNOWN), route.path)

    async def send(self, method: str, path: str, body: bytes = b"", query: str = "") -> Response:
        stream = BodyStream(partial(_receive, body), None, PATIENCE_S)
        request = Request(method, path, query.encode(), self.headers, body, "127.0.0.1", stream=stream)
        response = await self.dispatcher.handle(request)
        if response.stream is not None:
            response.stream.close()
        return response

    async def made(self, path: str, body: Any) -> str:
        response = await self.send("POST", path, json.dumps(body).encode())
        assert response.status == 201, response.body
        id: str = json.loads(response.body)["id"]
        return id


@asynccontextmanager
async def running_edge(data_dir: Path) -> AsyncIterator[Edge]:
    async with running_house(data_dir) as house:
        tokens = Tokens(house.system, b"a secret of at least thirty-two bytes", TABLE.routes)
        user = await server_users.add_user(house.system, EMAIL, PASSWORD)
        edge = Edge(house, Dispatcher(house.system, tokens, TABLE, token_ttl_s=3600), user)
        application = await edge.made("/applications", {"name": "house"})
        path = f"/applications/{application}"
        attributes = [
            {"name": "a", "dataType": "number"},
            *({"name": name, "dataType": name} for name in ("boolean", "string", "gps", "blob")),
        ]
        device = await edge.made(f"{path}/devices", {"name": "pump", "attributes": attributes})
        columns = [{"name": name, "dataType": name} for name in ("string", "number", "boolean")]
        table = await edge.made(
            f"{path}/data-tables",
            {"name": "t", "columns": [{**column, "constraint": "optional"} for column in columns]},
        )
        edge.ids |= {
            "applicationId": application,
            "deviceId": device,
            "applicationKeyId": await edge.made(f"{path}/keys", {}),
            "apiTokenId": await edge.made(f"{path}/tokens", {"name": "t"}),
            "dataTableId": table,
            "rowId": await edge.made(f"{path}/data-tables/{table}/rows", {"number": 1}),
            "eventId": await edge.made(f"{path}/events", {"level": "info", "subject": "s"}),
            "dashboardId": await edge.made(f"{path}/dashboards", {"name": "d"}),
            "deviceRecipeId": await edge.made(f"{path}/device-recipes", {"name": "r"}),
            "webhookId": await edge.made(f"{path}/webhooks", {"name": "w"}),
        }
        yield edge


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    async with running_edge(tmp_path / "data") as running:
        yield running


def check(route: Route, response: Response, sent: Any) -> None:
    """Check that it is not 5xx, and that an error has the usual form and a sentence."""

    def about() -> str:
        return f"{route.operation}: {str(sent)[:300]}: {response.status} {response.body[:300]!r}"

    assert response.status < 500, about()
    if response.status < 400:
        of_job, of_check = (202, route.job), (200, route.checked)
        others = {status for status, reply in (of_job, of_check) if reply is not None}
        assert response.status in {route.ok, 304} | others, about()
        return
    body = json.loads(response.body)
    assert body.keys() == {"type", "message"}, about()
    assert (STATUS | ENGINE_STATUS)[body["type"]] == response.status, about()
    assert SENTENCE.fullmatch(body["message"]), about()
    assert len(body["message"]) < 2000, about()


def schema_of(route: Route) -> dict[str, Any]:
    operation = API["paths"][route.path][route.method.lower()]
    schema: dict[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    return schema


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = API["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def variants(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object schemas that a schema allows."""
    schema = resolved(schema)
    if schema.get("type") == "object":
        yield schema
    for each in [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        yield from variants(each)


def sample(schema: dict[str, Any], edge: Edge) -> Any:
    """A value that fits the schema, without optional fields."""
    schema = resolved(schema)
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return sample(schema[choice][0], edge)
    if "const" in schema:
        return schema["const"]
    if schema.get("type") == "object":
        required = schema.get("required", ())
        return {name: sample(schema["properties"][name], edge) for name in required}
    if schema.get("type") == "array":
        return []
    if schema.get("type") == "string":
        pattern = schema.get("pattern", "")
        return edge.ids["deviceId"] if "24" in pattern else EMAIL if "@" in pattern else PASSWORD
    return schema.get("minimum", 1)


@pytest.mark.slow
@pytest.mark.timeout(
    600
)  # the long form takes half a minute of processor time, which is minutes on a busy machine
@THIRD_OR_ALL
async def test_every_field_of_every_body_meets_odd_values(edge: Edge, parts: int) -> None:
    """As it is, in an array or in an object: all three for each field would take minutes."""
    random, shares = Random(1), dealt(ODD_JSON, parts)
    for route in TABLE.routes:
        if route.body is None:
            continue
        path = edge.path(route)
        for schema in variants(schema_of(route)):
            base = sample(schema, edge)
            for name in [*schema.get("properties", {}), "unknown", ""]:
                rest = json.dumps({key: value for key, value in base.items() if key != name}).encode()
                start = rest[:-1] + (b"," if rest != b"{}" else b"") + json.dumps(name).encode() + b":"
                for odd in next(shares):
                    value = random.choice((b"%b", b"[%b]", b'{"a":%b}')) % odd
                    response = await edge.send(route.method, path, start + value + b"}")
                    check(route, response, (name, value))
        for body in BROKEN:
            check(route, await edge.send(route.method, path, body), body)


def full(schema: dict[str, Any], edge: Edge, depth: int = 5) -> Any:
    """A value with every optional field, one entry in each array, and one key in each map."""
    schema = resolved(schema)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            large = [
                each for each in map(resolved, schema[choice]) if each.get("type") in ("object", "array")
            ]
            return full((large or schema[choice])[-1], edge, depth)
    if depth and schema.get("type") == "array":
        return [full(schema.get("items", {}), edge, depth - 1)]
    if depth and schema.get("type") == "object":
        found = {name: full(each, edge, depth - 1) for name, each in schema.get("properties", {}).items()}
        if not found and isinstance(schema.get("additionalProperties", {}), dict):
            found = {"a": full(schema.get("additionalProperties", {}), edge, depth - 1)}
        return found
    return sample(schema, edge)


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The paths to everything inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield (key,)
        yield from ((key, *rest) for rest in places(each))


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], new)
    return copy


def only(value: Any, place: tuple[Any, ...], needed: Any) -> Any:
    """The value with what is `needed` and the first step of `place` alone, so that another field is not at fault."""
    return {**needed, place[0]: value[place[0]]} if isinstance(value, dict) else value


@pytest.mark.slow
@pytest.mark.timeout(600)
@THIRD_OR_ALL
async def test_every_inner_value_of_every_body_meets_odd_values(edge: Edge, parts: int) -> None:
    shares = dealt(ODD_INSIDE, parts)
    for route in TABLE.routes:
        if route.body is None:
            continue
        for schema in variants(schema_of(route)):
            base, whole = sample(schema, edge), full(schema, edge)
            for place in places(whole):
                if len(place) == 1:
                    continue
                for odd in next(shares):
                    body = json.dumps(replaced(only(whole, place, base), place, odd))
                    response = await edge.send(route.method, edge.path(route), body.encode())
                    check(route, response, (place, body))


@pytest.mark.slow
async def test_every_data_type_meets_every_odd_value(edge: Edge) -> None:
    routes = {route.operation: route for route in TABLE.routes}
    state, row = routes["device.sendState"], routes["dataTableRows.post"]
    for name in ("a", "boolean", "string", "gps", "blob"):
        for odd in ODD_JSON:
            body = b'{"data":{"%b":%b}}' % (name.encode(), odd)
            check(state, await edge.send("POST", edge.path(state), body), body)
    for name in ("string", "number", "boolean"):
        for odd in ODD_JSON:
            body = b'{"%b":%b}' % (name.encode(), odd)
            check(row, await edge.send("POST", edge.path(row), body), body)


@pytest.mark.slow
@THIRD_OR_ALL
async def test_every_query_parameter_meets_odd_values(edge: Edge, parts: int) -> None:
    """In one of four forms."""
    random, shares = Random(1), dealt(ODD_QUERY, parts)
    forms = ("{name}={odd}", "{name}[0]={odd}", "{name}[a][$eq]={odd}", "{name}={odd}&{name}=x")
    for route in TABLE.routes:
        path = edge.path(route)
        body = json.dumps(sample(schema_of(route), edge)).encode() if route.body is not None else b""
        parameters = API["paths"][route.path][route.method.lower()]["parameters"]
        names = [each["name"] for each in parameters if each.get("in") == "query"]
        for name in [*names, "_links", "unknown", "%FF", "", "["]:
            for odd in next(shares):
                odd = odd if "%" in odd else quote(odd)
                query = random.choice(forms).format(name=name, odd=odd)
                # Each login hashes a password; unusual queries are tried with the other routes.
                if route.operation != "auth.authenticateUser":
                    check(route, await edge.send(route.method, path, body, query), query)


@pytest.mark.slow
async def test_every_id_of_every_path_meets_odd_text(edge: Edge) -> None:
    odd = [
        "",
        "x",
        "{}",
        "%00",
        "\x00",
        "\n",
        "..",
        "/",
        "0" * 23,
        "0" * 25,
        "G" * 24,
        "é" * 24,
        "x" * 5000,
        UNKNOWN,
    ]
    for route in TABLE.routes:
        for name in (part.placeholder for part in route.path_parameters):
            for text in odd:
                path = edge.path(route).replace(edge.ids.get(name, UNKNOWN), text, 1)
                response = await edge.send(route.method, path, b"{}")
                if response.status not in (404, 405):
                    check(route, response, path)
                assert response.status < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
MINE = [
    route
    for route in TABLE.routes
    if route.body is not None
    and route.operation.startswith(("application", "me.", "userApi", "auth.authenticateD"))
    and any(variants(schema_of(route)))  # the body is an object
]


@st.composite
def calls(draw: st.DrawFn) -> tuple[Route, dict[str, Any]]:
    """A call of one of the routes of accounts, applications, keys and tokens with some of its fields."""
    route = draw(st.sampled_from(MINE))
    (schema,) = variants(schema_of(route))
    body: dict[str, Any] = {}
    for name, each in schema["properties"].items():
        if name != "currentCredentials" and draw(st.booleans()):
            body[name] = draw(fitting(each) | JSON if draw(st.integers(0, 3)) == 0 else fitting(each))
    return route, body


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values close enough to the schema that many of them are valid."""
    schema = resolved(schema)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([fitting(each) for each in schema["anyOf"]])
    if schema.get("type") == "object":
        return st.fixed_dictionaries(
            {}, optional={name: fitting(each) for name, each in schema.get("properties", {}).items()}
        )
    if schema.get("type") == "array":
        return st.lists(fitting(schema.get("items", {})), max_size=3)
    if schema.get("type") == "string":
        # Patterns that look ahead are for the one kind of text that no example needs: passwords.
        pattern = schema.get("pattern", "(?=").replace(r"(?!\n)", "")
        words = st.sampled_from(["device.get", "all.Application", "2099-01-01", "192.0.2.0/24", EMAIL])
        shortest = schema.get("minLength", 0)
        text = st.text(min_size=shortest, max_size=shortest + 40)
        return words | text if "(?=" in pattern else st.from_regex(pattern, fullmatch=True) | words
    if schema.get("type") in ("integer", "number"):
        return st.integers(schema.get("minimum", -10), schema.get("maximum", 10**6))
    return st.booleans() | st.none()


@pytest.mark.slow
@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(sent=st.lists(calls(), min_size=5, max_size=15))
async def test_what_is_combined_is_taken_or_refused_in_a_sentence(
    sent: list[tuple[Route, dict[str, Any]]],
) -> None:
    with tempfile.TemporaryDirectory() as data_dir:
        async with running_edge(Path(data_dir) / "data") as edge:
            for route, body in sent:
                check(route, await edge.send(route.method, edge.path(route), json.dumps(body).encode()), body)
            for route in TABLE.routes:
                if route.method == "GET" and route.event is None:
                    check(route, await edge.send("GET", edge.path(route)), sent)
