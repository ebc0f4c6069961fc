"""A server on two machines, with a real log: one serves at the addresses of both, and the other one when it has ended.

None is replaced because it is silent, as on a busy machine it might be; `test_standby_lost.py` has that.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio

from tests.e2e.conftest import PASSWORD
from tests.e2e.link_peer import linked
from tests.e2e.machines import Machines, copied, machines_in, made, read, report, states
from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.server_process import ServerProcess, serving, trunkline
from tests.e2e.sse_client import opened_stream
from tests.e2e.test_exports import export, fetched, rows
from tests.nats_servers import NatsServer
from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.nats_connection import NatsConnection

pytestmark = [pytest.mark.slow]


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    async with machines_in(tmp_path, silence_ms=60_000) as found:
        yield found


async def test_a_machine_that_stands_by_serves_every_protocol(machines: Machines) -> None:
    async with machines.serving("a") as one:
        application, device = await made(one)
        token, _ = await one.device_token(device)
        sensor = await one.device(application, attributes=[{"name": "n", "dataType": "number"}])
        name = sensor.rpartition("/")[2]
        key = await one.call("POST", f"{application}/keys", {})
        login = {"username": key["key"], "password": key["secret"].encode()}
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one, "--mqtt-port", "0") as two:
            port = int((await two.prints(r"MQTT: \S+ port (\d+)"))[1])
            async with (
                opened_stream(two, device) as stream,
                linked(two, device, token) as (link, _),
                mqtt_client(port) as client,
            ):
                await two.call("POST", f"{device}/command", {"name": "go", "payload": 7})
                assert await stream.names(1) == ["go"]
                await link.send(1, 1, int(time.time() * 1000), {"n": 1})
                assert await link.until_stored(1)
                await client.connect(name, **login)
                answer = await client.publish(f"trunkline/{name}/state", b'{"data": {"n": 2}}', qos=1)
                assert answer.code == packets.SUCCESS
                large = {"name": "large", "type": "file", "contentType": "text/plain"}
                file = await two.call("POST", f"{application}/privateFiles", large)
                path = f"{application}/privateFiles/{file['privateFileId']}"
                content = bytes(range(256)) * 8000
                await two.call("POST", f"{path}/upload", None, files={"privateFile": ("large", content)})
                async with httpx.AsyncClient() as plain:
                    url = (await two.call("GET", path))["url"]
                    assert (await plain.get(url.replace(one.url, two.url))).content == content
                # The streams end with the machine that served them, and clients come again at the same address.
                assert await one.terminate() == 0
                assert await stream.event() is None
                assert (await link.close_code())[0] == 4503
                assert await client.farewell() == packets.SERVER_SHUTTING_DOWN
            assert (await states(two, device), await states(two, sensor)) == ([1], [2])
            async with opened_stream(two, device) as stream, linked(two, device, token):
                await two.call("POST", f"{device}/command", {"name": "on"})
                assert await stream.names(1) == ["on"]


async def file_and_page(server: ServerProcess, application: str) -> tuple[str, str]:
    """Make a file, and a page of an experience. Returns where visitors find them."""
    new = {"name": "small", "type": "file", "contentType": "text/plain"}
    file = await server.call("POST", f"{application}/privateFiles", new)
    path = f"{application}/privateFiles/{file['privateFileId']}"
    await server.call("POST", f"{path}/upload", None, files={"privateFile": ("small", b"small")})
    await server.call("PATCH", application, {"endpointSlug": "plant"})
    reply = {"type": "redirect", "value": "/elsewhere"}
    endpoint = {"method": "get", "route": "/page", "access": "public", "staticReply": reply}
    await server.call("POST", f"{application}/experience/endpoints", endpoint)
    content, page = (await server.call("GET", path))["url"], f"{server.url}/x/plant/page"
    async with httpx.AsyncClient() as visitor:
        assert (await visitor.get(content)).content == b"small"
        assert (await visitor.get(page)).status_code == 302
    return content, page


async def test_while_the_log_is_away_nothing_is_acknowledged_and_nothing_lost(machines: Machines) -> None:
    async with machines.started("a", "--mqtt-port", "0") as server, trio.open_nursery() as nursery:
        assert await server.listens()
        server.token = await server.log_in()
        port = int((await server.prints(r"MQTT: \S+ port (\d+)"))[1])
        application, device = await made(server)
        key = await server.call("POST", f"{application}/keys", {})
        await report(server, device, 1)
        content, page = await file_and_page(server, application)
        async with mqtt_client(port) as client:
            await client.connect("reader", username=key["key"], password=key["secret"].encode())
            assert (await client.publish("plant/door", b"open", qos=1, retain=True)).code < 0x80
            await machines.nats.kill()
            nursery.start_soon(report, server, device, 2)
            async with server.client() as caller:
                with trio.fail_after(PATIENCE_S):
                    while (answer := await caller.get(device)).status_code == 200:
                        pass
                assert answer.status_code == 503
                assert "another machine may own the data" in answer.json()["message"]
                # Another machine may have what is missing here.
                no_device = f"{application}/devices/{application[-24:]}"
                assert [(await caller.get(no_device)).status_code for _ in range(2)] == [503, 503]
                log_in = {"deviceId": device[-24:], "key": key["key"], "secret": key["secret"]}
                for path, body in ((f"{no_device}/state", {"data": {}}), ("/auth/device", log_in)):
                    assert (await caller.post(path, json=body)).status_code == 503
            async with mqtt_client(port) as other:
                refused = await other.connect("other", username=key["key"], password=b"wrong")
                assert refused.code == packets.SERVER_BUSY
            async with httpx.AsyncClient() as visitor:
                for url in (content, page, page + "/none"):
                    assert (await visitor.get(url)).status_code == 503, url
                figures = (await visitor.get(f"{server.url}/metrics")).text
                assert "\ntrunkline_file_downloads_open 0.0\n" in figures
            await client.send(
                writer.subscribe(V5, packets.Subscribe(1, (packets.Filter("plant/door", 1),), {}))
            )
            await client.expect(packets.SubAck)
            assert await client.farewell() == packets.SERVER_BUSY
        await machines.nats.start(nursery)
        await read(server, device)
        await report(server, device, 3)
        assert sorted(await states(server, device)) == [1, 2, 3]
        await machines.nats.kill()
        async with server.client() as caller:
            caller.event_hooks = {}  # 502 is documented for all operations together

            async def call_with_key() -> None:
                headers = {"Idempotency-Key": '"a"'}
                answer = await caller.post(f"{device}/state", json={"data": {"n": 4}}, headers=headers)
                assert answer.status_code == 502, answer.text
                assert "Nobody knows whether it was done" in answer.json()["message"]
                is_answered.set()

            is_answered = trio.Event()
            nursery.start_soon(call_with_key)
            # When reads are refused, the call waits, as it was sent before all of them.
            with trio.fail_after(PATIENCE_S):
                while (await caller.get(device)).status_code == 200:
                    pass
            assert await server.terminate() == 0
            await is_answered.wait()
        nursery.cancel_scope.cancel()


async def test_a_machine_without_the_secret_of_the_log_is_refused(machines: Machines) -> None:
    async with machines.serving("a") as one:
        await made(one)
        assert await one.terminate() == 0
    assert "secret is missing, and the log tl-trunkline-0 is there already" in await machines.refused("b")
    machines.copy_secrets("a", "b")
    (machines.folder / "b" / "secret").write_text("0" * 64 + "\n")
    assert "The node a has another secret or other encryption keys than" in await machines.refused("b")


async def test_a_log_that_is_lost_is_not_made_again(machines: Machines) -> None:
    async with machines.serving("a") as one:
        await made(one)
        assert await one.terminate() == 0
    await machines.nats.kill()
    shutil.rmtree(machines.folder / "nats" / "a")
    async with trio.open_nursery() as nursery:
        await machines.nats.start(nursery)
        said = await machines.refused("a")
        nursery.cancel_scope.cancel()
    assert "The log tl-trunkline-0 does not exist" in said
    assert "It is never made again by itself: `trunkline cluster new-log` does" in said


async def test_a_server_with_data_gets_a_log_and_the_other_machine_a_copy(machines: Machines) -> None:
    async with serving(machines.folder / "a", "--limits", "off") as server:
        application, device = await made(server)
        await report(server, device, 1)
        _, before_log = await export(server, device)
        token = server.token
        assert await server.terminate() == 0
    async with machines.serving("a") as one:
        one.token = token
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            await report(two, device, 2)
            await copied(two)
            await report(two, device, 3)
            _, with_log = await export(two, device)
            assert await one.terminate() == 0
            assert await two.listens()
            assert await states(two, device) == [1, 2, 3]
            for job, length in ((before_log, 1), (with_log, 3)):
                shown = await two.call("GET", f"{application}/jobLogs/{job['id']}")
                assert len(rows(await fetched(two, shown["output"]["file"]["url"]))) == 1 + length
            # The machine that began the log has not its data any more, and the log never had all of them.
            done = await machines.command("a", "cluster", "rejoin")
            assert done.returncode == 0, done.stderr
            async with machines.standing_by("a", two) as again:
                await copied(again)
                assert await two.terminate() == 0
                assert await again.listens()
                assert await states(again, device) == [1, 2, 3]
                assert await again.terminate() == 0
    assert not (machines.folder / "b" / "incoming").exists()
    found = await trunkline("check", "--data", str(machines.folder / "b"), env=machines.env("b"))
    assert found.returncode == 0, found.stdout


async def test_a_machine_that_was_away_for_too_long_gets_a_copy(machines: Machines) -> None:
    async with machines.serving("a") as one:
        _, device = await made(one)
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            assert await two.terminate() == 0
        await report(one, device, 1)
        await trim(machines.nats)
        await report(one, device, 2)
        async with machines.standing_by("b", one) as two:
            await copied(two)
            assert await one.terminate() == 0
            assert await two.listens()
            assert await states(two, device) == [1, 2]
            assert await two.terminate() == 0


async def trim(nats: NatsServer) -> None:
    """Remove all that is in the log."""
    connection = NatsConnection([nats.address])
    async with trio.open_nursery() as nursery:
        await nursery.start(connection.run)
        log = JetStreamLog(connection, "tl-trunkline-0", "tl.trunkline.0.entries")
        await log.trim((await log.state()).last + 1)
        nursery.cancel_scope.cancel()


async def test_every_machine_tells_of_all(machines: Machines) -> None:
    async with machines.serving("a") as one:
        await made(one)
        machines.copy_secrets("a", "b")
        with reserved_port() as port:
            machines.addresses["b"] = f"127.0.0.1:{port}"
        async with machines.standing_by("b", one) as two:
            for server in (one, two):
                told = await status(server, machines, rf"b at 127.0.0.1:{port}: follows, \d+ behind")
                assert re.search(r"a at \S+: serves, epoch 1\n", told)
                assert "At risk: One NATS server keeps the log: it is lost with that.\n" in told
            async with two.client("") as client:
                text = (await client.get("/metrics")).text
            assert 'trunkline_machine_up{machine="b"} 1.0' in text
            assert "trunkline_cluster_epoch 1.0" in text
            refused = await trunkline("user", "list", "--data", str(machines.folder / "b"))
            assert "This machine stands by: run the command on the machine that serves" in refused.stderr


async def test_a_machine_tells_of_a_log_that_is_lost(machines: Machines) -> None:
    """As when all NATS servers are gone, or refuse the login."""

    async def told(ready: tuple[int, str], log_up: float) -> None:
        with trio.fail_after(PATIENCE_S):
            async with httpx.AsyncClient(base_url=one.url, timeout=PATIENCE_S, trust_env=False) as client:
                while (answer := await client.get("/readyz")).status_code != ready[0]:
                    await trio.lowlevel.checkpoint()
                assert answer.json() == {"status": ready[1]}
                while f"trunkline_log_up {log_up}\n" not in (await client.get("/metrics")).text:
                    await trio.lowlevel.checkpoint()

    async with machines.serving("a") as one, trio.open_nursery() as nursery:
        await told((200, "ready"), 1.0)
        await machines.nats.kill()
        await told((503, "waiting"), 0.0)
        done = await machines.command("a", "cluster", "status")
        assert done.returncode == 1
        risk = f"At risk: The log cannot be reached, so nothing can be stored: {machines.nats.address}: "
        assert risk in done.stdout
        await machines.nats.start(nursery)
        await told((200, "ready"), 1.0)
        assert await one.terminate() == 0
        nursery.cancel_scope.cancel()


async def status(server: ServerProcess, machines: Machines, pattern: str) -> str:
    """What a machine tells of all, as soon as it has heard what is looked for."""
    with trio.fail_after(PATIENCE_S):
        while True:
            done = await trunkline("cluster", "status", "--data", str(server.data_dir))
            if re.search(pattern, done.stdout) and "bytes" in done.stdout:
                assert done.returncode == 1
                return done.stdout


async def test_two_machines_of_one_name_are_refused(machines: Machines) -> None:
    async with machines.serving("a") as one:
        await made(one)
        machines.copy_secrets("a", "b")
        machines.copy_secrets("a", "c")
        async with machines.standing_by("c", one) as two:
            said = await machines.refused("b", node="a")
            assert two.log.count("clients are passed on") == 1, "to nobody else"
            assert await two.terminate() == 0
        assert said == (
            "trunkline: Another machine with this log is named a as well. Give each one a cluster_node of its own."
        )
        assert await one.terminate() == 0


async def test_a_machine_that_was_written_without_the_log_is_no_copy(machines: Machines) -> None:
    """As by a command while no server runs."""
    data = machines.folder / "a"
    async with machines.serving("a") as one:
        await made(one)
        assert await one.terminate() == 0
    added = await trunkline(
        "user", "add", "ann@example.com", "--password", PASSWORD, "--data", str(data), env=machines.env("a")
    )
    assert added.returncode == 0, added.stderr
    assert (
        f"{data} was written without the log. Restore a backup of a in its place"
        in await machines.refused("a")
    )
