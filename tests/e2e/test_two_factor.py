"""Two-factor authentication: keys, codes and recovery codes, wherever credentials are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyotp
import trio

from tests.e2e.conftest import EMAIL, PASSWORD, Server
from tests.patience import PATIENCE_S
from trunkline.actors import server_users
from trunkline.actors.maintenance.verify import verify
from trunkline.store.keyring import MARK

StartServer = Callable[..., Any]

LOGIN = {"email": EMAIL, "password": PASSWORD}
STEP_S = 30


class App:
    """An app with the key of a user, and the recovery codes."""

    def __init__(self, key: str, recovery_codes: list[str]) -> None:
        self.key = key
        self.recovery_codes = recovery_codes

    def code(self, server: Server, steps: int = 0) -> str:
        """The code of now, or of some steps later."""
        now_s = server.system.clock.wall_ms() // 1000
        return pyotp.TOTP(self.key).at(now_s + steps * STEP_S)


def wait_for_codes(server: Server) -> None:
    """Advance the clock until no code of before is valid any more."""
    server.move_clock(3 * STEP_S)


async def enabled(server: Server) -> App:
    """Enable two-factor authentication."""
    made = await server.call("PATCH", "/me/generateTwoFactorAuth")
    app = App(made["key"], [])
    body = {"twoFactorAuthKey": app.key, "password": PASSWORD, "twoFactorCode": app.code(server)}
    me = await server.call("PATCH", "/me/enableTwoFactorAuth", body)
    assert me["twoFactorAuthEnabled"] is True
    app.recovery_codes = me["recoveryCodes"]
    return app


async def log_in(server: Server, code: str | None, status: int = 200) -> Any:
    body = LOGIN if code is None else LOGIN | {"twoFactorCode": code}
    return await server.call("POST", "/auth/user", body, token="", status=status)


async def test_a_key_is_enabled_with_one_of_its_codes(server: Server) -> None:
    assert (await server.call("GET", "/me"))["twoFactorAuthEnabled"] is False
    made = await server.call("PATCH", "/me/generateTwoFactorAuth")
    uri = pyotp.parse_uri(made["keyUri"])
    assert (uri.secret, uri.name, uri.issuer) == (made["key"], EMAIL, "Trunkline")
    app = App(made["key"], [])
    body = {"password": PASSWORD, "twoFactorCode": app.code(server)}
    cases: list[tuple[dict[str, str], int, str]] = [
        (body | {"password": "Wrong-horse-88"}, 401, "password: "),
        (body | {"twoFactorCode": app.code(server, 5)}, 401, "twoFactorCode: is wrong"),
        (body | {"twoFactorAuthKey": "A" * 52}, 400, "twoFactorAuthKey: is not the key"),
        (body | {"twoFactorAuthKey": "A" * 51}, 400, "twoFactorAuthKey: "),
    ]
    for wrong, status, sentence in cases:
        answer = await server.call("PATCH", "/me/enableTwoFactorAuth", wrong, status=status)
        assert answer["message"].startswith(sentence), answer
    await log_in(server, None)
    # An earlier key is no longer the one.
    newer = App((await server.call("PATCH", "/me/generateTwoFactorAuth"))["key"], [])
    await server.call("PATCH", "/me/enableTwoFactorAuth", body, status=401)
    server.move_clock(900)
    body["twoFactorCode"] = newer.code(server)
    answer = await server.call("PATCH", "/me/enableTwoFactorAuth", body, status=400)
    assert "too old" in answer["message"]

    app = await enabled(server)
    assert len(set(app.recovery_codes)) == 10
    assert "recoveryCodes" not in await server.call("GET", "/me")
    for operation, sent in (("generateTwoFactorAuth", None), ("enableTwoFactorAuth", body)):
        answer = await server.call("PATCH", f"/me/{operation}", sent, status=400)
        assert "enabled already" in answer["message"]
    await server.call("GET", "/me", status=200)  # tokens go on


async def test_a_code_is_accepted_once(start_server: StartServer) -> None:
    """Not a second time: not at once, not after a restart, and not with a clock that was set back."""
    async with start_server() as server:
        app = await enabled(server)
        # A step begins now, so that none ends while the codes below are used.
        server.move_clock(10 * STEP_S - server.system.clock.wall_ms() / 1000 % STEP_S)
        assert (await log_in(server, None, 401))["message"].startswith("twoFactorCode: is missing")
        await log_in(server, app.code(server, 2), 401)
        await log_in(server, app.code(server, -2), 401)
        code, late, early = app.code(server), app.code(server, -1), app.code(server, 1)
        await log_in(server, f"{code[:3]} {code[3:]}")
        for used in (code, code):
            await log_in(server, used, 401)
        # Each code is for one step; the one before it and the one after it were not used.
        await log_in(server, early)
        await log_in(server, late)
        server.move_clock(60)
        recovery = app.recovery_codes[0]
        await log_in(server, recovery.upper().replace("-", ""))
        await log_in(server, recovery, 401)
        moved_s = server.system.clock.wall_ms() / 1000
    async with start_server(login={"twoFactorCode": app.recovery_codes[2]}) as server:
        server.move_clock(moved_s - server.system.clock.wall_ms() / 1000 - 60)
        for used in (code, early, late, recovery):
            await log_in(server, used, 401)
        server.move_clock(61)
        await log_in(server, app.recovery_codes[1])


async def test_codes_are_guessed_no_faster_than_passwords(start_server: StartServer) -> None:
    async with start_server(limits={"login_per_account": {"calls": 3, "window_s": 60}}) as server:
        app = await enabled(server)
        wait_for_codes(server)
        for _ in range(3):
            await log_in(server, "abcd-efgh-ijkl-mnop", 401)
        await log_in(server, app.code(server), 429)
        disable = {"password": PASSWORD, "twoFactorCode": app.code(server)}
        await server.call("PATCH", "/me/disableTwoFactorAuth", disable, status=429)
        server.move_clock(61)
        await log_in(server, app.code(server))


async def test_one_code_permits_one_of_many_calls_at_once(server: Server) -> None:
    app = await enabled(server)
    wait_for_codes(server)
    statuses: list[int] = []
    body = LOGIN | {"twoFactorCode": app.code(server)}

    async def attempt(client: httpx.AsyncClient) -> None:
        statuses.append((await client.post("/auth/user", json=body)).status_code)

    with trio.fail_after(PATIENCE_S):
        async with server.client("") as client, trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(attempt, client)
    assert sorted(statuses) == [200, 401, 401, 401, 401]


async def test_every_call_with_the_password_needs_a_code(server: Server) -> None:
    app = await enabled(server)
    wait_for_codes(server)
    await server_users.add_user(server.root, "other@example.com", PASSWORD)
    credentials = {"password": PASSWORD}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("PATCH", "/me", {"email": EMAIL, "currentCredentials": credentials}),
        ("PATCH", "/me/changePassword", {**credentials, "newPassword": PASSWORD}),
        ("PATCH", "/me/disableTwoFactorAuth", {**credentials}),
        ("POST", "/me/delete", {"email": EMAIL, **credentials}),
    ]
    for method, path, body in calls:
        where = "currentCredentials.twoFactorCode" if path == "/me" else "twoFactorCode"
        missing = 400 if "disable" in path else 401
        answer = await server.call(method, path, body, status=missing)
        assert answer["message"].startswith(f"{where}: is missing"), answer
        holder = body.get("currentCredentials", body)
        holder["twoFactorCode"] = "000000"
        await server.call(method, path, body, status=401)
        server.move_clock(61)  # the failed attempts
        if path != "/me/delete":
            holder["twoFactorCode"] = app.code(server)
            await server.call(method, path, body, status=200)
            server.move_clock(61)
        if "disable" in path:
            app = await enabled(server)
    await server.call("POST", "/me/delete", body | {"twoFactorCode": app.recovery_codes[0]}, status=200)
    await log_in(server, None, 401)


async def test_the_key_is_encrypted_and_an_operator_opens_a_lost_one(server: Server, tmp_path: Path) -> None:
    app = await enabled(server)
    await log_in(server, None, 401)
    kept = all_bytes(tmp_path)
    assert MARK in kept
    for secret in (app.key, *app.recovery_codes, *(code.replace("-", "") for code in app.recovery_codes)):
        assert secret.encode() not in kept
    await server_users.reset_two_factor(server.root, EMAIL)
    await log_in(server, None)
    assert (await server.call("GET", "/me"))["twoFactorAuthEnabled"] is False
    answer = await server.call(
        "PATCH", "/me/disableTwoFactorAuth", {"password": PASSWORD, "twoFactorCode": "1"}, status=400
    )
    assert "is not enabled" in answer["message"]
    await server.stop()
    assert verify(Path(server.settings.data_dir)).ok


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
