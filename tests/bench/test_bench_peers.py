"""A comparison gives all peers the same load, leaves nothing running, and reports unavailable peers in a sentence."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import trio
from rich.console import Console

from tests.bench.peers import mosquitto, nats, redis, web
from tests.bench.peers.comparison import (
    PEERS,
    Comparison,
    Entry,
    _entry,
    _PeerState,
    compare,
    select_peers,
)
from tests.bench.peers.environment import environment
from tests.bench.peers.influxdb import InfluxDb
from tests.bench.peers.mosquitto import Mosquitto, MqttProtocol
from tests.bench.peers.nats import Nats, NatsProtocol
from tests.bench.peers.peer import Kept, Peer, Posts, Started
from tests.bench.peers.redis import Redis, RedisProtocol
from tests.bench.peers.report import page_of_comparison, print_comparison
from tests.bench.peers.trunkline import Trunkline, TrunklineMqtt
from tests.bench.peers.web import FastApiPostgres, FastApiSqlite
from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.errors import BenchError, ProtocolViolation
from trunkline.bench.load import Tally
from trunkline.bench.programs import ProgramUnavailable, Workspace
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Calls, Stage
from trunkline.bench.stage import Plan
from trunkline.bench.wire_protocol import WireProtocol

SHORT = Plan(connections=4, duration_s=0.2, warmup_s=0.05)


@pytest.fixture(autouse=True)
def _short_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.bench.stage.NULL_DURATION_S", 0.05)


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace", [], None)


@pytest.mark.slow
async def test_packages_that_cannot_be_installed_are_a_sentence(tmp_path: Path, workspace: Workspace) -> None:
    with (
        trio.fail_after(PATIENCE_S),
        pytest.raises(
            ProgramUnavailable, match="no-such-package-of-trunkline cannot be installed: python failed: "
        ),
    ):
        await environment(tmp_path, workspace, ("--no-index", "no-such-package-of-trunkline"))
    workspace.close()


@pytest.mark.parametrize("parts", [web._POSTGRES, web._SQLITE])
def test_the_applications_of_peers_are_programs(parts: dict[str, str]) -> None:
    text = web._APPLICATION.format(**{name: part.strip("\n") for name, part in parts.items()})
    compile(text, "app.py", "exec")
    assert text.count("@app.post") == 4


def whole(protocol: WireProtocol, wire: bytes, step: int) -> list[tuple[int, bytes]]:
    answers = [one for at in range(0, len(wire), step) for one in protocol.feed(wire[at : at + step])]
    return [(answer.status, answer.body) for answer in answers]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_answers_of_brokers_are_framed_however_they_are_split(step: int) -> None:
    mqtt = b"\x20\2\0\0\x90\3\0\1\1\x40\2\0\1\x20\2\0\5\x90\3\0\1\x80"
    refused = (403, b"The broker refused.")
    assert whole(MqttProtocol(), mqtt, step) == [(200, b"")] * 3 + [refused] * 2
    replies = b"$15\r\n1700000000000-0\r\n-ERR no\r\n:7\r\n+OK\r\n$-1\r\n"
    assert whole(RedisProtocol(), replies, step) == [
        (200, b"1700000000000-0"),
        (400, b"ERR no"),
        (200, b"7"),
        (200, b"OK"),
        (200, b"-1"),
    ]
    lines = b"INFO {}\r\nPONG\r\nMSG _INBOX.x 1 12\r\n{\"seq\":\r\n12}\r\nMSG _INBOX.x 1 0\r\n\r\nPING\r\n-ERR 'no'\r\n"
    assert whole(NatsProtocol(), lines, step) == [
        (200, b""),
        (200, b'{"seq":\r\n12}'),
        (400, b""),
        (400, b"-ERR 'no'"),
    ]


def test_what_is_no_answer_of_a_broker_is_told() -> None:
    for protocol in (RedisProtocol(), NatsProtocol()):
        with pytest.raises(ProtocolViolation):
            protocol.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ProtocolViolation):
        MqttProtocol().feed(b"\x30\xff\xff\xff")


def test_requests_to_brokers_are_as_the_protocols_want_them() -> None:
    assert mosquitto.publish("a/b", b"x" * 200) == b"\x32\xcf\x01\x00\x03a/b\x00\x01" + b"x" * 200
    assert mosquitto.connect("", clean=True) == b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00"
    assert redis.command(b"XLEN", b"k") == b"*2\r\n$4\r\nXLEN\r\n$1\r\nk\r\n"
    protocols = [NatsProtocol(), NatsProtocol()]
    sent = [protocol.encode(nats._publish("d", b"{}", 1)) for protocol in protocols]
    assert sent[0] != sent[1]
    for protocol, request in zip(protocols, sent, strict=True):
        inbox = request.split()[2]
        assert request == b"PUB devices.d.state %b 2\r\n{}\r\n" % inbox
        assert b"SUB %b 1\r\n" % inbox in protocol.greeting


def test_cores_are_split_and_given_back() -> None:
    before = os.sched_getaffinity(0)
    assert Cores.split(0) == (None, None)
    with pytest.raises(BenchError, match="leaves none"):
        Cores.split(len(before))
    one = frozenset({min(before)})
    with on_cores(one):
        assert os.sched_getaffinity(0) == one
    assert os.sched_getaffinity(0) == before


def test_peers_are_chosen_by_parts_of_their_names() -> None:
    assert select_peers([]) == list(PEERS)
    assert select_peers(["sqlite", "NATS"]) == [Trunkline, FastApiSqlite, Nats]
    assert select_peers(["postgres"]) == [Trunkline, FastApiPostgres]
    with pytest.raises(BenchError, match="No peer is named 'oracle'"):
        select_peers(["oracle"])


async def comparison(tmp_path: Path, *peers: type[Peer]) -> dict[str, Entry]:
    """Run a comparison and return its entries by name. Checks that nothing is left and that reports can be written."""
    work, cores = tmp_path / "work", Cores(None, None)
    given = Comparison(
        work=work, peers=peers, plan=SHORT, devices=5, rounds=1, cores=cores, series_points=120
    )
    before = set(psutil.Process().children(recursive=True))
    with trio.fail_after(PATIENCE_S):
        result = await compare(given, ProgressBar())
    assert not _left(work)
    assert set(psutil.Process().children(recursive=True)) <= before
    console = Console(width=200, record=True, quiet=True)
    print_comparison(console, result)
    page = page_of_comparison(result)
    for entry in result.entries:
        assert entry.problem is None or entry.problem.replace("'", "&#x27;") in page
    return {entry.name: entry for entry in result.entries}


class Missing(Peer):
    """Is not installed."""

    name = "Missing"

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        workspace.find("no-such-program", "nothing")
        yield await _never()


class Crashing(Peer):
    """Ends as soon as it is started."""

    name = "Crashing"

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        workspace.start(python("print('out of luck'); raise SystemExit(9)"))
        with reserved_port() as port:
            await workspace.listens(port)
        yield await _never()


class Forgetful(Redis):
    """Reports that it has stored less than it acknowledged."""

    name = "Forgetful"

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        async with Trunkline().run(work, workspace, devices, bar) as started:

            async def kept() -> Kept:
                return Kept(10, 9)

            yield replace(started, kept=kept)


async def _never() -> Started:
    raise AssertionError("nothing was started")


@pytest.mark.slow
async def test_a_contest_compares_with_the_first_and_goes_on_without_who_cannot_take_part(
    tmp_path: Path,
) -> None:
    entries = await comparison(tmp_path, Trunkline, Missing, Crashing, Forgetful)
    first = entries["Trunkline"]
    assert first.problem is None
    assert [turn.work for turn in first.turns] == ["single states", "arrays of 100"]
    assert "stored" in first.kept
    for turn in first.turns:
        # On a machine that is shared with other tests the generator may have been the bottleneck.
        assert turn.stage.problem or turn.rates[0] > 0
        assert turn.ratio is None
        assert turn.stage.disk is None or turn.stage.disk.units > 0
    assert first.series is not None
    assert first.series.points_a_second > 0
    assert entries["Missing"].problem == "no-such-program is not installed (Debian: apt-get install nothing)."
    assert "ended with 9: out of luck" in str(entries["Crashing"].problem)
    assert "10 states acknowledged, 9 stored, so no figure is given" in str(entries["Forgetful"].problem)
    assert entries["Forgetful"].turns == []


def test_of_several_rounds_the_median_is_told() -> None:
    def rounds(*rates: int) -> _PeerState:
        state = _PeerState()
        tallies = [Tally("single states", "states") for _ in rates]
        for tally, rate in zip(tallies, rates, strict=True):
            tally.units = tally.acknowledged = rate
        state.stages["single states"] = [
            Stage(name="single states", elapsed_s=1.0, calls=[Calls.of(tally, 1.0)]) for tally in tallies
        ]
        return state

    first, other = rounds(300, 100, 200), rounds(40, 50, 20)
    other.stages["single states"].append(Stage(name="single states", elapsed_s=1.0, problem="Withheld."))
    ((turn,), (mine,)) = (_entry("one", state, first).turns for state in (other, first))
    assert (turn.rates, turn.stage.calls[0].unit_rate, turn.ratio) == ([40, 50, 20], 40, 5.0)
    assert (mine.stage.calls[0].unit_rate, mine.ratio) == (200, None)


@pytest.mark.slow
@pytest.mark.parametrize("peer", [Mosquitto, Nats, Redis, InfluxDb])
async def test_a_broker_takes_part_where_it_is_installed(tmp_path: Path, peer: type[Peer]) -> None:
    (entry,) = (await comparison(tmp_path, peer)).values()
    if entry.problem is not None:
        assert "is not installed (Debian: apt-get install" in entry.problem
        return
    assert entry.version
    assert entry.durability
    for turn in entry.turns:
        assert turn.stage.problem or len(turn.rates) >= 1


@pytest.mark.slow
async def test_mqtt_takes_part_and_keeps_every_message(tmp_path: Path) -> None:
    (entry,) = (await comparison(tmp_path, TrunklineMqtt)).values()
    assert entry.problem is None
    acknowledged, stored = (int(word.replace(",", "")) for word in entry.kept.split() if word[0].isdigit())
    assert acknowledged == stored > 0


@pytest.mark.parametrize("inherited", ["default_int_handler", "SIG_IGN"])
@pytest.mark.slow
async def test_an_interrupted_contest_leaves_nothing_behind(tmp_path: Path, inherited: str) -> None:
    program = (
        f"import signal; signal.signal(signal.SIGINT, signal.{inherited})\n"
        "import sys; import typer; from tests.bench.peers.__main__ import peers\n"
        f"sys.argv = ['peers', '--work', {str(tmp_path)!r}, '--only', 'trunkline', '--devices', '5',\n"
        "            '--duration', '600', '--server-cores', '0']\n"
        "typer.run(peers)"
    )
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(_started, python(program))
        with trio.fail_after(PATIENCE_S):
            serving = await _server_of(psutil.Process(process.pid))
            process.send_signal(signal.SIGTERM)
            await process.wait()
    assert process.returncode == 130
    assert not serving.is_running() or serving.status() == psutil.STATUS_ZOMBIE
    assert not _left(tmp_path)


def _left(work: Path) -> list[Path]:
    """What a comparison should have deleted."""
    return list(work.glob("run-*"))


async def _server_of(program: psutil.Process) -> psutil.Process:
    """The server that the bench has started, once it is there and the bench has it in its books: it has called."""
    while True:
        for one in program.children(recursive=True):
            with suppress(psutil.Error):
                called = any(each.status == psutil.CONN_ESTABLISHED for each in one.net_connections("tcp"))
                if called and "serve" in one.cmdline():
                    return one
        await trio.sleep(0.05)


async def _started(command: list[str], task_status: trio.TaskStatus[trio.Process]) -> None:
    await trio.run_process(
        command, cwd=Path(__file__).parents[2], check=False, capture_stderr=True, task_status=task_status
    )


def test_posts_of_all_peers_are_the_same_states() -> None:
    built: list[tuple[str, bytes, int]] = []

    def build(device_id: str, body: bytes, count: int) -> bytes:
        built.append((device_id, body, count))
        return b""

    posts = Posts(2, build)
    assert [posts.next(posts.device_ids[0], count) for count in (1, 2)] == [b"", b""]
    (_, one, _), (_, two, count) = built
    assert one.startswith(b'{"time":')
    assert b'"sequence":0' in one
    assert two.startswith(b'[{"time":')
    assert [b'"sequence":%d,' % n in two for n in (0, 1, 2, 3)] == [False, True, True, False]
    assert count == 2
    assert str(posts.kept(None)) == "0 states acknowledged; it cannot be asked what it holds"
    assert Kept(5, 4).lost
    assert not Kept(5, 6).lost


def test_every_peer_has_a_name_of_its_own() -> None:
    names: list[str] = [peer.name for peer in PEERS]
    assert len(set(names)) == len(names)
    makers: list[Callable[[], Peer]] = list(PEERS)
    assert all(make() for make in makers)
