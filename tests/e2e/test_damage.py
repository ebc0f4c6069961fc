"""A server whose store is damaged while it runs: it says so, and it does not die again and again."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import PASSWORD
from tests.e2e.server_process import OWNER, one_sentence, serving, trunkline

pytestmark = [pytest.mark.disk, pytest.mark.slow]


async def test_a_server_that_died_of_a_read_is_explained_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data) as server:
        await server.device(await server.application())
        os.truncate(data / "store" / "data.mdb", 8192)
        with pytest.raises(httpx.TransportError):
            async with server.client() as client:
                await client.get("/applications")
        assert await server.ended() < 0
    assert (data / "crash").read_text().startswith("Fatal Python error: ")
    for _ in range(2):
        said = one_sentence(await trunkline("serve", "--port", "0", "--data", str(data), env=OWNER))
        assert said.startswith(f"{data / 'store' / 'data.mdb'} is damaged: ")
        assert f"`trunkline check --data {data}`" in said
    checked = await trunkline("check", "--data", str(data))
    assert checked.returncode == 1
    assert f"{data / 'store' / 'data.mdb'} is damaged: " in checked.stdout
    assert "problems found: " in one_sentence(checked)


async def test_a_sound_store_is_served_after_a_fault(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data) as server:
        await server.application()
        assert (data / "crash").read_text() == ""
        assert await server.terminate() == 0
    assert not (data / "crash").exists()
    (data / "crash").write_text("Fatal Python error: Bus error\n")
    async with serving(data) as server:
        assert "Fatal Python error: Bus error" in server.log
        assert "all pages of the store are sound now" in server.log
        assert len((await server.call("GET", "/applications"))["items"]) == 1
        assert await server.terminate() == 0
    assert not (data / "crash").exists()


async def test_a_value_that_is_not_what_was_written_is_never_an_answer(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data) as server:
        application = await server.application("a house of my own")
        assert await server.terminate() == 0
    file = data / "store" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"a house of my own", b"a mouse of my own"))
    async with serving(data) as server:
        refusal = await server.call("GET", application, status=500)
        assert "mouse" not in refusal["message"]
        assert f"{file} is damaged: records " in server.log
        assert f"`trunkline check --data {data}`" in server.log


async def test_a_caller_whose_record_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Also on the fast path, which looks who calls before anything else."""
    data, name = tmp_path / "data", "zoe@example.com"
    async with serving(data) as server:
        added = await trunkline("user", "add", name, "--password", PASSWORD, "--data", str(data))
        assert added.returncode == 0, added.stderr
        token = await server.log_in(name)
        assert await server.terminate() == 0
    file = data / "store" / "data.mdb"
    stored = bytes([0x60 + len(name)]) + name.encode()  # in the record, as CBOR; the index has it as a key
    file.write_bytes(file.read_bytes().replace(stored, stored.swapcase()))
    async with serving(data) as server:
        for method in ("GET", "GET", "POST"):
            answer = await server.call(method, "/applications", token=token, status=500)
            assert answer["type"] == "Internal"
        assert "is damaged: records " in server.log
        assert await server.terminate() == 0


async def test_a_transfer_with_an_application_that_cannot_be_read_gives_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data) as server:
        house, shed = await server.application("house"), await server.application("a shed of my own")
        organization = await server.organization()
        assert await server.terminate() == 0
    file = data / "store" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"a shed of my own", b"a shop of my own"))
    ids = [path.rpartition("/")[2] for path in (house, shed)]
    body = {
        "destinationId": organization.rpartition("/")[2],
        "destinationType": "organization",
        "applicationIds": ids,
    }
    async with serving(data) as server:
        await server.call("PATCH", "/me/transferResources", body, status=500)
        assert (await server.call("GET", house))["ownerType"] == "user"
