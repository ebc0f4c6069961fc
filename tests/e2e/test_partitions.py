"""A server of two partitions, each served by a process of its own, started as an operator starts it.

What is passed on between them is tested by `PARTITIONS=2 pytest tests/e2e`. Here are the processes themselves, with
clients at each of them. What happens when one of them is killed: `test_partition_kills.py`.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import ssl
from pathlib import Path
from typing import IO, Any

import pytest
import trio
import trustme

from tests.e2e.conftest import EMAIL
from tests.e2e.divided import (
    PARTITIONS,
    ROOT,
    SECOND,
    At,
    connections,
    divide,
    divided,
    houses,
    opened_streams,
)
from tests.e2e.link_peer import linked
from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.server_process import ServerProcess, one_sentence, processes, serving, started, trunkline
from tests.e2e.test_crash import UNTHROTTLED, checked
from tests.e2e.test_mqtt_crash import OPTIONS as WITH_MQTT
from tests.e2e.test_mqtt_crash import port_of
from tests.e2e.test_service import write_certificate
from tests.partitions import make_partitions
from tests.patience import PATIENCE_S
from trunkline.http.mqtt import packets
from trunkline.store.directory import data_file
from trunkline.store.partitions import partition_directory

pytestmark = [pytest.mark.disk, pytest.mark.slow]

CONNECTIONS = 3
"""At each process: of several clients, each meets both."""


async def until_seen(body: Any, text: bytes) -> None:
    """Read a stream until it has a text."""
    received = b""
    with trio.fail_after(PATIENCE_S):
        while text not in received:
            piece = await body.read_some()
            assert piece, received
            received += piece


async def states_of(at: At, device: str) -> list[float]:
    query = "limit=1000&start=1&sortDirection=asc"
    return [each["data"]["temp"] for each in await at.call("GET", f"{device}/state?{query}")]


async def test_every_connection_reaches_the_applications_of_both(tmp_path: Path) -> None:
    async with divided(tmp_path / "data", *WITH_MQTT) as server:
        assert set(processes(server)) == set(PARTITIONS)
        port, known = await port_of(server), await houses(server)
        async with connections(server, CONNECTIONS) as found:
            clients = [at for some in found.values() for at in some]
            sent = 0
            for at in clients:
                for house in known.values():
                    await at.call(
                        "POST", f"{house.device}/state", {"data": {"temp": sent}}, token=house.token
                    )
                sent += 1
            for house in known.values():
                for _ in range(CONNECTIONS):
                    async with linked(server, house.device, house.token, session=sent) as (peer, _):
                        await peer.send(1, 1, 1_700_000_000_000 + sent, {"temp": -sent})
                        await peer.until_stored(1)
                    sent += 1
            key = {}
            for name, house in known.items():
                made = await server.call("POST", f"{house.application}/keys", {})
                key[name] = {"username": made["key"], "password": made["secret"].encode()}
                for _ in range(CONNECTIONS):
                    async with mqtt_client(port) as client:
                        assert (await client.connect(house.id, **key[name])).code == packets.SUCCESS
                        payload = b'{"data": {"temp": %d}}' % sent
                        answer = await client.publish(f"losant/{house.id}/state", payload, 1)
                        assert answer.code == packets.SUCCESS
                    sent += 1
            for house in known.values():
                stored = [await states_of(at, house.device) for at in clients]
                assert all(each == stored[0] for each in stored)
                assert len(stored[0]) == 4 * CONNECTIONS
        assert await server.terminate() == 0
    await checked(tmp_path / "data")
    async with divided(tmp_path / "data") as server, connections(server) as found:
        for house in known.values():
            for some in found.values():
                assert len(await states_of(some[0], house.device)) == 4 * CONNECTIONS
        assert await server.terminate() == 0


async def test_a_command_comes_to_streams_at_every_process(tmp_path: Path) -> None:
    async with divided(tmp_path / "data", *WITH_MQTT) as server:
        port, known = await port_of(server), await houses(server)
        for house in known.values():
            made = await server.call("POST", f"{house.application}/keys", {})
            login = {"username": made["key"], "password": made["secret"].encode()}
            other = await server.device(house.application, "other")  # one has either a link or an MQTT client
            token, _ = await server.device_token(other)
            async with (
                connections(server, CONNECTIONS) as found,
                mqtt_client(port) as client,
                linked(server, other, token) as (peer, _),
            ):
                assert (await client.connect(house.id, **login)).code == packets.SUCCESS
                await client.subscribe(f"losant/{house.id}/command")
                bodies = [
                    body
                    for some in found.values()
                    for body in await opened_streams(some[1:], f"{house.device}/commandStream")
                ]
                for number, some in enumerate(found.values()):
                    name = f"go {number}"
                    for device in (house.device, other):
                        await some[0].call("POST", f"{device}/command", {"name": name}, token=house.token)
                    for body in bodies:
                        await until_seen(body, name.encode())
                    with trio.fail_after(PATIENCE_S):
                        assert name.encode() in (await client.message()).payload
                        frame = await peer.next()
                    assert frame[0] == 3, frame
                    assert frame[2] == name
                    await peer.send(4, frame[1])
        # Streams and clients were open at both: a stop does not wait for them, nor the two for each other.
        async with connections(server, CONNECTIONS) as found:
            for some in found.values():
                for house in known.values():
                    await opened_streams(some[:1], f"{house.device}/commandStream")
                    some.append(some.pop(0))
            assert await server.terminate() == 0
    assert "a second signal" not in server.log
    await checked(tmp_path / "data")


async def test_lists_and_counts_are_of_all_partitions(tmp_path: Path) -> None:
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        names = [f"application {letter}" for letter in "gbdafce"]
        for name in names:
            await server.device(await server.application(name))
        async with connections(server) as found:
            for (at,) in found.values():
                listed: list[str] = []
                for page in range(4):
                    query = f"sortField=name&sortDirection=asc&perPage=2&page={page}"
                    answer = await at.call("GET", f"/applications?{query}")
                    assert answer["totalCount"] == len(names)
                    listed += [each["name"] for each in answer["items"]]
                assert listed == sorted(names)
                newest = await at.call("GET", "/applications?sortField=creationDate&sortDirection=desc")
                assert [each["name"] for each in newest["items"]] == names[::-1]
                summary = (await at.call("GET", "/me"))["summary"]
                assert (summary["appCount"], summary["deviceCount"]) == (len(names), len(names))
        listing = (await trunkline("partition", "--data", str(server.data_dir))).stdout
        assert re.findall(r"^Partition \d: .*applications: (\d+)", listing, re.M) == ["3", "4"]
        assert await server.terminate() == 0


async def test_commands_for_operators_work_beside_the_server(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    at_data = ("--data", str(data))
    async with divided(data, *UNTHROTTLED) as server:
        known = await houses(server)
        added = await trunkline("user", "add", "new@example.com", "--password", "First-horse-7", *at_data)
        assert added.returncode == 0, added
        token = await server.log_in("new@example.com", "First-horse-7")
        made = await server.call("POST", "/applications", {"name": "theirs"}, token=token)
        async with connections(server) as found:
            for (at,) in found.values():
                assert (await at.call("GET", f"/applications/{made['id']}", token=token))["name"] == "theirs"
            changed = await trunkline(
                "user", "passwd", "new@example.com", "--password", "Next-horse-8", *at_data
            )
            assert changed.returncode == 0, changed
            for (at,) in found.values():
                await at.call("GET", f"/applications/{made['id']}", token=token, status=401)
        listed = await trunkline("user", "list", *at_data)
        assert EMAIL in listed.stdout
        assert "new@example.com" in listed.stdout
        refused = await trunkline("partition", "--count", "1", *at_data)
        assert "is in use by process" in one_sentence(refused)
        for house in known.values():
            await server.call("POST", f"{house.device}/state", {"data": {"temp": 5}})
        done = await trunkline("backup", str(copy), *at_data)
        assert done.returncode == 0, done
        assert await server.terminate() == 0
    await checked(copy)
    async with serving(copy) as server:
        assert set(processes(server)) == set(PARTITIONS)
        for house in known.values():
            assert (await server.call("GET", f"{house.device}/compositeState"))["temp"]["value"] == 5
        assert await server.log_in("new@example.com", "Next-horse-8")
        assert await server.terminate() == 0


async def serials_seen(server: ServerProcess, authority: trustme.CA, count: int) -> set[str]:
    """The serial numbers of the certificates that new connections are shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = server.url.removeprefix("https://").split(":")
    found = set()
    for _ in range(count):
        with trio.fail_after(PATIENCE_S):
            stream = await trio.open_tcp_stream(host, int(port))
            tls = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
            await tls.do_handshake()
        certificate = tls.getpeercert(binary_form=True)
        found.add(certificate)
        await trio.aclose_forcefully(tls)
    return found


