"""Slots of files: readers that take nothing, and uploads that stall, cost their own owner and address."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import trio

from tests.e2e.conftest import Json, Server
from tests.e2e.neighbours import Tenant, neighbours
from tests.e2e.sse_client import until
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.downloads import Downloads
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.core.values.errors import StorageFull

LARGE = bytes(12_000_000)
"""More than sockets hold."""
SMALL = b"small"


async def order(tenant: Tenant, application: str, size: int) -> Json:
    """A new public file that waits for its content."""
    body = {"name": f"file{size}", "type": "file", "fileSize": size, "parentDirectory": "/"}
    return await tenant.call("POST", f"{application}/files", body, status=201)


async def public_file(tenant: Tenant, application: str, data: bytes) -> str:
    """The address of a public file with this content."""
    made = await order(tenant, application, len(data))
    async with tenant.server.client("") as client:
        form = made["upload"]
        sent = await client.post(form["url"], data=form["fields"], files={"file": ("name", data)})
        assert sent.status_code == 200, sent.text
    return str((await tenant.call("GET", f"{application}/file/{made['id']}"))["url"])


async def request(server: Server, held: AsyncExitStack, text: str, body: bytes = b"") -> trio.SocketStream:
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    stream = await held.enter_async_context(await trio.open_tcp_stream(host, int(port)))
    await stream.send_all(text.replace("\n", "\r\n").encode() + body)
    return stream


async def reader(server: Server, held: AsyncExitStack, url: str, address: str) -> trio.SocketStream:
    """Ask for a file, and take nothing of it."""
    path = urlsplit(url).path
    return await request(server, held, f"GET {path} HTTP/1.1\nHost: a\nX-Forwarded-For: {address}\n\n")


async def status(server: Server, url: str, address: str) -> int:
    async with server.client("") as client:
        return (await client.get(url, headers={"X-Forwarded-For": address})).status_code


async def test_readers_that_take_nothing_cost_their_address_and_their_owner_only(start_server: Any) -> None:
    settings = {"limits": {"file_downloads_max": 16}, "trust_forwarded_for": True}
    async with start_server(**settings) as server, AsyncExitStack() as held:
        greedy, quiet = await neighbours(server, 2)
        large = [await public_file(greedy, each, LARGE) for each in greedy.applications]
        own = await public_file(quiet, quiet.applications[0], SMALL)
        downloads = server.system.component(Downloads)
        for number in range(16):
            await reader(server, held, large[number % 2], "10.0.0.1")
        await until(lambda: downloads.running == 4)
        assert await status(server, large[0], "10.0.0.1") == 503
        assert await status(server, large[0], "10.0.0.2") == 200
        assert await status(server, own, "10.0.0.2") == 200
        for number in range(16):
            await reader(server, held, large[number % 2], f"10.0.1.{number}")
        await until(lambda: downloads.running == 8)
        assert await status(server, large[1], "10.0.0.3") == 503
        assert [await status(server, own, f"10.0.2.{number}") for number in range(20)] == [200] * 20


async def test_stalled_uploads_cost_their_owner_only(start_server: Any) -> None:
    async with start_server(limits={"uploads_max": 8}) as server, AsyncExitStack() as held:
        greedy, quiet = await neighbours(server, 8)
        uploads = server.system.component(Uploads)
        for application in greedy.applications:
            form = (await order(greedy, application, 1_000_000))["upload"]
            whole = httpx.Request(
                "POST", form["url"], data=form["fields"], files={"file": ("n", bytes(1_000_000))}
            )
            body = whole.read()
            type = whole.headers["content-type"]
            head = f"POST {urlsplit(form['url']).path} HTTP/1.1\nHost: a\nContent-Type: {type}\n"
            await request(server, held, f"{head}Content-Length: {len(body)}\n\n", body[:100_000])
        await until(lambda: uploads.running == 4)
        assert await status(server, await public_file(quiet, quiet.applications[0], SMALL), "10.0.0.1") == 200
        assert uploads.running == 4


async def test_one_owner_cannot_fill_the_room_for_files_of_the_server(start_server: Any) -> None:
    """Nine tenths may be one owner's; in the last one an owner has as many bytes as stay free."""
    async with start_server(limits={"files_bytes_max": 100_000}) as server:
        greedy, quiet = await neighbours(server, 4)

        async def put(tenant: Tenant, application: str, size: int) -> str:
            """Upload a file of so many bytes; the sentence if it is refused."""
            form = (await order(tenant, application, size))["upload"]
            async with server.client("") as client:
                sent = await client.post(form["url"], data=form["fields"], files={"file": ("a", bytes(size))})
            assert sent.status_code in (200, 507), sent.text
            return "" if sent.is_success else str(sent.json()["message"])

        for application in greedy.applications[:3]:
            assert await put(greedy, application, 30_000) == ""
        refused = await put(greedy, greedy.applications[3], 1)
        assert "The files of this owner would have 90001 bytes, and 9999 would stay free" in refused
        assert "files_bytes_max" in refused
        place = quiet.applications[0]
        assert await put(quiet, place, 5_000) == ""
        assert "would have 5001 bytes, and 4999 would stay free" in await put(quiet, place, 1)
        assert not server.system.component(Contents).writing


async def test_uploads_at_the_same_time_count_together_for_the_room(start_server: Any) -> None:
    async with start_server(limits={"files_bytes_max": 100_000}) as server:
        greedy, _ = await neighbours(server, 2)
        contents = server.system.component(Contents)
        ids = [bytes.fromhex(each.rpartition("/")[2]) for each in greedy.applications]
        async with (
            contents.draft(ids[0], bytes(12), 60_000) as one,
            contents.draft(ids[1], bytes(12), 60_000) as two,
        ):
            await one.write(bytes(50_000))
            with pytest.raises(StorageFull, match="operator"):
                await two.write(bytes(50_001))
