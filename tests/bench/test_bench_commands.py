"""Commands of a load are checked at every stream and in the history; a stream resumes where it ended."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import trio

from tests.bench.simulation import World
from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.command_ledger import Arrivals, CommandLedger
from trunkline.bench.event_stream import Event
from trunkline.bench.ledger import ACKNOWLEDGED, REFUSED, Audit
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.scenarios.commands import CommandStreams
from trunkline.bench.session import Session
from trunkline.bench.stream_connection import StreamConnection


def command(number: int) -> str:
    return json.dumps({"name": "bench", "payload": {"sequence": number}, "time": "2026-01-01T00:00:00Z"})


def test_each_way_in_which_a_command_can_go_wrong_is_found() -> None:
    ledger = CommandLedger(["d"])
    arrivals = Arrivals("d", ledger)
    for outcome in (ACKNOWLEDGED, ACKNOWLEDGED, REFUSED, ACKNOWLEDGED):
        ledger.outcomes[ledger.begin(clock())] = outcome
    ledger.begin(clock())
    assert [arrivals.take(command(number)) for number in (0, 3, 3, 2, 4, 9, -1)] == [
        0,
        3,
        None,
        2,
        4,
        None,
        None,
    ]
    assert arrivals.take('{"name":"other"}') is None
    assert list(arrivals.missing()) == [1]
    found = Audit()
    arrivals.audit(found)
    assert (found.missing, found.unexpected) == (1, 2)
    assert sorted(found.examples) == [
        "missing: device d: command 1 was acknowledged and never arrived",
        "unexpected: device d: command 2 arrived 1 times",
        "unexpected: device d: command 3 arrived 2 times",
    ]


async def test_a_stream_that_ends_is_resumed_after_its_last_event(fake_api: Any, monkeypatch: Any) -> None:
    """The server sends one command on each connection and closes; the ids that the stream sends tell where it is."""
    monkeypatch.setattr("trunkline.bench.stream_connection.REOPEN_PAUSE_S", 0.0)
    session = Session(fake_api.url)
    await session.login(fake_api.email, fake_api.password)
    application = await session.create_application("a")
    (device,) = await session.create_devices(application, [{"name": "d"}])
    fake_api.commands[device] = [command(number) for number in range(3)]
    path = f"/applications/{application}/devices/{device}/commandStream"
    request = Connection(session.origin, token=session.token).encode("GET", path)
    seen: list[Event] = []
    opened = 0

    def listen() -> None:
        reactor = Reactor()

        def take(event: Event) -> None:
            seen.append(event)
            if len(seen) == 3:
                reactor.stop()

        def on_open() -> None:
            nonlocal opened
            opened += 1

        line = StreamConnection(reactor, session.origin, request, on_event=take, on_open=on_open)
        line.start()
        reactor.run(clock() + PATIENCE_S)
        line.end()
        assert not line.live
        reactor.close()

    with trio.fail_after(PATIENCE_S):
        await trio.to_thread.run_sync(listen)
    assert [json.loads(event.data)["payload"]["sequence"] for event in seen] == [0, 1, 2]
    assert opened == 3
    assert [last for _, last in fake_api.streams] == ["", "3", "2"]


async def test_a_refused_stream_is_tried_again(fake_api: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("trunkline.bench.stream_connection.REOPEN_PAUSE_S", 0.0)
    session = Session(fake_api.url)
    await session.login(fake_api.email, fake_api.password)
    request = Connection(session.origin, token=session.token).encode("GET", "/applications/none")
    problems: list[str] = []

    def listen() -> None:
        reactor = Reactor()

        def on_break(problem: Exception) -> None:
            problems.append(str(problem))
            if len(problems) == 3:
                reactor.stop()

        line = StreamConnection(
            reactor,
            session.origin,
            request,
            on_event=lambda event: None,
            on_open=lambda: problems.append("opened"),
            on_break=on_break,
        )
        line.start()
        reactor.run(clock() + PATIENCE_S)
        line.end()
        reactor.close()

    with trio.fail_after(PATIENCE_S):
        await trio.to_thread.run_sync(listen)
    assert problems == ["The server ended the stream."] * 3


def test_a_stream_that_reopens_does_not_end_the_load(monkeypatch: Any) -> None:
    """The streams stop the reactor once, when all of them are open for the first time."""
    world = World()

    class SimulatedStream:
        live = False

        def __init__(self, *_: Any, on_open: Any, **__: Any) -> None:
            self._on_open = on_open

        def start(self) -> None:
            world.call_at(world.now_s + 1.0, self._open)

        def _open(self) -> None:
            self.live = True
            self._on_open()

    scenario = SimpleNamespace(
        arrivals=[Arrivals(name, CommandLedger([name])) for name in "abc"],
        session=SimpleNamespace(origin=None),
        fleet=SimpleNamespace(path=lambda *_: "", get=lambda *_: b""),
    )
    monkeypatch.setattr("trunkline.bench.scenarios.commands.clock", world.clock)
    monkeypatch.setattr("trunkline.bench.scenarios.commands.StreamConnection", SimulatedStream)
    streams = CommandStreams(scenario, world)  # type: ignore[arg-type]
    streams.open()
    assert world.now_s == 1.0
    reopened = streams._lines[1]
    reopened.live = False
    reopened.start()
    stopped = world.run(5.0)
    assert reopened.live
    assert (stopped, world.now_s) == (False, 5.0)
