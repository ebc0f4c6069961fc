"""Contents in a bundle, and what the writer does in a worker thread beside a running system."""

from __future__ import annotations

import hashlib
import io
import tracemalloc
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from tests.actors.house import House, running_house
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.data.files.messages import CreateFile, FilePost
from trunkline.actors.data.tables.messages import CreateDataTable, InsertRows, TablePost
from trunkline.actors.portability.bundles.writer import write_bundle
from trunkline.store.snapshot import Snapshot

BY = Creator("0" * 24, "user", "somebody")


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]


async def make_file(house: House, tree: Any, content: bytes | None, **body: Any) -> str:
    """A complete file, or a directory; the answer is its id."""
    contents, stored, content_id = house.system.component(Contents), None, None
    if content is not None:
        now_ms = house.clock.wall_ms()
        content_id = house.system.ids.new(now_ms)
        await contents.reserve_now(house.application, content_id, now_ms + 60_000)
        stored = await contents.write(house.application, content_id, pieces(content), 10**9)
    message = CreateFile(
        tree=tree, body=msgspec.convert(body, FilePost), by=BY, content=content_id, stored=stored
    )
    ref = Ref("fileTree", house.application, house.application)
    id: bytes = (await house.system.ask(ref, message)).value.id
    return id.hex()


async def written(house: House, **options: bool) -> tuple[zipfile.ZipFile, dict[Any, int]]:
    """A bundle of the application, and its numbers of lines."""
    sink = io.BytesIO()

    def write(piece: bytes) -> None:
        sink.write(piece)

    def work(snapshot: Snapshot) -> dict[Any, int]:
        return write_bundle(house.system, snapshot, house.application, options, write)

    counts = await house.system.read(work)
    return zipfile.ZipFile(sink), counts


def lines(archive: zipfile.ZipFile, name: str) -> list[Any]:
    return [msgspec.json.decode(line) for line in archive.read(f"resources/{name}.jsonl").splitlines()]


async def test_files_are_in_it_with_their_directories_and_contents(tmp_path: Path) -> None:
    large = bytes(range(256)) * 5000
    async with running_house(tmp_path / "data") as house:
        inner = await make_file(house, "file", large, name="büro 2.bin", type="file", parentDirectory="b/a")
        top = await make_file(house, "file", b"", name="empty", type="file", contentType="text/plain")
        await make_file(house, "file", None, name="pending", type="file", fileSize=5)
        secret = await make_file(house, "privateFile", b"only mine", name="x", type="file")
        archive, counts = await written(house, includeFiles=True, includePrivateFiles=True)
        assert (counts["File"], counts["PrivateFile"]) == (4, 1)
        found = lines(archive, "File")
        assert [(line["body"]["parentDirectory"], line["body"]["name"]) for line in found] == [
            ("/", "b"),
            ("/b", "a"),
            ("/b/a", "büro 2.bin"),
            ("/", "empty"),
        ]
        assert found[0]["body"] == {"name": "b", "parentDirectory": "/", "type": "directory"}
        assert found[2]["more"] == {"size": len(large), "sha256": hashlib.sha256(large).hexdigest()}
        assert found[3]["body"]["contentType"] == "text/plain"
        for line in (*found, *lines(archive, "PrivateFile")):
            msgspec.convert(line["body"], FilePost)
        assert archive.read(f"files/{inner}") == large
        assert archive.read(f"files/{top}") == b""
        # A file of zeros would otherwise be a thousand times smaller, and refused by an import.
        zeros = await make_file(house, "privateFile", bytes(10**6), name="zeros", type="file")
        archive, _ = await written(house, includePrivateFiles=True)
        assert archive.read(f"privateFiles/{zeros}") == bytes(10**6)
        assert archive.getinfo(f"privateFiles/{zeros}").compress_size > 10**6
        assert archive.getinfo("resources/PrivateFile.jsonl").compress_type == zipfile.ZIP_DEFLATED
        assert archive.read(f"privateFiles/{secret}") == b"only mine"
        archive, counts = await written(house, includePrivateFiles=True)
        assert "File" not in counts
        assert not [name for name in archive.namelist() if name.startswith("files/")]


async def test_memory_does_not_grow_with_the_rows_and_the_devices(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        table = Ref("dataTable", house.application, house.system.ids.new(house.clock.wall_ms()))
        columns = [{"name": "a", "dataType": "string", "constraint": "optional"}]
        body = msgspec.convert({"name": "t", "columns": columns}, TablePost)
        await house.system.ask(table, CreateDataTable(body=body))
        options = {"includeDevices": True, "includeDataTableRows": True}

        def peak(snapshot: Snapshot) -> int:
            tracemalloc.start()
            try:
                write_bundle(house.system, snapshot, house.application, options, lambda _: None)
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        peaks = []
        for rows, devices in ((100, 20), (3000, 200)):
            for start in range(0, rows, 1000):
                fresh = [{"a": f"row {start + number}"} for number in range(min(rows, 1000))]
                await house.system.ask(table, InsertRows(body=fresh))
            gateway = await house.device({}, deviceClass="gateway")
            for _ in range(devices):
                await house.device({"temp": "number"}, deviceClass="peripheral", gatewayId=gateway.hex())
            await house.flush()  # so that nothing is flushed meanwhile
            await house.system.read(peak)
            peaks.append(await house.system.read(peak))
        assert peaks[1] < peaks[0] + 100_000
