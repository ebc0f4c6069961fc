"""A choice of devices that can match nothing is refused wherever devices are chosen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.test_imports import bundle_of, old, send

NO_CHOICE = "a choice by tag needs a key, a value, or both."
RULE = {"name": "r", "severity": "info", "condition": {"type": "silence", "seconds": 60}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("devices/command", {"name": "x"}),
        ("data/export", {"email": "a@example.com", "start": 1, "end": 2}),
        ("data/time-series-query", {}),
        ("data/last-value-query", {"attribute": "t"}),
        ("keys", {}),
        ("experience/groups", {"name": "g"}),
        ("alarm-rules", RULE),
    ],
)
async def test_a_choice_by_a_tag_without_key_and_value_is_400(
    server: Server, path: str, body: dict[str, Any]
) -> None:
    application = await server.application()
    choice = {"deviceTags": [{"key": "floor"}, {}]}
    refusal = await server.call("POST", f"{application}/{path}", body | choice, status=400)
    assert refusal["message"] == f"deviceTags[1]: does not fit; {NO_CHOICE}"


async def test_it_is_400_in_what_is_stored_inside_of_others(server: Server) -> None:
    application = await server.application()
    archive = {"archiveConfig": {"directory": "a", "mode": "whitelist", "deviceTags": [{}]}}
    refusal = await server.call("PATCH", application, archive, status=400)
    assert refusal["message"] == f"archiveConfig.deviceTags[0]: does not fit; {NO_CHOICE}"
    inputs = [{"inputType": "deviceData", "fileName": "a.csv", "deviceTags": [{}]}]
    notebook = {"name": "n", "inputs": inputs}
    refusal = await server.call("POST", f"{application}/notebooks", notebook, status=400)
    assert refusal["message"] == f"inputs[0].deviceTags[0]: does not fit; {NO_CHOICE}"


async def test_a_parameter_of_a_dashboard_may_be_any_tag(server: Server) -> None:
    """Without key and value it chooses all devices."""
    parameter = {"name": "room", "type": "deviceTag", "defaultValue": {}}
    body = {
        "name": "d",
        "applicationId": (await server.application()).rpartition("/")[2],
        "contextConfiguration": [parameter],
    }
    made = await server.call("POST", "/dashboards", body, status=201)
    assert made["contextConfiguration"][0]["defaultValue"] == {}


async def test_an_import_of_such_a_choice_says_so(server: Server) -> None:
    group = {"id": old(1), "body": {"name": "g", "deviceTags": [{}]}}
    response = await send(server, "/applications", bundle_of({"ExperienceGroup": [group]}))
    assert response.status_code == 422
    (problem,) = response.json()["validationErrors"]
    assert NO_CHOICE.rstrip(".") in problem["message"]
