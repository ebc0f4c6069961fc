"""A session signs in, creates, pages, obeys Retry-After, and repeats only safe calls."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.patience import PATIENCE_S
from trunkline.bench.errors import ApiError, BenchError, ConnectionBroken, NotFound, TryLater, Unauthorized
from trunkline.bench.framing import Response
from trunkline.bench.history import History, to_iso, to_ms
from trunkline.bench.session import PAGE_ITEMS, Session, refusal


async def signed_in(api: Any) -> Session:
    session = Session(api.url)
    await session.login(api.email, api.password)
    return session


async def test_login_and_a_wrong_password(fake_api: Any) -> None:
    session = Session(fake_api.url)
    assert await session.login(fake_api.email, fake_api.password) == "t0ken"
    with pytest.raises(Unauthorized, match="Wrong e-mail") as caught:
        await session.login(fake_api.email, "guess")
    assert (caught.value.status, caught.value.type) == (401, "Unauthorized")
    assert session.token is None


async def test_devices_are_created_in_order_and_listed_page_by_page(fake_api: Any) -> None:
    session = await signed_in(fake_api)
    application = await session.create_application("a")
    names = [f"d{n}" for n in range(PAGE_ITEMS + 5)]
    ids = await session.create_devices(application, [{"name": name} for name in names])
    assert [fake_api.devices[one]["name"] for one in ids] == names
    found = await session.find_devices(application)
    assert {name: record["id"] for name, record in found.items()} == dict(zip(names, ids, strict=True))
    assert await session.find_application("a") == application
    assert await session.find_application("b") is None


async def test_a_refusal_for_now_is_waited_out(fake_api: Any) -> None:
    session = await signed_in(fake_api)
    application = await session.create_application("a")
    (device,) = await session.create_devices(application, [{"name": "d"}])
    fake_api.answer_state = lambda device, states, number: (
        fake_api.refusal(429, "TooManyRequests", "Later.", retry_after="0") if number < 3 else None
    )
    path = f"/applications/{application}/devices/{device}/state"
    assert await session.call("POST", path, {"time": 5, "data": {}}) == {"success": True}
    assert fake_api.state_posts == 3
    fake_api.answer_state = lambda device, states, number: fake_api.refusal(
        503, "Overloaded", "Later.", retry_after="90"
    )
    with pytest.raises(TryLater) as caught:
        await session.call("POST", path, {"time": 5, "data": {}})
    assert caught.value.retry_after_s == 90


async def test_a_read_is_repeated_and_a_write_is_not(fake_api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.bench.session.RETRY_PAUSE_S", 0.0)
    session = await signed_in(fake_api)
    application = await session.create_application("a")
    cut = iter([True, True, False, True])
    fake_api.cut = lambda method, path, number: next(cut)
    assert await session.find_devices(application) == {}
    with pytest.raises(ConnectionBroken):
        await session.create_application("b")
    assert list(fake_api.applications.values()) == ["a", "b"]


async def test_an_unknown_device_is_not_found(fake_api: Any) -> None:
    session = await signed_in(fake_api)
    with pytest.raises(NotFound):
        await session.call("GET", "/applications/" + "f" * 24)


def test_an_error_body_that_is_not_the_apis_is_told_as_it_is() -> None:
    error = refusal(Response(502, b"HTTP/1.1 502 Bad Gateway\r\nretry-after: soon", b"<html>proxy</html>"))
    assert isinstance(error, ApiError)
    assert (error.status, error.type, error.message) == (502, "Unknown", "<html>proxy</html>")
    assert error.retry_after_s is None


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6, 7])
async def test_history_gives_every_entry_once(fake_api: Any, inclusive: bool, count: int) -> None:
    fake_api.start_is_inclusive = inclusive
    session = await signed_in(fake_api)
    application = await session.create_application("a")
    (device,) = await session.create_devices(application, [{"name": "d"}])
    fake_api.states[device] = {100 + n: {"n": n} for n in range(count)} | {10: {"n": -1}, 200: {"n": -2}}
    history = History(session, application, device, first_ms=100, last_ms=150, limit=3)
    with trio.fail_after(PATIENCE_S):
        entries = [entry async for page in history for entry in page]
    assert entries == [(100 + n, {"n": n}) for n in range(count)]


async def test_a_history_that_does_not_advance_is_an_error(fake_api: Any) -> None:
    session = await signed_in(fake_api)
    application = await session.create_application("a")
    (device,) = await session.create_devices(application, [{"name": "d"}])
    stuck = [{"time": "1970-01-01T00:00:00.100Z", "data": {"n": 1}}]
    fake_api.get_states = lambda device, query: (200, stuck, {})
    history = History(session, application, device, first_ms=100, last_ms=150, limit=1)
    with trio.fail_after(PATIENCE_S), pytest.raises(BenchError, match="does not advance"):
        async for _ in history:
            pass


def test_times_of_the_api() -> None:
    assert to_ms("2010-01-01T00:00:00.123Z") == 1_262_304_000_123
    assert to_ms("2010-01-01T01:00:00.123+01:00") == 1_262_304_000_123
    assert to_ms({"$date": "2010-01-01T00:00:00Z"}) == 1_262_304_000_000
    assert to_ms(1_262_304_000_123) == 1_262_304_000_123
    assert to_iso(1_262_304_000_123) == "2010-01-01T00:00:00.123Z"
    with pytest.raises(BenchError, match="yesterday"):
        to_ms("yesterday")
