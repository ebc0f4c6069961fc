"""Prints the way of one state through the files of the server: which functions a known `POST .../state` calls.

    .venv/bin/python tests/bench/state_path.py

The server runs in this process and is called over a socket, 150 times before the call that is followed, so that
everything which is remembered has been. Counted are calls of Python functions of the project between the arrival of the
request and the answer. It needs nothing of the project but `trunkline.http.serve.serve`, so it also runs on older
checkouts: install one and run this file with its Python.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import trio

from trunkline.http.serve import serve
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits

EMAIL, PASSWORD = "path@example.com", "Correct-horse-7"
KNOWN_AFTER = 150
ROOMS = ("limits", "store", "actors", "http")
BODY = b'{"data":{"temp":21.5}}'


class Followed:
    """The calls of functions of the project, in order."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.calls: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(self._root):
            name = frame.f_code.co_filename.removeprefix(self._root).lstrip("/")
            if name.split("/")[0] in ROOMS:
                self.calls[f"{name} {frame.f_code.co_qualname}"] += 1


async def prepare(url: str) -> tuple[str, str]:
    """A device and a token of it: the path of its state, and the token."""
    async with httpx.AsyncClient(base_url=url) as client:
        answer = await client.post("/auth/user", json={"email": EMAIL, "password": PASSWORD})
        client.headers["authorization"] = f"Bearer {answer.json()['token']}"
        application = (await client.post("/applications", json={"name": "a"})).json()["id"]
        path = f"/applications/{application}"
        attributes = [{"name": "temp", "dataType": "number"}]
        device = await client.post(f"{path}/devices", json={"name": "d", "attributes": attributes})
        key = (await client.post(f"{path}/keys", json={})).json()
        body = {"deviceId": device.json()["id"], "key": key["key"], "secret": key["secret"]}
        token = (await client.post("/auth/device", json=body)).json()["token"]
    return f"{path}/devices/{body['deviceId']}/state", token


async def follow(url: str, path: str, token: str) -> Followed:
    """Post states through one connection, and follow the last one."""
    host, port = url.removeprefix("http://").split(":")
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(BODY)}\r\n\r\n"
    )
    request = head.encode() + BODY
    followed = Followed(str(Path(sys.modules[serve.__module__].__file__ or "").parent.parent))
    stream = await trio.open_tcp_stream(host, int(port))
    async with stream:
        for number in range(KNOWN_AFTER):
            if number == KNOWN_AFTER - 1:
                sys.setprofile(followed)
            await stream.send_all(request)
            answer = bytes(await stream.receive_some())
            sys.setprofile(None)
            assert answer.startswith(b"HTTP/1.1 200"), answer
    return followed


async def main() -> None:
    """Serve, follow one state, and print its way."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(
            data_dir=directory,
            port=0,
            admin_email=EMAIL,
            admin_password=PASSWORD,
            log_level="error",
            limits=Limits.off(),
        )
        stopping = trio.Event()
        async with trio.open_nursery() as nursery:
            start: Any = lambda task_status: serve(  # noqa: E731 - `start` gives keywords
                settings, shutdown=stopping.wait, task_status=task_status
            )
            serving = await nursery.start(start)
            followed = await follow(serving.url, *await prepare(serving.url))
            stopping.set()
    calls = followed.calls
    files = list(dict.fromkeys(name.split(" ")[0] for name in calls))
    summary = {"files": len(files), "functions": len(calls), "calls": calls.total()}
    sys.stdout.write("\n".join([*calls, "", " -> ".join(files), json.dumps(summary)]) + "\n")


if __name__ == "__main__":
    trio.run(main)
