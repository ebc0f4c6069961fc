"""The check that hangs on every client: it must fail where an answer is not as documented."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.e2e.openapi_check import documented

APP = f"/applications/{'0' * 24}"
STATE = {"time": "2024-05-01T12:00:00.000Z", "data": {"temp": 1.5}}
GONE = {"type": "NotFound", "message": "There is no such application."}


def problems(
    method: str, path: str, status: int, body: Any = None, *, headers: dict[str, str] | None = None
) -> list[str]:
    """What the check says about an answer; `body` as JSON, or as it is where it is text."""
    request = httpx.Request(method, f"http://server{path}")
    given: dict[str, Any] = {"text": body} if isinstance(body, str) else {"json": body}
    return documented().problems(
        method, path, httpx.Response(status, **given, headers=headers, request=request)
    )


def test_documented_answers_pass() -> None:
    assert problems("GET", f"{APP}/devices/{'1' * 24}/state", 200, [STATE]) == []
    assert problems("GET", APP, 404, GONE) == []
    assert problems("GET", "/nothing/there", 404, GONE) == []
    assert problems("GET", "/healthz", 200, {"status": "alive"}) == []
    assert problems("DELETE", APP, 200, {"success": True}) == []


@pytest.mark.parametrize(
    ("method", "path", "status", "body", "problem"),
    [
        ("GET", f"{APP}/devices/{'1' * 24}/state", 200, [{**STATE, "extra": 1}], "extra"),
        ("GET", f"{APP}/devices/{'1' * 24}/state", 200, [{"data": {}}], "time"),
        ("GET", f"{APP}/devices/{'1' * 24}/state", 200, {}, 'is not of type "array"'),
        ("GET", APP, 202, {}, "status 202 is not documented"),
        ("GET", APP, 422, GONE, "type NotFound with status 422"),
        ("GET", APP, 404, {"error": "gone"}, "error"),
        ("GET", APP, 404, {**GONE, "stack": "..."}, "stack"),
        ("GET", APP, 404, "gone", "not JSON"),
        ("GET", APP, 401, {"type": "Unauthorized", "message": "Log in first."}, "www-authenticate"),
        ("PUT", APP, 405, {"type": "MethodNotAllowed", "message": "Not that way."}, "allow"),
    ],
)
def test_undocumented_answers_are_found(method: str, path: str, status: int, body: Any, problem: str) -> None:
    assert any(problem in found for found in problems(method, path, status, body))


def test_literal_paths_win_over_placeholders() -> None:
    found = documented().operation("GET", f"{APP}/devices/tagKeys")
    assert found is not None
    assert found[1]["operationId"] == "devices.tagKeys"
