"""Overload: admitted calls are served as usual, and the others are refused at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from tests.http.both_paths import FAST_ROUTES, Twin, both_paths, request
from tests.patience import PATIENCE_S
from trunkline.http.calls.errors import JSON
from trunkline.http.calls.request import Headers, Request, Response

STATE = FAST_ROUTES["device.sendState"]
WAITING_MAX = 4
LIMITS = {"waiting_writes_max": WAITING_MAX}


def post(twin: Twin, token: str, number: int) -> Request:
    headers = {b"authorization": b"Bearer " + token.encode(), b"content-type": b"application/json"}
    body = b'{"time":%d,"data":{"a":%d}}' % (1_700_000_000_000 + number, number)
    return Request("POST", twin.path(STATE), b"", headers, body, "127.0.0.1")


def refused(response: Response) -> bool:
    if response.status == 200:
        return False
    assert response.status == 503
    assert (b"retry-after", b"1") in response.headers
    assert JSON in response.headers
    assert b"4 writes wait to be stored" in response.body
    return True


def tell(answers: list[Response], status: int, headers: Headers, body: bytes) -> None:
    answers.append(Response(status, headers, body))


async def test_no_more_writes_than_the_bound_wait_for_one_commit(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data", limits=LIMITS) as paths:
        twin, token = paths.fast, paths.fast.token()
        answers: list[Response] = []

        async def send(number: int) -> None:
            answers.append(await twin.dispatcher.handle(post(twin, token, number)))

        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(send, number)
        assert sum(map(refused, answers)) == 10 - WAITING_MAX
        assert (await twin.dispatcher.handle(post(twin, token, 11))).status == 200, "there is room again"


async def test_answers_that_leave_by_themselves_keep_to_it_as_well(tmp_path: Path) -> None:
    async with both_paths(tmp_path / "data", limits=LIMITS) as paths:
        twin, token = paths.fast, paths.fast.token()
        assert (await twin.dispatcher.handle(post(twin, token, 0))).status == 200
        known = twin.dispatcher.admissions.find_by_token(
            "POST", twin.path(STATE), b"Bearer " + token.encode()
        )
        assert known is not None
        repeat = twin.dispatcher.make_template(post(twin, token, 0), known)
        assert repeat is not None
        at_once: list[Response] = []
        later: list[Response] = []
        for number in range(1, 11):
            answers = at_once if number > WAITING_MAX else later
            done = partial(tell, answers)
            assert twin.dispatcher.begin(repeat, post(twin, token, number).body, done)
        assert later == []
        assert len(at_once) == 10 - WAITING_MAX
        assert all(map(refused, at_once))
        with trio.fail_after(PATIENCE_S):
            while len(later) < WAITING_MAX:
                await trio.lowlevel.checkpoint()
        assert not any(map(refused, later))
        route = FAST_ROUTES["device.getState"]
        answer = await twin.ask(request(twin, route, token=token, query="?limit=20"), method="GET")
        assert [b'"a":%d}' % number in answer for number in range(11)] == [
            number <= 4 for number in range(11)
        ]
        assert twin.dispatcher.statistics.answered[(STATE.operation, 503)] == 6
        assert twin.dispatcher.statistics.answered[(STATE.operation, 200)] == 5
