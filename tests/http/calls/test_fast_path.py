"""The fast path and Quart send the same bytes for the same request.

Each request below is sent to every route of the fast path twice, for two equal devices: once with the fast path and
once with Quart only. The status line, the headers in their order, and the body must be identical, except for the date
and the ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from tests.http.both_paths import FAST_ROUTES, GOOD_BODIES, Twin, both_paths, request, without_own_fields
from tests.http.wire.byte_sessions import passes
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE


def chunked(twin: Twin, route: Route, body: bytes) -> bytes:
    head = request(twin, route, None, "Content-Type: application/json", "Transfer-Encoding: chunked")
    return head + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"


def variations(route: Route) -> Iterator[tuple[str, int, Any]]:
    """For each kind of request to a route: its name, the expected status, and a function that makes it."""
    good = GOOD_BODIES.get(route.operation)
    stranger = "0" * 24
    of_device = "{deviceId}" in route.path
    places = "devices" if of_device else "data-tables"

    def subject(twin: Twin) -> str:
        return (twin.device if of_device else twin.table).hex()

    def ask(name: str, status: int, **how: Any) -> tuple[str, int, Any]:
        body, fields = how.pop("body", good), how.pop("fields", ())

        def made(twin: Twin) -> bytes:
            given = {key: value(twin) if callable(value) else value for key, value in how.items()}
            return request(twin, route, body, *fields, **given)

        return name, status, made

    yield ask("good", route.ok)
    yield ask("again", route.ok)
    yield ask("connection: close", route.ok, fields=["Connection: close"])
    yield ask("no token", 401, token=None)
    yield ask("a token that is none", 401, token="nonsense")
    yield ask("a token signed by another", 401, token=lambda twin: twin.token()[:-2] + "xx")
    yield ask("an expired token", 401, token=lambda twin: twin.token(ttl_s=-1))
    yield ask("another scheme", 401, token=None, fields=["Authorization: Basic eDp5"])
    yield ask("two tokens", 401, fields=["Authorization: Bearer nonsense"])
    yield ask("no scope", 403, token=lambda twin: twin.token("device.get"))
    yield ask("a key that is not there", 401, token=lambda twin: twin.token(key=stranger))
    yield ask("none of this id", 404, path=lambda twin: twin.path(route).replace(subject(twin), stranger))
    yield ask(
        "no application of this id",
        404,
        path=lambda twin: twin.path(route).replace(twin.house.application.hex(), stranger),
    )
    yield ask("an id that is none", 400, path=lambda twin: twin.path(route).replace(subject(twin), "pump"))
    yield ask("a slash at the end", route.ok, path=lambda twin: twin.path(route) + "/")
    yield ask(
        "an escape in the path",
        route.ok,
        path=lambda twin: twin.path(route).replace(f"/{places}", f"/%64{places[1:]}"),
    )
    yield ask(
        "an escaped slash",
        route.ok,
        path=lambda twin: twin.path(route).replace(f"/{places}/", f"/{places}%2F"),
    )
    yield ask("two slashes", 404, path=lambda twin: twin.path(route).replace(f"/{places}", f"//{places}"))
    yield ask("a path beyond", 404, path=lambda twin: twin.path(route) + "/and/more")
    yield ask(
        "capitals in the path",
        404,
        path=lambda twin: twin.path(route).replace(f"/{places}", f"/{places.title()}"),
    )
    yield ask("an address as target", route.ok, path=lambda twin: "http://y" + twin.path(route))
    yield ask("an unknown parameter", 400, query="?colour=blue")
    yield ask("a query that is no text", 400, query="?colour=%ff")
    yield ask("an empty query", route.ok, query="?")
    yield ask("a field beyond ASCII", route.ok, fields=["X-Name: \u00e9"])
    known = {each.method for each in TABLE.routes if each.path == route.path}
    for method in sorted({"PUT", "PATCH", "DELETE"} - known):
        yield ask(method, 405, method=method)
    if good is None:
        yield ask("a body for GET", route.ok, body=b"unasked")
        yield ask("a body for GET that is too large", 413, body=b"x" * 5000)
        yield ask("an entity tag", route.ok, fields=['If-None-Match: "x"'])
        return
    yield ask("no JSON", 400, body=b"{")
    yield ask("JSON and more", 400, body=good + b"}")
    yield ask("no object", 400, body=b'"text"')
    yield ask("no text", 400, body=b'{"\xff":1}')
    yield ask("nested too deeply", 400, body=b"[" * 2000)
    yield ask("an unknown field", 400, body=b'{"colour":"blue"}')
    yield ask("an empty body", 400, body=b"")
    yield ask("an empty body without a content type", 400, body=b"", content_type=None)
    yield ask("another content type", 415, content_type="text/plain")
    yield ask("no content type", 415, content_type=None)
    yield ask("a compressed body", 415, fields=["Content-Encoding: gzip"])
    yield ask("a content type with a parameter", route.ok, content_type="Application/JSON; charset=utf-8")
    yield ask("too large", 413, body=b"x" * 5000)
    yield ask("too large, asked first", 413, body=b"x" * 5000, fields=["Expect: 100-continue"])
    yield ask("as large as it may be", route.ok, body=good + b" " * (4096 - len(good)))
    yield ask("asked first", route.ok, fields=["Expect: 100-continue"])
    yield "chunked", route.ok, lambda twin: chunked(twin, route, good)
    yield "too large in chunks", 413, lambda twin: chunked(twin, route, b"x" * 5000)


def test_every_fast_route_that_takes_a_body_has_one_here() -> None:
    assert {name for name, route in FAST_ROUTES.items() if route.body is not None} == GOOD_BODIES.keys()


@pytest.mark.parametrize("engine", ["fast", "stock"])
@pytest.mark.parametrize("operation", FAST_ROUTES)
async def test_both_paths_send_the_same_bytes(tmp_path: Path, operation: str, engine: str) -> None:
    route = FAST_ROUTES[operation]
    wrong = {}
    async with both_paths(tmp_path / "data", engine) as paths:
        for name, status, made in variations(route):
            if engine == "stock" and name == "an address as target":
                continue  # the stock engine leaves it to the fast path, which is always in front of Quart
            answers = [await twin.ask(made(twin), method=route.method) for twin in paths]
            if answers[0] != answers[1] or answers[0].split(b" ")[1] != b"%d" % status:
                wrong[name] = (status, *answers)
    assert wrong == {}


@pytest.mark.parametrize("engine", ["fast", "stock"])
@pytest.mark.parametrize("operation", sorted(name for name in GOOD_BODIES if FAST_ROUTES[name].throttle))
async def test_both_paths_refuse_a_throttled_call_in_the_same_way(
    tmp_path: Path, operation: str, engine: str
) -> None:
    route = FAST_ROUTES[operation]
    assert route.throttle is not None
    limits = {route.throttle: {"calls": 3, "window_s": 15}}
    async with both_paths(tmp_path / "data", engine, limits) as paths:

        async def ask() -> bytes:
            return await paths.compare(
                lambda twin: request(twin, route, GOOD_BODIES[operation]), method="POST"
            )

        for left in (2, 1, 0):
            assert b";r=%d;" % left in await ask()
        refused = await ask()
        assert refused.startswith(b"HTTP/1.1 429 ")
        assert b"\r\nretry-after: 15\r\n" in refused
        paths.fast.house.clock.pass_s(15)
        assert (await ask()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("operation", [name for name, route in FAST_ROUTES.items() if route.method == "GET"])
async def test_head_has_the_head_of_get(tmp_path: Path, operation: str) -> None:
    """HEAD always goes through Quart; its response is still that of GET."""
    route = FAST_ROUTES[operation]
    async with both_paths(tmp_path / "data") as paths:
        send = FAST_ROUTES["device.sendState"]
        await paths.compare(lambda twin: request(twin, send, b'{"data":{"a":1},"time":1000}'), method="POST")
        get = await paths.compare(lambda twin: request(twin, route), method="GET")
        head = await paths.compare(lambda twin: request(twin, route, method="HEAD"), method="HEAD")
        assert get.startswith(head)
        assert get.partition(b"\r\n\r\n")[2] not in (b"", b"[]", b"{}")


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PROPFIND"])
async def test_methods_of_no_route_are_refused_in_the_same_way(tmp_path: Path, method: str) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for route in FAST_ROUTES.values():
            answer = await paths.compare(lambda twin, r=route: request(twin, r, method=method), method=method)
            assert answer.startswith(b"HTTP/1.1 405 "), answer
            assert b"\r\nallow: " in answer


async def test_an_http_1_0_client_is_answered_in_the_same_way(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for route in FAST_ROUTES.values():
            for fields in ([], ["Connection: keep-alive"]):
                answer = await paths.compare(
                    lambda twin, r=route, f=fields: request(
                        twin, r, GOOD_BODIES.get(r.operation), *f
                    ).replace(b"HTTP/1.1", b"HTTP/1.0"),
                    method=route.method,
                )
                assert answer.startswith(b"HTTP/1.1 %d " % route.ok)


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_a_bug_is_answered_in_the_same_way(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch, log: list[dict[str, Any]]
) -> None:
    async with both_paths(tmp_path / "data", engine) as paths:

        async def broken(*_: Any) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(type(paths.fast.dispatcher), "_execute", broken)
        for route in FAST_ROUTES.values():
            body = GOOD_BODIES.get(route.operation)
            answer = await paths.compare(
                lambda twin, r=route, b=body: request(twin, r, b), method=route.method
            )
            assert answer.startswith(b"HTTP/1.1 500 ")
            assert b"a bug" not in answer
    assert {entry["event"] for entry in log} == {"call failed"}


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize(
    ("forwarded", "admitted"),
    [
        ([], False),
        (["10.1.2.3"], True),
        (["10.1.2.3:4001"], True),
        (["10.1.2.3, 192.0.2.1"], False),
        (["192.0.2.1, 10.1.2.3"], True),
    ],
)
async def test_both_paths_see_the_same_address(
    tmp_path: Path, trust: bool, forwarded: list[str], admitted: bool
) -> None:
    """The key of the token is valid for one network only."""
    key = {"address_filter_type": "whitelist", "addresses": ["10.1.0.0/16"]}
    async with both_paths(tmp_path / "data", key=key, trust_forwarded_for=trust) as paths:
        for route in (each for each in FAST_ROUTES.values() if each.device != "no"):
            fields = [f"X-Forwarded-For: {value}" for value in forwarded]
            answer = await paths.compare(
                lambda twin, r=route, f=fields: request(twin, r, GOOD_BODIES.get(r.operation), *f),
                method=route.method,
            )
            expected = b"200" if trust and admitted else b"403"
            assert answer.split(b" ")[1] == expected


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_a_body_that_does_not_arrive_is_refused_in_the_same_way(
    tmp_path: Path, engine: str, mock_clock: MockClock
) -> None:
    async with both_paths(tmp_path / "data", engine, {"body_timeout_s": 30}) as paths:
        for route in FAST_ROUTES.values():
            body = GOOD_BODIES.get(route.operation)
            if body is None:
                continue
            answers = []
            for twin in paths:
                peer = await twin.wired.connect()
                await peer.send(request(twin, route, body)[:-1])
                await passes(mock_clock, 30)
                answers.append(await peer.answer())
                await peer.close()
            fast, quart = answers
            assert fast is not None
            assert quart is not None
            assert fast.error() == (408, "RequestTimeout")
            assert (without_own_fields(fast.head), fast.body) == (without_own_fields(quart.head), quart.body)


async def test_both_paths_are_counted_together(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for route in FAST_ROUTES.values():
            body = GOOD_BODIES.get(route.operation)
            await paths.compare(lambda twin, r=route, b=body: request(twin, r, b), method=route.method)
        assert paths.fast.dispatcher.statistics.answered == {
            (operation, route.ok): 2 for operation, route in FAST_ROUTES.items()
        }


async def test_a_body_announced_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    """The stock engine asks for the body nevertheless, before any application sees the request."""
    route = FAST_ROUTES["device.sendState"]
    async with both_paths(tmp_path / "data") as paths:
        for twin in paths:
            peer = await twin.wired.connect()
            await peer.send(request(twin, route, b"x" * 5000, "Expect: 100-continue")[:-5000])
            head = await peer.head()
            assert head is not None
            assert head.startswith(b"HTTP/1.1 413 "), "and not 100"


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_a_body_without_end_is_refused_at_its_bound(tmp_path: Path, engine: str) -> None:
    route = FAST_ROUTES["device.sendState"]
    async with both_paths(tmp_path / "data", engine) as paths:
        for twin in paths:
            peer = await twin.wired.connect()
            head = request(twin, route, None, "Content-Type: application/json", "Transfer-Encoding: chunked")
            await peer.send(head, b"ffffff\r\n", b"x" * 10_000)
            answer = await peer.answer()
            assert answer is not None
            assert answer.error() == (413, "PayloadTooLarge")
            await peer.close()


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_an_address_as_target_finds_its_route(tmp_path: Path, engine: str) -> None:
    """RFC 9112, 3.2.2: a server must accept it. The stock engine leaves it to the application."""
    async with both_paths(tmp_path / "data", engine) as paths:
        for operation in ("device.getState", "device.getCommand"):
            (route,) = [route for route in TABLE.routes if route.operation == operation]
            target = "http://x" + paths.fast.path(route)
            answer = await paths.fast.ask(request(paths.fast, route, path=target), method="GET")
            assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_path_with_a_line_break_is_not_found(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for path in ("/%0d%0a", "/a%0ab", "/applications%0a"):
            for method in ("GET", "POST", "DELETE"):
                data = f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
                for twin in paths:
                    answer = await twin.wired.ask(data)
                    assert answer.error() == (404, "NotFound")
                    assert "There is nothing at" in answer.json()["message"]


# Request ids.


async def request_id(twin: Twin, body: bytes, *fields: str) -> tuple[int, bytes | None]:
    """The status and the request id of the answer to a state whose head has come before."""
    peer = await twin.wired.connect()
    for _ in range(4):
        answer = await peer.exchange(request(twin, FAST_ROUTES["device.sendState"], body, *fields))
    await peer.close()
    return answer.status, answer.header(b"x-request-id")


async def test_a_success_has_an_id_only_if_somebody_knows_it(tmp_path: Path) -> None:
    """The client that gave it, or the access log. An error always has one."""
    good = GOOD_BODIES["device.sendState"]
    async with both_paths(tmp_path / "data") as paths:
        assert await request_id(paths.fast, good) == (200, None)
        assert await request_id(paths.fast, good, "X-Request-Id: mine-7") == (200, b"mine-7")
        for twin, body, status in (
            (paths.fast, b'{"data":{"a":"no number"}}', 400),
            (paths.quart, good, 200),
        ):
            answered, id = await request_id(twin, body)
            assert answered == status
            assert id
