"""A full server: which idle connection ends for a new one, so that one address cannot keep all others out."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.raw_wire import Peer, Receive, Scope, Send, Wired, application, echo, reply, serving
from tests.patience import PATIENCE_S
from trunkline.http.wire.places import LOOKED_AT_MAX, LOOKED_AT_OF_AN_ADDRESS_MAX, Place, Places

pytestmark = pytest.mark.usefixtures("silent")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


class Client:
    """The occupant of a place, busy or idle."""

    def __init__(self) -> None:
        self.until_s: float | None = 0.0
        self.gave_way = False
        self.asked = 0

    def idle_until_s(self, now_s: float) -> float | None:
        self.asked += 1
        return self.until_s

    def give_way(self) -> None:
        self.gave_way = True


def entered(places: Places, address: str, until_s: float | None = 0.0) -> tuple[Place, Client]:
    place, client = places.take(address, 0.0), Client()
    assert place is not None
    place.occupant, client.until_s = client, until_s
    return place, client


def gone(clients: list[tuple[Place, Client]]) -> list[int]:
    return [number for number, (_, client) in enumerate(clients) if client.gave_way]


def test_the_idle_connection_of_the_largest_address_that_ends_first_gives_way() -> None:
    places = Places(7, by_address=True)
    few = [entered(places, "10.0.0.2", until_s) for until_s in (1.0, 2.0)]
    many = [entered(places, "10.0.0.1", until_s) for until_s in (70.0, None, 40.0, 60.0, 50.0)]
    expected = [2, 4, 3]
    for number in range(3):
        assert places.take("10.0.0.3", 30.0) is not None
        assert gone(many) == sorted(expected[: number + 1])
    assert gone(few) == []
    assert len(places) == 7
    assert places.displaced == 3


def test_who_is_busy_keeps_the_place_and_the_next_address_is_asked() -> None:
    places = Places(5, by_address=True)
    busy = [entered(places, "10.0.0.1", None) for _ in range(3)]
    idle = [entered(places, "10.0.0.2", 5.0) for _ in range(2)]
    assert places.take("10.0.0.3", 1.0) is not None
    assert (gone(busy), gone(idle)) == ([], [0])
    idle[1][1].until_s = None
    assert places.take("10.0.0.4", 1.0) is None, "the new one at the third address has no occupant yet"


def test_a_new_connection_looks_at_a_bounded_number_and_later_ones_go_on_from_there() -> None:
    places = Places(400, by_address=True)
    clients = [entered(places, f"10.0.0.{number % 8}", None) for number in range(400)]
    assert places.take("10.0.1.0", 1.0) is None
    asked = [client.asked for _, client in clients]
    assert sum(asked) == LOOKED_AT_MAX
    assert max(sum(asked[number::8]) for number in range(8)) == LOOKED_AT_OF_AN_ADDRESS_MAX
    clients[0 + 8 * 30][1].until_s = 2.0
    tries = 0
    while places.take("10.0.1.0", 1.0) is None:
        tries += 1
    assert tries <= 400 // LOOKED_AT_OF_AN_ADDRESS_MAX
    assert gone(clients) == [240]


def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    places = Places(100, by_address=True)
    kept = [entered(places, "10.0.0.1")[0] for _ in range(50)]
    (crowd,) = places._crowds.values()
    for _ in range(1000):
        places.leave(entered(places, "10.0.0.1")[0])
        assert len(crowd.heap) <= 50 * 9 // 8 + 18
    for place in kept:
        places.leave(place)
        places.leave(place)
    assert (len(places), places._crowds, places._addresses, places._by_count) == (0, {}, {}, {})


def test_an_exempt_connection_keeps_its_place_and_is_not_counted_for_its_address() -> None:
    places = Places(4, by_address=True)
    lasting = [entered(places, "10.0.0.1", 0.0) for _ in range(3)]
    for place, _ in lasting:
        places.exempt(place)
    idle = entered(places, "10.0.0.2", 5.0)
    assert places.take("10.0.0.3", 1.0) is not None
    assert (gone(lasting), idle[1].gave_way, len(places)) == ([], True, 4)
    for place, _ in lasting:
        places.leave(place)
    assert len(places) == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:2::9", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
    ],
)
def test_an_ipv6_network_is_one_address(one: str, other: str, same: bool) -> None:
    places = Places(4, by_address=True)
    entered(places, one)
    entered(places, other)
    assert len(places._crowds) == (1 if same else 2)


# On sockets. The addresses of 127.0.0.0/8 all are this machine's.


async def connect_from(wired: Wired, host: str) -> Peer:
    sock = trio.socket.socket()
    await sock.bind((host, 0))
    await sock.connect(("127.0.0.1", wired.port))
    peer = Peer(trio.SocketStream(sock))
    wired.peers.append(peer)
    return peer


async def is_closed(peer: Peer) -> bool:
    """Whether the server has ended a connection without a byte. It waits for nothing but the loop."""
    await wait_all_tasks_blocked()
    sock: Any = peer.stream.socket
    try:
        received: bytes = sock._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    return received == b""


async def test_an_address_that_fills_the_server_with_idle_connections_keeps_nobody_out(
    mock_clock: MockClock,
) -> None:
    async with serving(application(echo), limits={"connections_max": 4}) as wired:
        quiet = await connect_from(wired, "127.0.0.2")
        assert (await quiet.exchange(GET)).status == 200
        many = []
        for _ in range(3):
            mock_clock.jump(2)
            many.append(await connect_from(wired, "127.0.0.3"))
            assert (await many[-1].exchange(GET)).status == 200
        mock_clock.jump(2)
        assert (await many[0].exchange(GET)).status == 200  # so the second is idle for longest
        late = await connect_from(wired, "127.0.0.4")
        assert (await late.exchange(GET)).status == 200
        assert [await is_closed(peer) for peer in many] == [False, True, False]
        assert (await quiet.exchange(GET)).status == 200
        assert (wired.engine.connections, wired.engine.refused) == (4, 0)
        assert wired.engine.places.displaced == 1


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
async def test_connections_that_never_send_a_whole_head_give_way(mock_clock: MockClock, sent: bytes) -> None:
    async with serving(application(echo), limits={"connections_max": 2}) as wired:
        for _ in range(2):
            silent = await connect_from(wired, "127.0.0.3")
            await silent.send(sent) if sent else None
        await wait_all_tasks_blocked()
        mock_clock.jump(2)
        late = await connect_from(wired, "127.0.0.4")
        assert (await late.exchange(GET)).status == 200
        assert wired.engine.places.displaced == 1


async def test_a_request_under_way_keeps_its_connection_and_the_new_one_is_refused() -> None:
    release = trio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"begin", more=True)
        await release.wait()
        await send({"type": "http.response.body", "body": b" end"})

    async with serving(application(slow), limits={"connections_max": 2}) as wired:
        busy = [await connect_from(wired, "127.0.0.3") for _ in range(2)]
        for peer in busy:
            await peer.send(GET)
        await wait_all_tasks_blocked()
        late = await connect_from(wired, "127.0.0.4")
        assert (await late.exchange(GET)).error() == (503, "Overloaded")
        release.set()
        for peer in busy:
            answer = await peer.answer()
            assert answer is not None
            assert answer.status == 200
        assert wired.engine.places.displaced == 0


async def test_behind_a_proxy_nobody_gives_way() -> None:
    """All connections have the proxy's address, and a request may be on its way on one that looks idle."""
    limits: dict[str, Any] = {"connections_max": 2}
    async with serving(application(echo), limits=limits, trust_forwarded_for=True) as wired:
        idle = [await connect_from(wired, "127.0.0.3") for _ in range(2)]
        for peer in idle:
            assert (await peer.exchange(GET)).status == 200
        late = await connect_from(wired, "127.0.0.4")
        assert (await late.exchange(GET)).error() == (503, "Overloaded")
        for peer in idle:
            assert (await peer.exchange(GET)).status == 200


async def test_places_are_free_again_when_connections_end() -> None:
    async with serving(application(echo), limits={"connections_max": 2}) as wired:
        for _ in range(5):
            assert (await wired.ask(GET)).status == 200
        with trio.fail_after(PATIENCE_S):
            await wired.deserted()
        assert len(wired.engine.places) == 0
