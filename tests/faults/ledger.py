"""What a server was asked while its file system failed, what it said, and whether that is what it keeps.

Owns the calls (states one by one and many at a time, commands, records that are made, changed and deleted, files with
their contents, downloads, exports by jobs) and the comparison. A success means stored, an error means that nothing is
stored, and a connection that is cut without an answer means either. Does not own the faults.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx
import trio

from tests.e2e.conftest import Server
from tests.e2e.crash_load import FIRST_MS, LAST_MS
from tests.patience import PATIENCE_S

Json = dict[str, Any]

MANY: Final = 40
ONE_BY_ONE: Final = 12
LABEL_CHARS: Final = 4000
FILE_BYTES: Final = 60_000
LARGE_FILE_BYTES: Final = 1_600_000
"""Written and read in several pieces."""
EXPORT_LOOKS: Final = 200
EXPORT_LOOK_S: Final = 0.01
TOLD: Final = {500: "Internal", 503: "Overloaded", 507: "StorageFull"}
"""The errors that may tell of a file system that fails."""


class Unanswered(Exception):
    """The server did not say whether a call was done: mostly because it has ended."""


class Ledger:
    """The calls to one server, which may be started again and again, and their results."""

    def __init__(self) -> None:
        self.application = self.device = ""
        self.kept: dict[str, set[Any]] = {
            "states": set(),
            "commands": set(),
            "devices": set(),
            "files": set(),
            "exports": set(),
        }
        self.unknown: dict[str, set[Any]] = {name: set() for name in self.kept}
        self.vague = {"is not known", "is stopping"}
        """Parts of the sentences that leave open whether anything was stored."""
        self.told = dict(TOLD)
        """The errors that may tell of what fails, by their status."""
        self.refused = 0
        self._is_full = False
        self._number = 0
        self._made: list[tuple[str, str]] = []
        self._large_file = self.link = self._export = ""

    async def prepare(self, server: Server) -> None:
        """Make the application and the device that the calls are about, while nothing fails."""
        self.application = await server.application()
        self.device = await server.device(self.application)
        self.kept["devices"].add("pump")
        assert await self.upload_large(server)
        (file,) = await self._items(server, "privateFiles")
        self._large_file = f"{self.application}/privateFiles/{file['id']}"
        await self.renew_link(server)

    async def renew_link(self, server: Server) -> None:
        """Read the link again at which the large file is downloaded: it expires after a while."""
        link = (await server.call("GET", self._large_file))["url"]
        self.link = link[link.index("/", len("http://")) :]

    @property
    def works(self) -> dict[str, Callable[[Server], Awaitable[bool]]]:
        """All calls by name. Each returns whether it has succeeded."""
        return {
            "a state": self.send_state,
            "many states": self.send_states,
            "states one by one": self.send_one_by_one,
            "a command": self.send_command,
            "a device": self.make_device,
            "a renamed device": self.rename_device,
            "a deleted device": self.delete_device,
            "a file": self.upload,
            "a large file": self.upload_large,
            "a download": self.download,
            "an export": self.export,
        }

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def _call(self, server: Server, method: str, path: str, body: Any = None, **given: Any) -> Any:
        """The body of a success, {} if the call was done but not noted; None after an error that says that nothing was.

        Raises Unanswered.
        """
        json = {} if body is None else {"json": body}
        try:
            async with server.client(given.pop("token", None)) as client:
                response = await client.request(method, path, **json, **given)
        except httpx.TransportError as cut:
            raise Unanswered(str(cut)) from cut
        if response.is_success:
            return response.json()
        told = response.json()
        assert self.told.get(response.status_code) == told["type"], (
            path,
            response.status_code,
            response.text,
        )
        if "The call was done" in told["message"]:
            return {}
        if any(part in told["message"] for part in self.vague):
            raise Unanswered(told["message"])
        assert "nothing of th" in told["message"], response.text
        self.refused += 1
        self._is_full = response.status_code == 507
        return None

    async def _write(
        self,
        server: Server,
        book: str,
        facts: set[Any],
        method: str,
        path: str,
        body: Any,
        *,
        gone: bool = False,
    ) -> Any:
        """Make a call that stores `facts`, or removes them (`gone`)."""
        try:
            answer = await self._call(server, method, path, body)
        except Unanswered:
            self.unknown[book] |= facts
            raise
        if answer is not None:
            self.kept[book] = self.kept[book] - facts if gone else self.kept[book] | facts
        return answer

    async def _send(self, server: Server, numbers: list[int], chars: int) -> bool:
        label = "".join(hashlib.sha256(b"%d %d" % (numbers[0], n)).hexdigest() for n in range(chars // 64))
        body = [{"time": FIRST_MS + n, "data": {"temp": n, "label": label}} for n in numbers]
        path = f"{self.device}/state"
        return await self._write(server, "states", set(numbers), "POST", path, body) is not None

    async def send_state(self, server: Server) -> bool:
        return await self._send(server, [self._next()], 0)

    async def send_states(self, server: Server) -> bool:
        return await self._send(server, [self._next() for _ in range(MANY)], LABEL_CHARS)

    async def send_one_by_one(self, server: Server) -> bool:
        """For as long as what was sent may be flushed meanwhile. Returns whether all have succeeded."""
        return all([await self.send_state(server) for _ in range(ONE_BY_ONE)])

    async def send_command(self, server: Server) -> bool:
        name = f"c{self._next()}"
        sent = await self._write(server, "commands", {name}, "POST", f"{self.device}/command", {"name": name})
        return sent is not None

    async def make_device(self, server: Server) -> bool:
        name = f"device {self._next()}"
        made = await self._write(
            server, "devices", {name}, "POST", f"{self.application}/devices", {"name": name}
        )
        if made:
            self._made.append((name, f"{self.application}/devices/{made['id']}"))
        return made is not None

    async def rename_device(self, server: Server) -> bool:
        if not self._made and not (await self.make_device(server) and self._made):
            return False
        before, path = self._made.pop()
        name = f"device {self._next()}"
        try:
            changed = await self._write(server, "devices", {name}, "PATCH", path, {"name": name})
        except Unanswered:
            self.unknown["devices"].add(before)
            raise
        if changed is not None:
            self.kept["devices"].discard(before)
            self._made.append((name, path))
        else:
            self._made.append((before, path))
        return changed is not None

    async def delete_device(self, server: Server) -> bool:
        if not self._made and not (await self.make_device(server) and self._made):
            return False
        name, path = self._made.pop()
        done = await self._write(server, "devices", {name}, "DELETE", path, None, gone=True)
        if done is None:
            self._made.append((name, path))
        return done is not None

    async def upload(self, server: Server, size_bytes: int = FILE_BYTES) -> bool:
        """A file with its content: one that is complete has all of it, one whose content was refused is not."""
        number = self._next()
        name, content = f"f{number}.bin", number.to_bytes(4, "big") * (size_bytes // 4)
        body = {"name": name, "type": "file", "fileSize": len(content), "parentDirectory": "/"}
        made = await self._call(server, "POST", f"{self.application}/privateFiles", body)
        if not made:
            return False
        form = made["upload"]
        parts = {"data": form["fields"], "files": {"file": (name, content)}}
        try:
            sent = await self._call(server, "POST", form["url"], token="", **parts)
        except Unanswered:
            self.unknown["files"].add((name, number))
            raise
        if sent is not None:
            self.kept["files"].add((name, number))
        return sent is not None

    async def upload_large(self, server: Server) -> bool:
        return await self.upload(server, LARGE_FILE_BYTES)

    async def download(self, server: Server) -> bool:
        """A large file again: either all of it is right, or it is refused, or it is cut off."""
        try:
            async with server.client("") as client:
                response = await client.get(f"{server.url}{self.link}")
        except httpx.RemoteProtocolError:
            return False
        except httpx.TransportError as cut:
            raise Unanswered(str(cut)) from cut
        if response.is_success:
            assert content_number(response.content) is not None, "a download was wrong"
        else:
            assert TOLD.get(response.status_code) == response.json()["type"], response.text
        return response.is_success

    async def export(self, server: Server) -> bool:
        """All states, by a job and its file. Returns whether that is complete soon."""
        if self._export and await self._ended(server) is None:
            return False
        queued = await self._call(server, "POST", f"{self.device}/export", {})
        if not queued:
            return False
        self._export = queued["jobId"]
        self.kept["exports"].add(self._export)
        return bool(await self._ended(server))

    async def _ended(self, server: Server) -> bool | None:
        """Whether the export that was queued last is complete; None if it runs still, after a while."""
        for _ in range(EXPORT_LOOKS):
            found = await self._exported(server, self._export)
            if found is not None:
                self._export = ""
                return found
            await trio.sleep(EXPORT_LOOK_S)
        return None

    async def _exported(self, server: Server, job: str) -> bool | None:
        """Whether an export is complete, with a file that is right; None while it runs."""
        try:
            async with server.client() as client:
                log = (await client.get(f"{self.application}/jobLogs/{job}")).json()
                if "runCompletedAt" not in log:
                    return None
                if log["status"] != "completed":
                    return False
                file = log["output"]["file"]
                response = await client.get(f"{server.url}/downloads?{file['url'].partition('?')[2]}")
        except httpx.TransportError as cut:
            raise Unanswered(str(cut)) from cut
        if response.is_success:
            assert hashlib.sha256(response.content).hexdigest() == file["sha256"], (
                "the file of an export is wrong"
            )
        return response.is_success

    async def _exports(self, server: Server) -> set[str]:
        """Those that were queued and have ended: all of them."""
        with trio.fail_after(PATIENCE_S):
            for job in self.kept["exports"]:
                while await self._exported(server, job) is None:  # noqa: ASYNC110 - another process ends it
                    await trio.sleep(EXPORT_LOOK_S)
        return set(self.kept["exports"])

    async def until_it_works(self, server: Server, work: Callable[[Server], Awaitable[bool]]) -> None:
        """Make a call while nothing fails. Only room on the disk may take a moment to be found again."""
        refused = self.refused
        with trio.fail_after(PATIENCE_S):
            while not await work(server):
                assert self._is_full, "the next call does not work"
                await trio.lowlevel.checkpoint()
        self.refused = refused

    async def audit(self, server: Server) -> int:
        """Read everything back and compare; returns how many facts were found."""
        found = {
            "states": await self._states(server),
            "commands": {each["name"] for each in await self._page(server, f"{self.device}/command")},
            "devices": {each["name"] for each in await self._items(server, "devices")},
            "files": await self._files(server),
            "exports": await self._exports(server),
        }
        for book, kept in self.kept.items():
            unknown = self.unknown[book]
            lost, strange = kept - found[book] - unknown, found[book] - kept - unknown
            assert not lost, f"{book}: acknowledged and lost: {sorted(lost)[:5]}"
            assert not strange, f"{book}: refused and stored: {sorted(strange)[:5]}"
            self.kept[book], self.unknown[book] = found[book], set()
        return sum(map(len, found.values()))

    async def _page(self, server: Server, path: str, first_ms: int = 2) -> list[Json]:
        query = {"start": first_ms, "end": LAST_MS, "limit": 1000, "sortDirection": "asc"}
        page: list[Json] = await server.call("GET", path, params=query)
        return page

    async def _states(self, server: Server) -> set[int]:
        found: set[int] = set()
        while True:
            page = await self._page(server, f"{self.device}/state", FIRST_MS + max(found, default=0) + 1)
            found |= {each["data"]["temp"] for each in page}
            if len(page) < 1000:
                return found

    async def _items(self, server: Server, many: str) -> list[Json]:
        items: list[Json] = []
        while True:
            query = {"page": len(items) // 100, "perPage": 100}
            page = await server.call("GET", f"{self.application}/{many}", params=query)
            items += page["items"]
            if len(page["items"]) < 100:
                assert len(items) == page["totalCount"], (len(items), page["totalCount"])
                return items

    async def _files(self, server: Server) -> set[tuple[str, int]]:
        found: set[tuple[str, int]] = set()
        async with server.client("") as client:
            for file in await self._items(server, "privateFiles"):
                if file["status"] == "completed":
                    one = await server.call("GET", f"{self.application}/privateFiles/{file['id']}")
                    content = (await client.get(one["url"])).content
                    number = content_number(content)
                    assert number is not None, file
                    found.add((file["name"], number))
        return found


def content_number(content: bytes) -> int | None:
    """The number that a file of ours repeats to its end; None if it is not whole or not ours."""
    if len(content) not in (FILE_BYTES, LARGE_FILE_BYTES) or content != content[:4] * (len(content) // 4):
        return None
    return int.from_bytes(content[:4], "big")
