"""Logins and tokens: those that expire, that are ended, renewed, made and deleted.

Owns who must get in and who must not.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import trio

from tests.e2e.conftest import EMAIL, PASSWORD
from tests.soak.house import Part

TTL_S: Final = 4
TOKENS_MAX: Final = 5


class People(Part):
    """The owner logs in again and again, and makes API tokens of the application."""

    pause_s = 10.0

    async def prepare(self) -> None:
        self._tokens: deque[tuple[str, str]] = deque()
        """The path and the text of each API token."""

    async def step(self) -> None:
        step = self.random.choice((self._log_in, self._log_out, self._make_token))
        await step()

    async def _log_in(self) -> None:
        """With a token that expires soon."""
        token = await self._token(tokenTTL=TTL_S)
        began_s = trio.current_time()
        await self._gets(token, "/me", 200)
        await trio.sleep_until(began_s + TTL_S + 1)
        await self._gets(token, "/me", 401)

    async def _log_out(self) -> None:
        token = await self._token()
        async with self.calls.server.client(token) as client:
            with self.calls.timed("token renewed"):
                answer = await client.get("/me/refreshToken")
            renewed = answer.json()["token"]
            await client.post("/me/logout")
        for ended in (token, renewed):
            await self._gets(ended, "/me", 401)

    async def _token(self, **fields: int) -> str:
        body = {"email": EMAIL, "password": PASSWORD, **fields}
        answer = await self.calls.call("login of a user", "POST", "/auth/user", body)
        return str(answer["token"])

    async def _make_token(self) -> None:
        body = {"name": "t", "scope": ["all.Application.read"]}
        made = await self.calls.call("API token created", "POST", f"{self.path}/tokens", body)
        self._tokens.append((f"{self.path}/tokens/{made['id']}", made["token"]))
        if len(self._tokens) > TOKENS_MAX:
            path, token = self._tokens.popleft()
            await self._gets(token, self.path, 200)
            await self.calls.call("API token deleted", "DELETE", path)
            await self._gets(token, self.path, 401)

    async def _gets(self, token: str, path: str, status: int) -> None:
        async with self.calls.server.client(token) as client:
            response = await client.get(path)
        assert response.status_code == status, (path, response.status_code, response.text)
        self.calls.read_back += 1

    async def look(self) -> int:
        for _, token in self._tokens:
            await self._gets(token, self.path, 200)
        return len(self._tokens)
