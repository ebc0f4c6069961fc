"""Topics on real sockets: who hears what is published, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.actors.house import ManualClock
from tests.e2e.conftest import Server
from tests.e2e.rows import api_token
from tests.e2e.sse_client import EventReader, until


@asynccontextmanager
async def listening(server: Server, application: str, filter: str) -> AsyncIterator[EventReader]:
    """An open stream of the topics that the filter selects."""
    async with (
        server.client() as client,
        client.stream("GET", f"{application}/mqttSubscriptionStream", params={"topic": filter}) as response,
    ):
        assert response.status_code == 200, await response.aread()
        yield EventReader(response)


async def publish(server: Server, application: str, topic: str, message: str, **more: Any) -> Any:
    body = {"topic": topic, "message": message}
    return await server.call("POST", f"{application}/mqttPublishMessage", body, **more)


async def heard(stream: EventReader, count: int) -> list[tuple[str, str]]:
    events = [await stream.event() for _ in range(count)]
    assert all(event is not None and event.name == "mqttMessage" for event in events)
    return [(event.data["topic"], event.data["message"]) for event in events if event is not None]


async def test_a_message_reaches_the_streams_whose_filters_select_its_topic(server: Server) -> None:
    application, other = await server.application(), await server.application()
    async with (
        listening(server, application, "barn/door") as exact,
        listening(server, application, "barn/+") as level,
        listening(server, application, "#") as everything,
        listening(server, other, "#") as elsewhere,
    ):
        assert (await publish(server, application, "barn/door", "öffnen")) == {"success": True}
        await publish(server, application, "barn/window", "")
        await publish(server, application, "barn/door/lock", "on")
        await publish(server, other, "barn/door", "other")
        await publish(server, application, "barn/door", "shut")
        assert await heard(exact, 2) == [("barn/door", "öffnen"), ("barn/door", "shut")]
        assert await heard(level, 3) == [("barn/door", "öffnen"), ("barn/window", ""), ("barn/door", "shut")]
        assert [topic for topic, _ in await heard(everything, 4)][2] == "barn/door/lock"
        assert await heard(elsewhere, 1) == [("barn/door", "other")]
    await until(lambda: len(server.system.streams) == 0)
    counts = await server.call("GET", f"{application}/payloadCounts")
    assert counts["mqttIn"] == {"total": 4}


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("losant/5/state", "topic: begins with losant/, which is reserved"),
        ("$SYS/load", "topic: begins with $, which is reserved"),
        ("barn/+", "topic: has + or #, which are for filters"),
        ("a\x00b", "topic: has the character U+0000"),
    ],
)
async def test_a_topic_that_does_not_fit_is_400(server: Server, topic: str, said: str) -> None:
    application = await server.application()
    refusal = await publish(server, application, topic, "x", status=400)
    assert refusal["message"].startswith(said)
    counts = await server.call("GET", f"{application}/payloadCounts")
    assert counts["mqttIn"] == {}


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("losant/%23", "topic: begins with losant/"),
        ("a/%23/b", "topic: # stands for all levels that follow"),
        ("a/b%2B", "topic: + and # stand for whole levels"),
        ("", "topic: "),
    ],
)
async def test_a_filter_that_does_not_fit_is_400(server: Server, filter: str, said: str) -> None:
    application = await server.application()
    path = f"{application}/mqttSubscriptionStream?topic={filter}"
    refusal = await server.call("GET", path, status=400)
    assert refusal["message"].startswith(said)
    assert len(server.system.streams) == 0


async def test_each_caller_may_publish_so_much(start_server: Any) -> None:
    async with start_server(clock=ManualClock()) as server:
        application = await server.application()
        token = await api_token(server, "/me", "application.mqttPublishMessage")
        for _ in range(30):
            await publish(server, application, "a", "x")
            await publish(server, application, "a", "x", token=token)
        refusal = await publish(server, application, "a", "x", status=429)
        assert refusal["type"] == "TooManyRequests"
        await publish(server, application, "a", "x", token=token, status=429)


async def test_the_deletion_of_the_application_ends_its_streams(server: Server) -> None:
    application = await server.application()
    async with listening(server, application, "#") as stream:
        await server.call("DELETE", application)
        assert await stream.event() is None
