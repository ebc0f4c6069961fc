"""Who is charged for the hash of a password: the address at logins, and the owner for the users of an application."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tests.e2e.conftest import EMAIL, PASSWORD, Server
from trunkline.actors.people.accounts import passwords

ADDRESS = "10.0.0.9"


async def log_in(server: Server, email: str = EMAIL, password: str = PASSWORD) -> int:
    async with server.client("") as client:
        body = {"email": email, "password": password}
        answer = await client.post("/auth/user", json=body, headers={"X-Forwarded-For": ADDRESS})
        return answer.status_code


async def test_log_ins_are_charged_to_their_address_and_other_hashes_to_the_owner(start_server: Any) -> None:
    async with start_server(trust_forwarded_for=True, limits={"password_threads_max": 1}) as server:
        shares = passwords._turns.get().shares
        user = bytes.fromhex((await server.call("GET", "/me"))["id"])
        charged: list[Hashable] = []
        take = shares.take

        async def noted(owner: Hashable, places: int = 1) -> None:
            charged.append(owner)
            await take(owner, places)

        shares.take = noted  # type: ignore[method-assign]
        assert await log_in(server) == 200
        assert await log_in(server, "nobody@example.com") == 401
        assert charged == [ADDRESS, ADDRESS], "of a known account, and of one that there is not"
        charged.clear()
        change = {"firstName": "Ada", "email": EMAIL, "currentCredentials": {"password": PASSWORD}}
        await server.call("PATCH", "/me", change, headers={"X-Forwarded-For": ADDRESS})
        made = {"email": "ada@example.com", "password": PASSWORD, "firstName": "A", "lastName": "B"}
        application = await server.application()
        await server.call("POST", f"{application}/experience/users", made)
        assert charged == [ADDRESS, user], "of somebody who may guess, and of an owner for a user of theirs"
