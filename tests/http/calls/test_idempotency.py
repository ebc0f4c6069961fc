"""A call that is repeated with its Idempotency-Key has one effect and one answer.

Over both paths and both engines. `tests/e2e/test_idempotency.py` has the operations, and kills and restarts of the
server; `tests/actors/core/records/test_kept_answers.py` how answers are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.http.both_paths import FAST_ROUTES, GOOD_BODIES, Twin, both_paths, request
from tests.http.raw_wire import Answer
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

KEYED = [route for route in TABLE.routes if route.takes_key]
FAST_KEYED = [route for route in KEYED if route.fast_path]
STATE = FAST_ROUTES["device.sendState"]
ROWS = FAST_ROUTES["dataTableRows.post"]


def keyed(twin: Twin, route: Route, key: str = '"k-1"', body: bytes | None = None, **how: Any) -> bytes:
    given = GOOD_BODIES[route.operation] if body is None else body
    return request(twin, route, given, f"Idempotency-Key: {key}", **how)


async def stored(twin: Twin) -> tuple[int, int, int]:
    """How many states, commands and rows there are."""
    house = twin.house
    house.clock.pass_s(1)
    rows = await twin.wired.ask(
        request(
            twin,
            next(r for r in TABLE.routes if r.operation == "dataTableRows.get"),
            token=twin.token("all.Application", typ="application", sub=house.application.hex()),
        ),
        method="GET",
    )
    return (
        len(await house.states(twin.device)),
        len(await house.commands(twin.device)),
        rows.json()["totalCount"],
    )


def test_these_operations_take_a_key() -> None:
    assert {route.operation for route in KEYED} == {
        "device.sendState",
        "device.sendCommand",
        "devices.sendCommand",
        "dataTableRows.post",
        "events.post",
    }


@pytest.mark.parametrize("engine", ["fast", "stock"])
@pytest.mark.parametrize("route", FAST_KEYED, ids=lambda route: route.operation)
async def test_a_repeated_call_has_one_effect_and_the_same_answer(
    tmp_path: Path, engine: str, route: Route
) -> None:
    async with both_paths(tmp_path / "data", engine) as paths:
        for twin in paths:
            before = await stored(twin)
            first = await twin.wired.ask(keyed(twin, route))
            again = [await twin.wired.ask(keyed(twin, route)) for _ in range(3)]
            assert first.status == route.ok
            assert first.header(b"idempotent-replayed") is None
            for answer in again:
                assert (answer.status, answer.body) == (first.status, first.body)
                assert answer.header(b"etag") == first.header(b"etag")
                assert answer.header(b"content-type") == first.header(b"content-type")
                assert answer.header(b"idempotent-replayed") == b"true"
            assert sum(await stored(twin)) == sum(before) + 1
            assert (await twin.wired.ask(keyed(twin, route, '"k-2"'))).header(b"idempotent-replayed") is None
            assert sum(await stored(twin)) == sum(before) + 2


async def test_a_repeated_call_spends_no_call_of_the_throttle(tmp_path: Path) -> None:
    limits = {"send_state": {"calls": 2, "window_s": 15}}
    async with both_paths(tmp_path / "data", limits=limits) as paths:
        twin = paths.fast
        first = await twin.wired.ask(keyed(twin, STATE))
        assert first.header(b"ratelimit") == b'"send_state";r=1;t=15'
        for _ in range(5):
            again = await twin.wired.ask(keyed(twin, STATE))
            assert (again.status, again.header(b"ratelimit")) == (200, None)
        assert (await twin.wired.ask(keyed(twin, STATE, '"k-2"'))).status == 200
        assert (await twin.wired.ask(keyed(twin, STATE, '"k-3"'))).status == 429
        twin.house.clock.pass_s(15)
        assert (await twin.wired.ask(keyed(twin, STATE, '"k-3"'))).header(b"idempotent-replayed") is None


async def test_both_paths_answer_keys_alike(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for route in FAST_KEYED:
            for key in ('"a"', '"a"', "a", '"b"'):
                await paths.compare(lambda twin, r=route, k=key: keyed(twin, r, k), method=route.method)


async def test_calls_with_keys_stay_out_of_the_known_heads(tmp_path: Path) -> None:
    """Each of them has a head of its own, which would displace those that come again."""
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        peer = await twin.wired.connect()
        for number in range(20):
            for _ in range(3):
                assert (await peer.exchange(keyed(twin, STATE, f'"{number}"'))).status == 200
        assert twin.wired.engine is not None
        heads = twin.wired.engine.heads
        assert (len(heads), heads.found) == (0, 0)
        for _ in range(4):
            await peer.exchange(request(twin, STATE, GOOD_BODIES[STATE.operation]))
        assert len(heads) == 1
        assert heads.found > 0
        await peer.close()


# Another call with the same key.


async def test_a_key_belongs_to_one_body_and_one_query(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        await twin.wired.ask(keyed(twin, STATE))
        for other in (
            keyed(twin, STATE, body=b'{"data":{"a":22}}'),
            keyed(twin, STATE, body=b'{"data": {"a":21.5,"label":"x"}}'),
            keyed(twin, STATE, query="?_links=false"),
            keyed(twin, STATE, path=twin.path(STATE) + "/"),
        ):
            answer = await twin.wired.ask(other)
            assert answer.error() == (422, "KeyReused")
            assert answer.json()["message"].startswith(
                'Idempotency-Key: the key "k-1" belongs to a call with another'
            )
        assert (await twin.wired.ask(keyed(twin, STATE))).status == 200
        assert (await stored(twin))[0] == 1


async def test_a_key_belongs_to_one_caller_and_one_owner(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        house = twin.house
        other = twin._replace(device=await house.device())
        application = twin.token("all.Application", typ="application", sub=house.application.hex())
        for data in (
            keyed(twin, STATE),
            keyed(twin, STATE, token=application),
            keyed(other, STATE),
            keyed(twin, FAST_ROUTES["dataTableRows.post"]),
        ):
            house.clock.pass_s(1)
            assert (await twin.wired.ask(data)).header(b"idempotent-replayed") is None
        assert (await stored(twin))[0] == 2
        again = await twin.wired.ask(keyed(twin, STATE, token=twin.token(ttl_s=77)))
        assert again.header(b"idempotent-replayed") == b"true", "a new token of the same device"


async def test_a_stored_answer_needs_the_access_that_the_call_needs(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        assert (await twin.wired.ask(keyed(twin, STATE))).status == 200
        for token, status in ((twin.token("device.get"), 403), (twin.token(ttl_s=-1), 401)):
            assert (await twin.wired.ask(keyed(twin, STATE, token=token))).status == status


async def test_a_key_is_refused_while_its_first_call_is_in_work(tmp_path: Path) -> None:
    """The first one waits for its turn among the bulk calls."""
    async with both_paths(tmp_path / "data") as paths, trio.open_nursery() as nursery:
        twin = paths.fast
        body, answers = b'[{"a":1},{"a":2}]', []

        async def insert() -> None:
            answers.append(await twin.wired.ask(keyed(twin, ROWS, body=body)))

        turns = twin.dispatcher.bulk_calls
        async with turns.place("somebody", twin.house.system.limits.bulk_items_max):
            nursery.start_soon(insert)
            while not turns.waiting:
                await trio.lowlevel.checkpoint()
            busy = await twin.wired.ask(keyed(twin, ROWS, body=body))
            assert busy.error() == (409, "InWork")
            assert busy.header(b"retry-after") == b"1"
            assert (await twin.wired.ask(keyed(twin, ROWS, body=b"[]"))).error() == (422, "KeyReused")
        while not answers:
            await trio.lowlevel.checkpoint()
        again = await twin.wired.ask(keyed(twin, ROWS, body=body))
        assert (again.status, again.body) == (answers[0].status, answers[0].body) == (201, answers[0].body)
        assert (await stored(twin))[2] == 3


async def test_a_client_that_leaves_has_its_answer_when_it_comes_back(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for twin in paths:
            peer = await twin.wired.connect()
            turns = twin.dispatcher.bulk_calls
            async with turns.place("somebody", twin.house.system.limits.bulk_items_max):
                await peer.send(keyed(twin, ROWS, body=b'[{"a":1},{"a":2}]'))
                while not turns.waiting:
                    await trio.lowlevel.checkpoint()
                await peer.close()
                await wait_all_tasks_blocked()
                assert turns.waiting == 1, "the call goes on"
            await wait_all_tasks_blocked()
            again = await _until_known(twin)
            assert again.status == 201
            assert (await stored(twin))[2] == 3


async def _until_known(twin: Twin) -> Answer:
    while True:
        answer = await twin.wired.ask(keyed(twin, ROWS, body=b'[{"a":1},{"a":2}]'))
        if answer.status != 409:
            assert answer.header(b"idempotent-replayed") == b"true"
            return answer


# Refusals.


async def test_a_refused_call_leaves_its_key_free(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for twin in paths:
            for bad, status in (
                (b'{"data":{"a":"no number"}}', 400),
                (b"{", 400),
                (b"x" * 5000, 413),
            ):
                assert (await twin.wired.ask(keyed(twin, STATE, body=bad))).status == status
            first = await twin.wired.ask(keyed(twin, STATE))
            assert (first.status, first.header(b"idempotent-replayed")) == (200, None)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (
            "k-1",
            'Idempotency-Key: k-1 is not a string in double quotes; send it in the form "k-1", of printable',
        ),
        ("'k-1'", "Idempotency-Key: 'k-1' is not a string in double quotes; send it in the form \"8e03978e-"),
        ('"k', 'Idempotency-Key: "k is not a string'),
        ('"k" x', 'Idempotency-Key: "k" x is not a string'),
        ('"a", "b"', 'Idempotency-Key: "a", "b" is not a string'),
        ('"k";p=1', 'Idempotency-Key: "k";p=1 is not a string'),
        ('"a\\b"', "Idempotency-Key: "),
        ('"a\tb"', "Idempotency-Key: "),
        ('"\u00e9"', "Idempotency-Key: "),
        ("", "Idempotency-Key:  is not a string in double quotes"),
        ('""', "Idempotency-Key: the key has 0 characters; give 1 to 255, such as a UUID."),
        (f'"{"k" * 256}"', "Idempotency-Key: the key has 256 characters; give 1 to 255, such as a UUID."),
        ("k" * 3000, f"Idempotency-Key: {'k' * 64}... is not a string in double quotes"),
    ],
)
async def test_a_key_of_another_form_is_refused(tmp_path: Path, key: str, sentence: str) -> None:
    async with both_paths(tmp_path / "data") as paths:
        answer = await paths.compare(lambda twin: keyed(twin, STATE, key), method="POST")
        assert answer.startswith(b"HTTP/1.1 400 ")
        refusal = await paths.fast.wired.ask(keyed(paths.fast, STATE, key))
        assert refusal.json()["message"].startswith(sentence)
        assert len(refusal.json()["message"]) < 400
        assert (await stored(paths.fast))[0] == 0


@pytest.mark.parametrize("key", ['"k"', '"a b"', r'"a\"b\\"', f'"{"k" * 255}"', '  "k"  '])
async def test_a_key_may_be_any_string(tmp_path: Path, key: str) -> None:
    async with both_paths(tmp_path / "data") as paths:
        for expected in (None, b"true"):
            answer = await paths.fast.wired.ask(keyed(paths.fast, STATE, key))
            assert (answer.status, answer.header(b"idempotent-replayed")) == (200, expected)


async def test_an_operation_that_takes_no_key_says_so(tmp_path: Path) -> None:
    """A read may be repeated anyway, so there the header has no effect."""
    async with both_paths(tmp_path / "data") as paths:
        for twin in paths:
            for operation in ("device.setConnectionStatus",):
                answer = await twin.wired.ask(keyed(twin, FAST_ROUTES[operation]))
                assert answer.error() == (400, "Validation")
                assert answer.json()["message"].startswith(f"Idempotency-Key: {operation} does not take it")
            read = FAST_ROUTES["device.getState"]
            answer = await twin.wired.ask(
                request(twin, read, None, "Idempotency-Key: anything"), method="GET"
            )
            assert answer.status == 200


# Time.


async def test_a_key_is_kept_for_a_day(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        day_s = twin.house.system.limits.idempotency_keep_s
        assert day_s == 86_400
        token = twin.token(ttl_s=10 * day_s)
        for passing, expected in ((0, None), (day_s, b"true"), (0.001, None), (0, b"true")):
            twin.house.clock.pass_s(passing)
            answer = await twin.wired.ask(keyed(twin, STATE, token=token))
            assert (answer.status, answer.header(b"idempotent-replayed")) == (200, expected)
        assert (await stored(twin))[0] == 2
