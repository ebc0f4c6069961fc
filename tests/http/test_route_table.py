"""The route table: every path matches its route, and each route has the right scopes."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest
from msgspec.json import Decoder

from trunkline.actors.core.values.structs import Message
from trunkline.http.calls.late_decoder import LateDecoder
from trunkline.http.calls.route import Route
from trunkline.http.resources.fleet.devices import ROUTES as DEVICE_ROUTES
from trunkline.http.resources.fleet.streams import ROUTES as STREAMS
from trunkline.http.routes import TABLE


def filled(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: "a" * 24, route.path)


@pytest.mark.parametrize("route", TABLE.routes, ids=lambda route: route.operation)
def test_every_row_is_found_by_its_path(route: Route) -> None:
    found = TABLE.match(filled(route))
    assert found is not None
    methods, values = found
    assert methods[route.method] is route
    assert len(values) == len(route.path_parameters)


@pytest.mark.parametrize(
    "route", [each for each in TABLE.routes if each.body is not None], ids=lambda r: r.operation
)
def test_every_body_has_a_decoder(route: Route) -> None:
    """It is made when the first body comes, so nothing but this says that its type can be decoded."""
    assert route.decoder is not None
    decoder = LateDecoder(route.body, lambda made: None).made()
    assert decoder.type == route.decoder.type == route.body


def test_a_decoder_is_made_once() -> None:
    route = replace(TABLE.by_operation["devices.post"])
    assert isinstance(route.decoder, LateDecoder)
    assert route.decoder.decode(b'{"name":"d"}').name == "d"
    assert isinstance(route.decoder, Decoder)


def name_of(message: type[Message]) -> str:
    return message.__name__


@pytest.mark.parametrize("message", sorted({each for _, each in TABLE.field_sources}, key=str), ids=name_of)
def test_every_required_field_of_a_message_has_a_source(message: type[Message]) -> None:
    required = {field.name for field in msgspec.structs.fields(message) if field.required}
    for (_, each), sources in TABLE.field_sources.items():
        if each is message:
            assert required <= {name for name, _ in sources}


def test_a_literal_segment_wins_over_a_placeholder() -> None:
    found = TABLE.match("/applications/" + "a" * 24 + "/devices/attributeNames")
    assert found is not None
    assert found[0]["GET"].operation == "devices.attributeNames"


@pytest.mark.parametrize(
    "path", ["/", "", "/nothing", "/applications//devices", "/applications/{}/x", "/me/tokens/a/b"]
)
def test_an_unknown_path_is_no_row(path: str) -> None:
    assert TABLE.match(path) is None


def test_operations_are_unique() -> None:
    operations = [route.operation for route in TABLE.routes]
    assert len(operations) == len(set(operations))


def test_reads_take_the_read_scopes_and_writes_do_not() -> None:
    for route in TABLE.routes:
        assert any(scope.endswith(".read") for scope in route.scopes) == (route.access == "read")
        if route.access != "none":
            assert {route.scope, route.scope.split(".")[0] + ".*", "all.User"} <= route.scopes


def test_what_is_about_a_user_takes_no_scope_of_an_application() -> None:
    for route in TABLE.routes:
        families = {scope for scope in route.scopes if scope.startswith(("all.Application", "all.Device"))}
        assert bool(families) == (route.area == "application")


def test_what_a_device_may_do() -> None:
    open_to_devices = {route.operation for route in (*DEVICE_ROUTES, *STREAMS) if route.device != "no"}
    assert open_to_devices == {
        "device.commandStream",
        "device.get",
        "device.getCommand",
        "device.getCompositeState",
        "device.getLogEntries",
        "device.getState",
        "device.sendCommand",
        "device.sendState",
        "device.setConnectionStatus",
        "device.stateStream",
        "deviceAttribute.get",
        "deviceAttributes.get",
        "devices.get",
        "devices.getCompositeState",
        "devices.getHealth",
        "devices.sendCommand",
    }
