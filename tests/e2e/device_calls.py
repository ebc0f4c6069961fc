"""Calls for devices that many tests use."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import Server


def id_of(path: str) -> str:
    """The id at the end of a path."""
    return path.rpartition("/")[2]


async def names(server: Server, application: str, query: str = "", **kw: Any) -> list[str]:
    """The names of the devices that a list shows, in its order."""
    found = await server.call("GET", f"{application}/devices?{query}", **kw)
    return [device["name"] for device in found["items"]]
