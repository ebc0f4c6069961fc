"""Endpoints that answer with a stream of topics: who hears what, for how long, and how many are open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from tests.e2e.conftest import Server
from tests.e2e.experience_browser import Browser, browser, error, user
from tests.e2e.experiences import Experience, Json, new_experience
from tests.e2e.sse_client import EventReader, until
from tests.e2e.test_experience_workflows import answers, endpoint, reply, workflow
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.subscription import Ending
from trunkline.actors.core.values.timestamps import iso
from trunkline.http.experiences import topic_answer

HOST = {"Host": "farm.localhost:8080"}


@pytest.fixture
async def exp(server: Server) -> Experience:
    made = await new_experience(server)
    await made.make("slugs", slug="farm")
    return made


@asynccontextmanager
async def streaming(exp: Experience, path: str = "/", **headers: str) -> AsyncIterator[EventReader]:
    """An open answer of an endpoint."""
    async with (
        httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client,
        client.stream("GET", exp.server.url + path, headers=HOST | headers) as response,
    ):
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield EventReader(response)


async def publish(exp: Experience, topic: str, message: str) -> None:
    body = {"topic": topic, "message": message}
    await exp.server.call("POST", f"{exp.application}/mqttPublishMessage", body)


async def heard(stream: EventReader) -> tuple[str, str]:
    event = await stream.event()
    assert event is not None
    assert event.name == "mqttMessage"
    return event.data["topic"], event.data["message"]


async def device(exp: Experience) -> tuple[str, str]:
    """The id of a device with a temperature, and its path."""
    body = {"name": "scale", "attributes": [{"name": "temp", "dataType": "number"}]}
    made = await exp.server.call("POST", f"{exp.application}/devices", body, status=201)
    return made["id"], f"{exp.application}/devices/{made['id']}"


async def nothing_open(exp: Experience) -> None:
    await until(lambda: len(exp.server.system.streams) == 0)


async def test_an_endpoint_streams_topics_of_the_application_and_of_devices(exp: Experience) -> None:
    id, path = await device(exp)
    topics = ["barn/{{data.query.level}}", f"losant/{id}/state", f"trunkline/{id}/command"]
    await answers(exp, replyType="mqtt", mqttTopicsTemplate=topics)
    async with streaming(exp, "/?level=%2B") as stream:
        await publish(exp, "stable/door", "not asked for")
        await publish(exp, "barn/door", "öffnen")
        assert await heard(stream) == ("barn/door", "öffnen")
        await exp.server.call("POST", f"{path}/state", {"data": {"temp": 21.5}})
        topic, message = await heard(stream)
        assert (topic, msgspec.json.decode(message)["data"]) == (topics[1], {"temp": 21.5})
        await exp.server.call("POST", f"{path}/command", {"name": "tare"})
        topic, message = await heard(stream)
        assert (topic, msgspec.json.decode(message)["name"]) == (topics[2], "tare")
    await nothing_open(exp)


@pytest.mark.parametrize(
    "config",
    [
        {"mqttTopicsPath": "data.query.topic"},
        {"mqttTopicsTemplate": "{{jsonEncode data.query.topic}}"},
        {"mqttTopicsTemplate": '["a/b", "{{data.query.topic.1}}"]'},
    ],
)
async def test_topics_come_from_a_path_or_a_template(exp: Experience, config: Json) -> None:
    await answers(exp, replyType="mqtt", **config)
    async with streaming(exp, "/?topic=a/b&topic=c") as stream:
        for topic in ("a/b", "c"):
            await publish(exp, topic, "x")
            assert await heard(stream) == (topic, "x")


async def test_an_answer_has_the_headers_and_cookies_of_the_reply(exp: Experience) -> None:
    at = await answers(
        exp,
        replyType="mqtt",
        mqttTopicsTemplate=["a"],
        responseCodeTemplate="404",
        headerInfo=[
            {"keyTemplate": "Content-Type", "valueTemplate": "text/html"},
            {"keyTemplate": "X-Odd", "valueTemplate": "1"},
        ],
        cookieInfo=[{"nameTemplate": "a", "valueTemplate": "b"}],
    )
    head = await at.send("HEAD", "/")
    assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (head.headers["x-odd"], head.headers["set-cookie"]) == ("1", "a=b; Path=/")
    assert "content-length" not in head.headers
    await nothing_open(exp)


@pytest.mark.parametrize(
    "config",
    [
        {"mqttTopicsTemplate": "barn/door"},
        {"mqttTopicsTemplate": "[7]"},
        {"mqttTopicsTemplate": "[]"},
        {"mqttTopicsTemplate": ["a"] * 11},
        {"mqttTopicsTemplate": ["a/#/b"]},
        {"mqttTopicsTemplate": ["losant/+/state"]},
        {"mqttTopicsTemplate": ["$SYS/a"]},
        {"mqttTopicsTemplate": ["a" * 231]},
        {"mqttTopicsPath": "data.nowhere"},
    ],
)
async def test_topics_that_cannot_be_streamed_fail_the_run(exp: Experience, config: Json) -> None:
    at = await answers(exp, replyType="mqtt", **config)
    assert (await at.get("/")).status_code == 500
    assert not exp.server.system.streams


async def test_a_device_of_another_application_is_not_streamed(exp: Experience) -> None:
    id, _ = await device(await new_experience(exp.server))
    at = await answers(exp, replyType="mqtt", mqttTopicsTemplate=["a", f"losant/{id}/state"])
    answer = await at.get("/")
    assert (answer.status_code, error(answer)) == (404, f"There is no device {id} here.")
    assert not exp.server.system.streams


async def members_only(exp: Experience, **access: Any) -> Browser:
    at_id = await endpoint(exp, access="authenticated", **access)
    await workflow(exp, at_id, reply(replyType="mqtt", mqttTopicsTemplate=["a"]))
    return browser(exp)


async def test_an_answer_ends_before_an_event_that_its_visitor_may_not_see(exp: Experience) -> None:
    id, token = await user(exp)
    at = await members_only(exp)
    assert (await at.get("/")).status_code == 401
    async with streaming(exp, authorization=token) as stream:
        await publish(exp, "a", "for members")
        assert await heard(stream) == ("a", "for members")
        await exp.delete(f"users/{id}")
        await publish(exp, "a", "not any more")
        assert await stream.event() is None
    await nothing_open(exp)


async def test_an_answer_ends_with_its_endpoint(exp: Experience) -> None:
    at_id = await endpoint(exp)
    await workflow(exp, at_id, reply(replyType="mqtt", mqttTopicsTemplate=["a"]))
    async with streaming(exp) as stream:
        await exp.patch(f"endpoints/{at_id}", enabled=False)
        await publish(exp, "a", "x")
        assert await stream.event() is None


async def test_a_silent_answer_is_checked_too(exp: Experience, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_answer, "CHECK_S", 0.01)
    _, token = await user(exp)
    await members_only(exp)
    async with streaming(exp, authorization=token) as stream:
        later = iso(exp.server.system.clock.wall_ms() + 1)
        await exp.server.call("PATCH", exp.application, {"expUserTokenCutoff": later})
        assert await stream.event() is None


async def test_an_answer_ends_when_its_visitor_loses_the_device(
    exp: Experience, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_answer, "CHECK_S", 0.01)
    id, token = await user(exp)
    device_id, path = await device(exp)
    group = await exp.make("groups", name="crew", experienceUserIds=[id], deviceIds=[device_id])
    access = {"access": "device", "deviceIdTemplate": "{{request.params.id}}"}
    at_id = await endpoint(exp, "/{id}", **access)
    topics = ["losant/{{experience.device.id}}/state"]
    await workflow(exp, at_id, reply(replyType="mqtt", mqttTopicsTemplate=topics))
    async with streaming(exp, f"/{device_id}", authorization=token) as stream:
        await exp.server.call("POST", f"{path}/state", {"data": {"temp": 1}})
        assert (await heard(stream))[0] == f"losant/{device_id}/state"
        await exp.patch(f"groups/{group['id']}", deviceIds=[])
        assert await stream.event() is None


async def test_an_answer_ends_after_its_time(exp: Experience, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_answer, "STREAM_S_MAX", 0.01)
    await answers(exp, replyType="mqtt", mqttTopicsTemplate=["a"])
    async with streaming(exp) as stream:
        assert await stream.event() is None
    await nothing_open(exp)


async def test_an_answer_ends_when_the_server_stops(exp: Experience) -> None:
    await answers(exp, replyType="mqtt", mqttTopicsTemplate=["a", "b"])
    async with streaming(exp) as stream:
        await publish(exp, "b", "x")
        assert await heard(stream) == ("b", "x")
        exp.server.system.streams.end_all(Ending.DRAINING)
        assert await stream.event() is None
    await nothing_open(exp)


async def test_the_open_answers_of_an_experience_are_bounded(start_server: Any) -> None:
    async with start_server(limits={"experience_streams_max": 1}) as server:
        exp = await new_experience(server)
        await exp.make("slugs", slug="farm")
        at = await answers(exp, replyType="mqtt", mqttTopicsTemplate=["a"])
        async with streaming(exp):
            answer = await at.get("/")
            assert answer.status_code == 503
            assert error(answer).startswith("1 streams of this experience are open")
        await nothing_open(exp)
        async with streaming(exp) as stream:
            await publish(exp, "a", "x")
            assert await heard(stream) == ("a", "x")
