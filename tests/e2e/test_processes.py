"""A server with several processes, started as an operator starts it: one owns the data, the others are its doors.

What a door passes on is tested by `THROUGH_DOORS=1 pytest tests/e2e`, and in the ordinary run by the modules that
`BY_DOORS` lists (conftest.py). Here are the processes: how they start and stop, and what happens when one dies.

`pytest -m load tests/e2e/test_processes.py` kills them for longer, and prints what was kept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.conftest import Json
from tests.e2e.server_process import (
    OWNER,
    ServerProcess,
    one_sentence,
    processes,
    serving,
    started,
    trunkline,
)
from tests.e2e.stubborn import Stubborn, calls, history, patience, prepared, read_back, sent_marks
from tests.e2e.test_crash import UNTHROTTLED, checked
from tests.e2e.test_service import manager, told
from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.framing import Response
from trunkline.bench.transport import Origin
from trunkline.http.processes.door import NO_OWNER, OWNER_BUSY, OWNER_ENDED

pytestmark = [pytest.mark.disk, pytest.mark.slow]

CLIENTS_MAX = 600
"""So many that a door may not keep a part of a body of each."""
THREE = ("--processes", "3")


def is_running(id: int) -> bool:
    return Path(f"/proc/{id}").exists()


async def replaced(server: ServerProcess, name: str, before: int) -> int:
    """Wait until a process is started again; returns its id."""
    with trio.fail_after(PATIENCE_S):
        while (now := processes(server).get(name, before)) == before:
            await trio.lowlevel.checkpoint()
    return now


async def gone(ids: list[int]) -> None:
    """Wait until processes have ended."""
    with trio.fail_after(PATIENCE_S):
        while any(is_running(id) for id in ids):
            await trio.lowlevel.checkpoint()


async def answers_again(server: ServerProcess, path: str = "/readyz") -> tuple[list[int], Json]:
    """Call until the owner answers by the door that takes the call; returns the statuses before, and the answer."""
    statuses: list[int] = []
    with trio.fail_after(PATIENCE_S):
        while True:
            async with server.client() as client:
                response = await client.get(path)
            if response.status_code == 200:
                return statuses, response.json()
            assert response.headers["retry-after"] == "1"
            statuses.append(response.status_code)


async def test_several_processes_serve_one_directory_and_stop_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", *THREE) as server:
        assert set(processes(server)) == {"owner", "door-1", "door-2"}
        ids = [*processes(server).values()]
        device = await server.device(await server.application())
        for number in range(8):
            await server.call("POST", f"{device}/state", {"data": {"temp": number}})
        assert (await server.call("GET", f"{device}/compositeState"))["temp"]["value"] == 7
        with trio.fail_after(PATIENCE_S):
            text = ""
            while "trunkline_doors 2.0" not in text or "trunkline_connections_accepted_total 0.0" in text:
                async with server.client("") as client:
                    text = (await client.get("/metrics")).text
        server.send_signal(signal.SIGTERM)
        with trio.fail_after(PATIENCE_S):
            while running := [id for id in ids if is_running(id)]:
                for id in running:  # a service manager sends its signal to all processes, also late
                    with suppress(ProcessLookupError):
                        os.kill(id, signal.SIGTERM)
                await trio.lowlevel.checkpoint()
        assert await server.ended() == 0
    assert "a second signal" not in server.log
    assert not (tmp_path / "data" / "processes.sock").exists()
    await checked(tmp_path / "data")


async def test_a_new_owner_takes_over_where_one_was_killed(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", *THREE) as server:
        device = await server.device(await server.application())
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        before = processes(server)
        os.kill(before["owner"], signal.SIGKILL)
        statuses, _ = await answers_again(server)
        more, state = await answers_again(server, f"{device}/compositeState")
        assert {*statuses, *more} <= {502, 503}
        assert state["temp"]["value"] == 1
        after = processes(server)
        assert after["owner"] != before["owner"]
        assert (after["door-1"], after["door-2"]) == (before["door-1"], before["door-2"])
        assert await server.terminate() == 0
    assert "a process has ended" in server.log


async def test_a_door_that_dies_takes_only_its_own_connections_along(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", *THREE) as server:
        await server.call("GET", "/me")
        before = processes(server)
        os.kill(before["door-1"], signal.SIGKILL)
        # The socket is still open: what connects now is accepted by the other one.
        for _ in range(20):
            await server.call("GET", "/me")
        assert await replaced(server, "door-1", before["door-1"])
        assert processes(server)["owner"] == before["owner"]
        assert await server.terminate() == 0


async def test_calls_that_an_owner_does_not_take_are_refused_at_a_bound(tmp_path: Path) -> None:
    """It is stopped, as by a disk that hangs: what has come before the bound is answered when it goes on."""
    async with serving(tmp_path / "data", *UNTHROTTLED, "--processes", "2") as server:
        device = await server.device(await server.application())
        body = json.dumps({"data": {"label": "x" * 60_000}}).encode()
        owner = processes(server)["owner"]
        answers: list[Response] = []
        refused = trio.Event()

        async def send() -> None:
            origin = Origin.parse(server.url)
            async with Connection(origin, token=server.token, timeout_s=PATIENCE_S) as connection:
                answers.append(await connection.request("POST", f"{device}/state", body))
            if answers[-1].status == 503:
                refused.set()

        os.kill(owner, signal.SIGSTOP)
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS_MAX):
                nursery.start_soon(send)
            with trio.fail_after(PATIENCE_S):
                await refused.wait()
            os.kill(owner, signal.SIGCONT)
        statuses = Counter(each.status for each in answers)
        assert set(statuses) == {200, 503}, statuses
        late = next(each for each in answers if each.status == 503)
        assert json.loads(late.body) == {"type": "Overloaded", "message": OWNER_BUSY}
        assert late.headers["retry-after"] == "1"
        assert len(await history(server, device, "state")) == statuses[200]
        assert await server.terminate() == 0


def unread_bytes(server: int, client: int) -> int:
    """What a process has not read yet of a connection between two ports of 127.0.0.1, where it has the first one."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if (int(local[-4:], 16), int(remote[-4:], 16)) == (server, client):
            return int(queues.partition(":")[2], 16)
    raise AssertionError("there is no such connection")


async def test_calls_that_the_owner_has_begun_when_it_dies_say_that_nobody_knows(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", "--processes", "2") as server:
        device = await server.device(await server.application())
        owner, port = processes(server)["owner"], Origin.parse(server.url).port
        os.kill(owner, signal.SIGSTOP)
        streams = []
        for method, path, body in (("POST", f"{device}/command", b'{"name": "go"}'), ("GET", device, None)):
            encoded = Connection(Origin.parse(server.url), token=server.token).encode(method, path, body)
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stream.send_all(encoded)
            streams.append(stream)
            with trio.fail_after(PATIENCE_S):
                while unread_bytes(port, stream.socket.getsockname()[1]):
                    await trio.lowlevel.checkpoint()
        os.kill(owner, signal.SIGKILL)
        post, get = [await read_response(stream) for stream in streams]
        assert post.startswith(b"HTTP/1.1 502 ")
        assert json.loads(post.partition(b"\r\n\r\n")[2]) == {"type": "BadGateway", "message": OWNER_ENDED}
        assert b"retry-after" not in post
        assert get.startswith(b"HTTP/1.1 503 ")
        assert json.loads(get.partition(b"\r\n\r\n")[2]) == {"type": "Overloaded", "message": NO_OWNER}
        assert b"retry-after: 1\r\n" in get
        await answers_again(server)
        assert await server.terminate() == 0


async def read_response(stream: trio.SocketStream) -> bytes:
    """The bytes of a response with a short JSON body."""
    received = b""
    with trio.fail_after(PATIENCE_S):
        async with stream:
            while not received.endswith(b"}"):
                received += await stream.receive_some()
    return received


async def test_each_request_is_logged_once_by_its_door(tmp_path: Path) -> None:
    env = {**OWNER, "TRUNKLINE_ACCESS_LOG": "true", "TRUNKLINE_LOG_FORMAT": "json"}
    async with serving(tmp_path / "data", "--processes", "2", env=env) as server:
        device = await server.device(await server.application())
        ids = []
        async with server.client() as client:
            for number in range(4):
                response = await client.post(f"{device}/state", json={"data": {"temp": number}})
                ids.append(response.headers["x-request-id"])
            refused = await client.post(f"{device}/state", json={"data": 5}, headers={"X-Request-Id": "mine"})
        assert await server.terminate() == 0
    lines = [json.loads(line) for line in server.log.splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    assert {line["process"] for line in requests} == {"door-1"}
    states = [line for line in requests if line["path"] == f"{device}/state"]
    assert [line["request_id"] for line in states] == [*ids, "mine"]
    assert [line["status"] for line in states] == [200] * 4 + [refused.status_code]
    assert {(line["operation"], line["principal"]) for line in states} == {("device.sendState", "user")}
    assert all(line["client"] == "127.0.0.1" and line["duration_ms"] > 0 for line in states)


async def test_a_door_that_dies_before_it_is_ready_is_started_again(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--processes", "2") as server:
        with trio.fail_after(PATIENCE_S):
            while "door-1" not in processes(server):
                await trio.lowlevel.checkpoint()
        os.kill(processes(server)["door-1"], signal.SIGKILL)
        assert await server.listens()
        assert await server.log_in()
        assert await server.terminate() == 0
    assert server.log.count("a process has ended") == 1


async def test_no_process_is_left_behind_by_its_supervisor(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", *THREE) as server:
        ids = [*processes(server).values()]
        assert len(ids) == 3
        await server.kill()
        await gone(ids)
    async with serving(tmp_path / "data") as server:
        assert await server.call("GET", "/me")
        assert await server.terminate() == 0


async def test_an_owner_that_cannot_start_ends_the_server_with_its_sentence(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as holder:
        failed = await trunkline("serve", *THREE, "--port", "0", "--data", str(tmp_path / "data"), cold=True)
        assert "in use" in one_sentence(failed)
        assert await holder.call("GET", "/me")


@pytest.mark.parametrize("count", ["none", "-1", "1000"])
async def test_a_wrong_number_of_processes_is_refused(tmp_path: Path, count: str) -> None:
    failed = await trunkline("serve", f"--processes={count}", "--data", str(tmp_path / "data"))
    assert "processes" in one_sentence(failed)
    assert not (tmp_path / "data").exists()


async def test_the_manager_is_told_by_the_supervisor_and_a_process_that_hangs_is_replaced(
    tmp_path: Path,
) -> None:
    env = {**OWNER, "NOTIFY_SOCKET": str(tmp_path / "s"), "WATCHDOG_USEC": "4000000"}
    async with (
        manager(str(tmp_path / "s")) as listening,
        started(tmp_path / "data", *THREE, env=env, cold=True) as server,
    ):
        lines = await told(listening, "READY=1")
        assert await server.listens()
        assert f"STATUS=Serving at {server.url}" in lines
        server.token = await server.log_in()
        hanging = processes(server)["door-2"]
        os.kill(hanging, signal.SIGSTOP)
        assert await replaced(server, "door-2", hanging)
        await told(listening, "WATCHDOG=1")
        server.send_signal(signal.SIGTERM)
        await told(listening, "STOPPING=1")
        assert await server.ended() == 0
    assert "does not say that it is alive" in server.log


async def rounds(data_dir: Path, kills: int, clients: int, count: int, seed: int) -> tuple[int, int]:
    """Kill one process after the other while clients repeat; returns the calls, and those answered by a repetition."""
    random = Random(seed)
    async with serving(data_dir, *UNTHROTTLED, *THREE) as server:
        paths = await prepared(server)
        stubborn = [Stubborn(str(n), calls(paths, n, count), Random(random.random())) for n in range(clients)]
        with patience(stubborn):
            async with trio.open_nursery() as nursery:
                for each in stubborn:
                    nursery.start_soon(each.run, server)
                for number in range(kills):
                    target = clients * count * (number + 1) // (kills + 1)
                    while sum(len(each.answers) for each in stubborn) < target:
                        await trio.lowlevel.checkpoint()
                    name = ("owner", "door-1", "door-2")[number % 3]
                    before = processes(server)[name]
                    os.kill(before, signal.SIGKILL)
                    await replaced(server, name, before)
        found, states = await read_back(server, paths)
        assert await server.terminate() == 0
    await checked(data_dir)
    assert found == sent_marks(clients, count)
    assert states == clients * sum(number % 7 < 2 for number in range(count)), "none replaced an equal one"
    return clients * count, sum(each.repeated for each in stubborn)


async def test_every_call_has_one_effect_whatever_process_dies(tmp_path: Path) -> None:
    await rounds(tmp_path / "data", kills=3, clients=6, count=120, seed=5)


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_every_call_has_one_effect_whatever_dies_while_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processes are killed at random times, also while they start, until all calls are answered."""
    random, clients, count, kills = Random(9), 8, 300, 0
    async with serving(tmp_path / "data", *UNTHROTTLED, *THREE) as server:
        paths = await prepared(server)
        stubborn = [Stubborn(str(n), calls(paths, n, count), Random(random.random())) for n in range(clients)]
        async with trio.open_nursery() as nursery:
            for each in stubborn:
                nursery.start_soon(each.run, server)
            while any(each.left for each in stubborn) and kills < 120:
                await trio.sleep(random.uniform(0, 0.7))
                if now := processes(server):
                    os.kill(random.choice([*now.values()]), signal.SIGKILL)
                    kills += 1
        found, _ = await read_back(server, paths)
        assert await server.terminate() == 0
    assert found == sent_marks(clients, count)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{kills} kills at any time: {clients * count} calls with keys, each with one effect\n"
        )


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_every_call_has_one_effect_whatever_process_dies_again_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, repeated = await rounds(tmp_path / "data", kills=60, clients=8, count=300, seed=6)
    with capsys.disabled():
        sys.stdout.write(
            f"\n60 kills of processes: {made} calls with keys, each with one effect; {repeated} answered again\n"
        )
