"""Paths: what is not there, and words where an id is expected."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Server


@pytest.mark.parametrize("name", ["clone", "import"])
async def test_an_operation_that_is_not_there_is_404_and_not_a_wrong_method(
    server: Server, name: str
) -> None:
    devices = f"{await server.application()}/devices"
    answer = await server.call("POST", f"{devices}/{name}", {"query": {}}, status=404)
    assert answer["message"] == (
        f"There is nothing at {devices}/{name}: this server has no such operation; `/docs` shows the API."
    )
    answer = await server.call("POST", f"{devices}/{'0' * 24}", {}, status=405)
    assert answer["message"] == "POST is not a method of this path; it takes DELETE, GET, PATCH."


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("stateStream", "/applications/{applicationId}/devices/{deviceId}/stateStream"),
        ("compositestate", "/applications/{applicationId}/devices/compositeState"),
        ("tagkey", "/applications/{applicationId}/devices/tagKeys"),
        ("5", None),
    ],
)
async def test_a_word_for_an_id_leads_to_the_path_that_was_meant(
    server: Server, word: str, meant: str | None
) -> None:
    answer = await server.call("GET", f"{await server.application()}/devices/{word}", status=400)
    hint = f" (did you mean {meant}?)." if meant else "."
    expected = f"deviceId: '{word}' is not an id; an id is 24 hexadecimal digits{hint}"
    assert answer["message"] == expected


async def test_a_missing_body_is_400_whatever_the_content_type(server: Server) -> None:
    device = await server.device(await server.application())
    async with server.client() as client:
        for headers in ({}, {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}):
            response = await client.post(f"{device}/command", headers=headers)
            assert response.status_code == 400
            assert response.json()["message"] == (
                "The body is missing; this call needs JSON: an object with name (Content-Type: application/json)."
            )
        response = await client.post(
            f"{device}/command", content=b"{}", headers={"Content-Type": "text/plain"}
        )
        assert response.status_code == 415
