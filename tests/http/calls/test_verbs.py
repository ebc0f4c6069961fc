"""The constructors of routes: what each gives to a route, and that the rows of the API are made by them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline.actors.core.values.terms import Success
from trunkline.actors.fleet.devices.record.messages import CreateDevice, DevicePage, DevicePost, DeviceShape
from trunkline.actors.fleet.devices.record.read_messages import GetDevice, ListDevices
from trunkline.actors.fleet.devices.record.views import DeviceView
from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.http.calls import verbs
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import APP_PATH, DEVICE_ACTOR, DEVICE_PATH, LinkTemplates, NoQuery, Route
from trunkline.http.calls.verbs import Shown, delete, get, job, list_of, patch, post, stream
from trunkline.http.routes import TABLE

DEVICES = APP_PATH + "/devices"
LINKS = LinkTemplates({"self": DEVICE_PATH})
SHOWN = Shown(GetDevice, DeviceView, DeviceShape, LINKS)


async def answer(_call: Call) -> Response:
    """Answer."""
    return Response(200, [])


def said(route: Route, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(route, name) for name in names)


def test_a_get_shows_a_record_or_gives_a_reply() -> None:
    route = get(DEVICE_PATH, "device.get", "Get", SHOWN, device="read")
    assert said(route, "method", "message", "reply", "query", "links", "access", "device") == (
        *("GET", GetDevice, DeviceView, DeviceShape, LINKS),
        *("read", "read"),
    )
    route = get(DEVICES, "devices.some", "Get", answer, list[DeviceView], query=DeviceShape)
    assert said(route, "handler", "message", "reply", "query") == (
        answer,
        None,
        list[DeviceView],
        DeviceShape,
    )


def test_a_list_has_a_page() -> None:
    route = list_of(DEVICES, "devices.get", "List", ListDevices, DeviceView, DevicePage)
    assert said(route, "method", "message", "reply", "query") == (
        *("GET", ListDevices, ("list", DeviceView), DevicePage),
    )


@pytest.mark.parametrize("verb", [post, patch, delete])
def test_a_change_needs_the_right_to_write_and_shows_the_record(verb: Any) -> None:
    method = verb.__name__.upper()
    route = verb(DEVICE_PATH, "device.some", "Change", CreateDevice, SHOWN, body=DevicePost, to=DEVICE_ACTOR)
    assert said(route, "method", "access", "then", "reply", "query", "links", "body") == (
        *(method, "write", GetDevice, DeviceView, DeviceShape, LINKS, DevicePost),
    )
    route = verb(DEVICES, "devices.some", "Change", answer, access="read")
    assert said(route, "handler", "access", "then", "reply", "query") == (
        answer,
        "read",
        None,
        Success,
        NoQuery,
    )


def test_a_job_is_queued_and_a_stream_has_events() -> None:
    route = job(DEVICES, "devices.some", "Export", answer, optional_body=True, body=DevicePost)
    assert said(route, "method", "reply", "ok", "access") == ("POST", JobQueued, 202, "read")
    assert job(DEVICES, "devices.some", "Remove", answer, method="DELETE").method == "DELETE"
    route = stream(DEVICES, "devices.some", "Stream", answer, ("device", DeviceView), resets=True)
    assert said(route, "method", "event", "resets", "latency_class") == (
        *("GET", ("device", DeviceView), True, "stream"),
    )


def test_the_rows_of_the_api_are_made_by_constructors(checkout: Path) -> None:
    """Each is used often enough to be known, and a `Route` that is written out is one that none of them makes."""
    used: Counter[str] = Counter()
    for file in (checkout / "http" / "resources").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                used[node.func.id] += 1
    own = {name for name, each in vars(verbs).items() if getattr(each, "__module__", "") == verbs.__name__}
    public = {name for name in own if not name.startswith("_")} | {"resource_routes"}
    assert {name: used[name] for name in public if used[name] < 3} == {}
    assert used["Route"] <= 3  # the link of devices, MQTT, and the address of webhooks


def test_what_needs_no_token_is_public() -> None:
    assert post(DEVICES, "devices.some", "Do", answer, access="none").area == "public"
    assert get(DEVICES, "devices.some", "Get", answer, Success).area == "application"
    assert {route.area == "public" for route in TABLE.routes if route.access == "none"} == {True}
    assert {route.access for route in TABLE.routes if route.area == "public"} == {"none"}


def test_a_field_that_a_route_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="querry"):
        get(DEVICES, "devices.some", "Get", answer, msgspec.Struct, querry=DeviceShape)
