"""Measures what a saved record costs a server beside many open streams. Run it from the checkout:

    .venv/bin/python tests/bench/saved_record.py [--streams 5000] [--saves 50]

Changes the description of an access key that nobody uses, first without streams, then beside streams of as many devices
with tokens of their own, and prints for each the processor time of the server and the time of the call, per change. It
speaks to a server in a process of its own over the wire, so it also runs on older checkouts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial

import httpx
import psutil
import trio

OWNER = {"TRUNKLINE_ADMIN_EMAIL": "saved@example.com", "TRUNKLINE_ADMIN_PASSWORD": "Correct-horse-7"}
KEEP_ALIVE_S = 60
PATIENCE_S = 600
ATTRIBUTES = [{"name": "temp", "dataType": "number"}]


async def stream(url: str, path: str, token: str, opened: trio.MemorySendChannel[None]) -> None:
    """Hold a command stream open."""
    host, port = url.removeprefix("http://").split(":")
    connection = await trio.open_tcp_stream(host, int(port))
    head = f"GET {path}?keepAliveInterval={KEEP_ALIVE_S} HTTP/1.1\r\nhost: {host}\r\n"
    head += f"authorization: Bearer {token}\r\n\r\n"
    async with connection:
        await connection.send_all(head.encode())
        first = True
        while data := await connection.receive_some():
            if first:
                assert data.startswith(b"HTTP/1.1 200"), data
                await opened.send(None)
                first = False


async def fleet(client: httpx.AsyncClient, application: str, devices: int) -> list[tuple[str, str]]:
    """Devices, each with a token: the paths of their streams, and the tokens."""
    key = (await client.post(f"{application}/keys", json={})).json()
    made: list[tuple[str, str]] = []
    for number in range(devices):
        body = {"name": f"device {number}", "attributes": ATTRIBUTES}
        id = (await client.post(f"{application}/devices", json=body)).json()["id"]
        login = {"deviceId": id, "key": key["key"], "secret": key["secret"]}
        token = (await client.post("/auth/device", json=login)).json()["token"]
        made.append((f"{application}/devices/{id}/commandStream", token))
    return made


async def saves(client: httpx.AsyncClient, path: str, server: psutil.Process, number: int) -> str:
    """Save a record so many times; what it cost."""
    before = server.cpu_times()
    took_s = []
    for each in range(number):
        began_s = time.perf_counter()
        (await client.patch(path, json={"description": f"{each}"})).raise_for_status()
        took_s.append(time.perf_counter() - began_s)
        await trio.sleep(0.2)  # what it wakes has its turn
    after = server.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    middle = sorted(took_s)[len(took_s) // 2]
    return f"{cpu_s / number * 1000:8.2f} ms of processor time, {middle * 1000:8.2f} ms a call (median)"


async def measure(url: str, server: psutil.Process, streams: int, number: int) -> None:
    """Print what a save costs without and with streams."""
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
        credentials = {"email": OWNER["TRUNKLINE_ADMIN_EMAIL"], "password": OWNER["TRUNKLINE_ADMIN_PASSWORD"]}
        answer = await client.post("/auth/user", json=credentials)
        client.headers["authorization"] = f"Bearer {answer.json()['token']}"
        application = f"/applications/{(await client.post('/applications', json={'name': 'a'})).json()['id']}"
        unused = f"{application}/keys/{(await client.post(f'{application}/keys', json={})).json()['id']}"
        sys.stdout.write(f"    0 streams: {await saves(client, unused, server, number)}\n")
        made = await fleet(client, application, streams)
        opened, openings = trio.open_memory_channel[None](streams)
        async with trio.open_nursery() as nursery:
            for path, token in made:
                nursery.start_soon(partial(stream, url, path, token, opened))
            for _ in made:
                await openings.receive()
            sys.stdout.write(f"{streams:5} streams: {await saves(client, unused, server, number)}\n")
            nursery.cancel_scope.cancel()


async def main() -> None:
    """Start a server, measure, stop it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=5000)
    parser.add_argument("--saves", type=int, default=50)
    chosen = parser.parse_args()
    trunkline = os.path.join(os.path.dirname(sys.executable), "trunkline")  # noqa: PTH118, PTH120 - beside this Python
    with tempfile.TemporaryDirectory() as directory:
        command = [trunkline, "serve", "--data", directory, "--port", "0", "--limits", "off"]
        process = await trio.lowlevel.open_process(
            command, env={**os.environ, **OWNER}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert process.stdout is not None
            printed = b""
            while not (found := re.search(rb"(http://[\d.]+:\d+) ", printed)):
                printed += await process.stdout.receive_some()
            await measure(found[1].decode(), psutil.Process(process.pid), chosen.streams, chosen.saves)
        finally:
            process.terminate()
            with trio.move_on_after(30, shield=True):
                await process.wait()


if __name__ == "__main__":
    trio.run(main)
