"""The experience of a new application, through the API: short ways to make, change and read its records."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import Server

NO_ID = "0123456789abcdef01234567"

Json = dict[str, Any]


class Experience:
    """The experience of a new application."""

    def __init__(self, server: Server, application: str) -> None:
        self.server = server
        self.application = application
        self.path = f"{application}/experience"

    async def make(self, nouns: str, **body: Any) -> Json:
        made: Json = await self.server.call("POST", f"{self.path}/{nouns}", body, status=201)
        return made

    async def get(self, place: str) -> Json:
        found: Json = await self.server.call("GET", f"{self.path}/{place}")
        return found

    async def ids(self, place: str) -> list[str]:
        return [each["id"] for each in (await self.get(place))["items"]]

    async def patch(self, place: str, **body: Any) -> Json:
        changed: Json = await self.server.call("PATCH", f"{self.path}/{place}", body)
        return changed

    async def delete(self, place: str) -> None:
        assert await self.server.call("DELETE", f"{self.path}/{place}") == {"success": True}

    async def refused(self, method: str, place: str, body: Any = None, status: int = 400) -> str:
        """The sentence of a refusal; nothing of the call is stored."""
        refusal = await self.server.call(method, f"{self.path}/{place}", body, status=status)
        return str(refusal["message"])


async def new_experience(server: Server) -> Experience:
    """The experience of a new application."""
    return Experience(server, await server.application())
