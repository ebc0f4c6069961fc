"""The sweep of a partition, which finds in the root whether the job of a user that builds an application goes on."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import Server, running_server
from trunkline.actors.core.runtime.system import System
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import encode

ID = b"\x01" * keys.ID_BYTES


async def write(system: System, db: str, key: bytes, value: object) -> None:
    batch = Batch()
    batch.put(db, key, encode(value))
    await system.journal.submit(batch).wait()


async def is_there(server: Server, application: str) -> bool:
    async with server.client() as client:
        return (await client.get(application)).status_code == 200


async def test_an_application_that_a_job_in_the_root_builds_is_deleted_only_when_that_has_failed(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path / "data", partitions=2) as server:
        root, other = server.systems
        path = await server.application()
        application = bytes.fromhex(path.rpartition("/")[2])
        user = bytes.fromhex((await server.call("GET", "/me"))["id"])
        await write(root, keys.RECORDS, keys.record_key(JOB.name, user, ID), {"status": "running"})
        await write(other, keys.META, keys.building_key(application), [user, ID])
        for system in server.systems:
            await sweep(system)
        assert await is_there(server, path)
        await write(root, keys.RECORDS, keys.record_key(JOB.name, user, ID), {"status": "failed"})
        await sweep(root)
        assert await is_there(server, path), "its marker is in the other partition"
        await sweep(other)
        assert not await is_there(server, path)


async def test_an_application_whose_job_is_gone_with_its_user_is_deleted(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data", partitions=2) as server:
        other = server.systems[1]
        path = await server.application()
        application = bytes.fromhex(path.rpartition("/")[2])
        await write(other, keys.META, keys.building_key(application), [ID, ID])
        await sweep(other)
        assert not await is_there(server, path)
