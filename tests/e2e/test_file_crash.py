"""kill -9 while a directory is deleted: the next start goes on with it, and nothing of it is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, serving, trunkline
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk

FILES, CONNECTIONS, PART = 2_000, 10, 100


@pytest.mark.slow
async def test_a_directory_is_deleted_as_a_whole_across_two_kills(tmp_path: Path) -> None:
    data_dir, limits = tmp_path / "data", tmp_path / "limits.toml"
    limits.write_text(f"erased_files_max = {PART}\njob_progress_s = 0.005\n")
    options = ("--limits", str(limits))
    held = {**OWNER, "CRASH_HELD_JOB": "3"}
    async with serving(data_dir, *options, program=FAULTY, env=held) as server:
        application = await server.application()
        files = f"{application}/privateFiles"

        async def create(worker: int) -> None:
            async with server.client() as client:
                for number in range(FILES // CONNECTIONS):
                    body = {"name": f"{worker}/{number % 3}/{number}", "type": "file", "fileSize": 1}
                    made = await client.post(files, json={**body, "parentDirectory": "top"})
                    assert made.status_code == 201, made.text

        async with trio.open_nursery() as nursery:
            for worker in range(CONNECTIONS):
                nursery.start_soon(create, worker)
        whole = FILES + 4 * CONNECTIONS + 1
        await server.call("POST", files, {"name": "kept", "type": "directory"})
        assert (await server.call("GET", f"{files}?perPage=1"))["totalCount"] == whole + 1
        (top,) = (await server.call("GET", f"{files}?directory=/&filterField=name&filter=top"))["items"]
        # A directory of thousands of files is moved by one write.
        await server.call("POST", f"{files}/{top['id']}/move?name=moved", status=201)
        await server.call("DELETE", f"{files}/{top['id']}")
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{files}?perPage=1"))["totalCount"] > whole + 1 - 3 * PART:
                pass
        await server.kill()
    async with serving(data_dir, *options, program=FAULTY, env=held) as server:
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{files}?perPage=1"))["totalCount"] > whole + 1 - 6 * PART:
                pass
        left = (await server.call("GET", f"{files}?perPage=1000&status=pending"))["totalCount"]
        assert left == 0, "what is being deleted is shown as pending"
        await server.call("POST", files, {"name": "moved", "type": "directory"}, status=400)
        await server.kill()
    async with serving(data_dir, *options) as server:
        (log,) = (await server.call("GET", f"{application}/jobLogs"))["items"]
        after = await ended(server, application, log["id"])
        assert (after["status"], after["output"]) == ("completed", {"removed": whole})
        found = (await server.call("GET", files))["items"]
        assert [item["name"] for item in found] == ["kept"]
        await server.call("POST", files, {"name": "moved", "type": "directory"}, status=201)
        assert await server.terminate() == 0
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout
