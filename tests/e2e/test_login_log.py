"""Failed logins in the log of a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import EMAIL
from tests.e2e.server_process import OWNER, serving

pytestmark = pytest.mark.slow


async def test_failed_logins_are_logged_without_what_was_typed(tmp_path: Path) -> None:
    """With the access log off: where they come from and why, so many lines a minute."""
    file = tmp_path / "limits.toml"
    file.write_text("logged_logins_per_minute_max = 3\n")
    env = {**OWNER, "TRUNKLINE_LOG_FORMAT": "json"}
    async with serving(tmp_path / "data", "--limits", str(file), env=env) as server:
        device = (await server.device(await server.application())).rpartition("/")[2]
        user = (await server.call("GET", "/me"))["id"]
        typed = {"deviceId": device, "key": "wrong-key", "secret": "wrong-secret"}
        await server.call("POST", "/auth/device", typed, token="", status=401)
        for email in (EMAIL, "typed-a-Secret-7@example.com", EMAIL, EMAIL):
            wrong = {"email": email, "password": "Wrong-horse-7"}
            await server.call("POST", "/auth/user", wrong, token="", status=401)
        async with server.client("") as client:
            counted = (await client.get("/metrics")).text
    assert "trunkline_logins_failed_total 5.0" in counted
    lines = [line for line in map(json.loads, server.log.splitlines()) if line["event"] == "login failed"]
    assert [(line["operation"], line["subject"]) for line in lines] == [
        ("auth.authenticateDevice", device),
        ("auth.authenticateUser", user),
        ("auth.authenticateUser", None),
    ]
    for line in lines:
        assert (line["client"], line["reason"], line["level"]) == ("127.0.0.1", "Unauthorized", "warning")
        assert line["request_id"]
    for private in ("wrong-key", "wrong-secret", "Wrong-horse-7", "typed-a-Secret-7"):
        assert private not in server.log


async def test_the_log_has_plain_addresses_of_ipv4(tmp_path: Path) -> None:
    """Also where one socket takes both versions."""
    env = {**OWNER, "TRUNKLINE_LOG_FORMAT": "json", "TRUNKLINE_ACCESS_LOG": "true", "TRUNKLINE_HOST": "::"}
    async with serving(tmp_path / "data", env=env) as server:
        server.url = server.url.replace("[::]", "127.0.0.1")
        wrong = {"email": EMAIL, "password": "Wrong-horse-7"}
        await server.call("POST", "/auth/user", wrong, token="", status=401)
        await server.terminate()  # the access log may have a call a moment after its answer
    lines = list(map(json.loads, server.log.splitlines()))
    failed = [line for line in lines if line["event"] == "login failed" or line.get("status") == 401]
    assert [line["client"] for line in failed] == ["127.0.0.1", "127.0.0.1"]
