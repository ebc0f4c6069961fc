"""Rows that do not fit together fail when the table is built, not when the first call comes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.http.calls.path_parameters import parse_path
from trunkline.http.calls.route import (
    APP_PATH,
    APPLICATION_ACTOR,
    DATA_TABLE_ACTOR,
    DEVICE_ACTOR,
    USER_ACTOR,
    Route,
)
from trunkline.http.calls.route_table import RouteTable
from trunkline.http.routes import TABLE


class TurnCard(Message, frozen=True):
    application: bytes
    data_table: bytes
    body: Any
    if_match: str | None = None


def route(path: str, **more: Any) -> Route:
    return Route(method="POST", path=path, operation="card.turn", summary="Turn a card", **more)


def test_fields_are_filled_from_the_path_and_the_call() -> None:
    row = route(APP_PATH + "/data-tables/{dataTableId}", message=TurnCard, body=dict)
    assert [name for name, _ in RouteTable((row,)).field_sources[row, TurnCard]] == [
        "application",
        "data_table",
        "body",
        "if_match",
    ]


@pytest.mark.parametrize(
    ("path", "more", "field"),
    [
        (APP_PATH + "/tables/{tableId}", {"body": dict}, "data_table"),
        ("/data-tables/{dataTableId}", {"body": dict}, "application"),
        (APP_PATH + "/data-tables/{dataTableId}", {}, "body"),
    ],
)
def test_a_field_that_nothing_fills_is_an_error_of_the_table(
    path: str, more: dict[str, Any], field: str
) -> None:
    with pytest.raises(TypeError, match=f"card.turn: nothing fills TurnCard.{field}"):
        RouteTable((route(path, message=TurnCard, **more),))


def test_a_placeholder_that_nobody_can_read_is_an_error_of_the_row() -> None:
    with pytest.raises(TypeError, match=r"\{card\} is not an id"):
        route("/cards/{card}")
    assert [part.name for part in parse_path("/a/{aId}/b/{bId}/c/{name}")] == ["a", "b", "name"]


def test_an_actor_that_the_path_does_not_lead_to_is_an_error_of_the_row() -> None:
    with pytest.raises(TypeError, match=r"has no \{applicationId\}, which device needs"):
        route("/devices/{deviceId}", to=DEVICE_ACTOR)


def test_addresses_lead_to_actors() -> None:
    ids = {"application": b"a" * 12, "device": b"d" * 12, "dataTable": b"t" * 12, "user": b"u" * 12}
    assert DEVICE_ACTOR.ref(ids) == Ref("device", b"a" * 12, b"d" * 12)
    assert DATA_TABLE_ACTOR.ref(ids) == Ref("dataTable", b"a" * 12, b"t" * 12)
    assert APPLICATION_ACTOR.ref(ids) == Ref("application", ROOT, b"a" * 12)
    assert USER_ACTOR.ref(ids) == Ref("user", ROOT, b"u" * 12)


def test_every_message_of_the_table_is_filled() -> None:
    for row in TABLE.routes:
        for message in (row.message, row.then, *row.uses):
            if message is not None:
                given = {name for name, _ in TABLE.field_sources[row, message]}
                required = {field.name for field in msgspec.structs.fields(message) if field.required}
                assert required <= given, row.operation
