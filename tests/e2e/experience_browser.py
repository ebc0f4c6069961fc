"""Requests to the hosts of an experience, as a browser sends them, and short ways to make what answers."""

from __future__ import annotations

from typing import Any

import httpx

from tests.e2e.conftest import Server
from tests.e2e.experiences import Experience
from tests.patience import PATIENCE_S
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.presentation.experience.tokens import ExperienceTokens

PASSWORD = "correct horse"


class Browser:
    """Sends requests to the host of an experience. It keeps no cookies and follows no redirections."""

    def __init__(self, server: Server, host: str) -> None:
        self._server = server
        self._host = host

    async def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Host": self._host, **more.pop("headers", {})}
        async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False, verify=False) as client:
            return await client.request(method, self._server.url + path, headers=headers, **more)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.send("GET", path, headers=headers)


def browser(exp: Experience, host: str = "farm.localhost:8080") -> Browser:
    return Browser(exp.server, host)


async def page(exp: Experience, name: str, body: str, **more: Any) -> str:
    made = await exp.make("views", name=name, viewType="page", body=body, **more)
    return str(made["id"])


async def static(exp: Experience, route: str, body: str, **more: Any) -> str:
    """An endpoint for GET that answers with a page; returns its id."""
    view = await page(exp, f"page of {route} {len(more)}", body)
    reply = {"type": "page", "value": view, **more.pop("reply", {})}
    made = await exp.make("endpoints", route=route, method="get", staticReply=reply, **more)
    return str(made["id"])


async def user(exp: Experience, email: str = "one@example.com", **more: Any) -> tuple[str, str]:
    """A user and a token."""
    id = str((await exp.make("users", email=email, password=PASSWORD, **more))["id"])
    return id, token_of(exp, id)


def token_of(exp: Experience, id: str) -> str:
    system = exp.server.system
    application = bytes.fromhex(exp.application.rpartition("/")[2])
    tokens = system.component(ExperienceTokens)
    return tokens.make_token(application, bytes.fromhex(id), now_ms=system.clock.wall_ms())


def error(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/json"
    return str(answer.json()["error"])


async def end_logins(exp: Experience, id: str) -> None:
    """End all logins of a user."""
    await exp.patch(f"users/{id}", tokenCutoff=iso(exp.server.system.clock.wall_ms() + 1))