async def test_a_renewed_certificate_is_used_by_both(tmp_path: Path) -> None:
    authority = trustme.CA()
    chain, key = write_certificate(authority, tmp_path)
    await divide(tmp_path / "data")
    async with started(tmp_path / "data", "--certfile", chain, "--keyfile", key) as server:
        server.url = (await server.prints(r" at (https://\S+) "))[1]
        before = await serials_seen(server, authority, 20)
        assert len(before) == 1
        write_certificate(authority, tmp_path)
        server.send_signal(signal.SIGHUP)
        with trio.fail_after(PATIENCE_S):
            while server.log.count("the certificate is reloaded") < len(PARTITIONS):
                await trio.lowlevel.checkpoint()
        after = await serials_seen(server, authority, 20)
        assert len(after) == 1
        assert after != before
        assert await server.terminate() == 0


# Processes that do not start.


@pytest.mark.parametrize("had_users", [True, False])
async def test_a_damaged_partition_ends_the_server_with_its_sentence(tmp_path: Path, had_users: bool) -> None:
    """Whether its own process is the first to open it, or that of the root, which looks there for the first user."""
    data = tmp_path / "data"
    if had_users:
        await divide(data)
    else:
        make_partitions(data, 2)
    with data_file(partition_directory(data, 1)).open("r+b") as file:
        file.write(b"\xff" * 8192)
    async with started(data) as server:
        assert not await server.listens()
        assert await server.ended() == 1
    lines = [line for line in server.log.splitlines() if line.startswith("trunkline: ")]
    assert len(lines) == 1, server.log
    assert str(partition_directory(data, 1)) in lines[0]
    assert "Traceback" not in server.log or not had_users


async def locked(file: IO[str]) -> None:
    """Take the lock of a partition as soon as its process is gone: it starts again more slowly than this."""
    with trio.fail_after(PATIENCE_S):
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                await trio.lowlevel.checkpoint()


async def test_a_partition_that_fails_later_leaves_the_other_one_serving(tmp_path: Path) -> None:
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        known = await houses(server)
        async with connections(server, among=(ROOT,)) as found:
            (at,) = found[ROOT]
            with (partition_directory(tmp_path / "data", 1) / "lock").open("r+") as lock:
                os.kill(processes(server)[SECOND], signal.SIGKILL)
                await locked(lock)
                with trio.fail_after(PATIENCE_S):
                    while server.log.count("a process has ended") < 3:
                        await at.call("GET", known[ROOT].device, token=known[ROOT].token)
                assert (await at.send("GET", known[SECOND].device)).status == 503
            with trio.fail_after(PATIENCE_S):
                while (await at.send("GET", known[SECOND].device)).status != 200:
                    await trio.lowlevel.checkpoint()
        assert await server.terminate() == 0
    await checked(tmp_path / "data")
