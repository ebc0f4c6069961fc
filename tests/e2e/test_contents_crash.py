"""Uploads in a server process that is killed, with the contents in the folder and in a bucket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.server_process import OWNER, ServerProcess, one_sentence, serving, trunkline
from tests.patience import PATIENCE_S
from tests.s3_service import Service, s3_service

pytestmark = [pytest.mark.disk, pytest.mark.slow]

SIZE = 20_000_000
LIMITS = """
purge_interval_s = 0.1
purge_pause_s = 0.01
"""


class Place:
    """Where the contents are: what the server is started with, and what is there."""

    def __init__(self, data_dir: Path, limits: Path, service: Service | None) -> None:
        self._data_dir = data_dir
        self._service = service
        self.arguments = ["--limits", str(limits)]
        self.env = dict(OWNER)
        if service is not None:
            bucket = service.bucket()
            self.arguments += ["--blobs", bucket.location]
            self.env |= {
                "TRUNKLINE_S3_ENDPOINT": service.url,
                "TRUNKLINE_BLOBS_REGION": "us-east-1",
                "TRUNKLINE_BLOBS_ACCESS_KEY": "key",
                "TRUNKLINE_BLOBS_SECRET_KEY": "secret",
            }
            self.check_env = {**self.env, "TRUNKLINE_BLOBS": bucket.location}
        else:
            self.check_env = self.env

    def objects(self) -> list[str]:
        """The contents, complete or not, with those of uploads that are under way."""
        if self._service is not None:
            return self._service.keys() + ["unfinished"] * self._service.unfinished()
        folder = self._data_dir / "contents"
        return [str(path) for path in folder.rglob("*") if path.is_file() and path.name != "lock"]

    async def become(self, done: Callable[[list[str]], bool]) -> None:
        """Wait until what is there is as `done` says."""
        with trio.fail_after(PATIENCE_S):
            while not done(self.objects()):  # noqa: ASYNC110 - neither has an event
                await trio.sleep(0.02)


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS)
    if request.param == "folder":
        yield Place(tmp_path / "data", limits, None)
        return
    with s3_service() as service:
        yield Place(tmp_path / "data", limits, service)


async def test_a_kill_in_the_middle_of_an_upload_leaves_nothing(place: Place, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    content = bytes(range(250)) * (SIZE // 250)
    async with serving(data_dir, *place.arguments, env=place.env) as server:
        files = f"{await server.application()}/privateFiles"
        body = {"name": "a.bin", "type": "file", "fileSize": SIZE, "contentType": "application/x-test"}
        file = await server.call("POST", files, body, status=201)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upload_half, server, file["upload"], content)
            await place.become(lambda objects: bool(objects))
            await server.kill()
            nursery.cancel_scope.cancel()
    async with serving(data_dir, *place.arguments, env=place.env) as server:
        assert place.objects() == [], "what was unfinished is removed by the start"
        assert (await server.call("GET", f"{files}/{file['id']}"))["status"] == "pending"
        assert (await upload(server, file["upload"], content)).status_code == 200
        shown = await server.call("GET", f"{files}/{file['id']}")
        assert (shown["status"], shown["fileSize"]) == ("completed", SIZE)
        async with server.client("") as client:
            found = await client.get(shown["url"])
            part = await client.get(shown["url"], headers={"Range": f"bytes={SIZE - 10}-"})
        assert (found.content == content, part.content) == (True, content[-10:])
        assert len(place.objects()) == 1
        await server.kill()
    checked = await trunkline("check", "--data", str(data_dir), env=place.check_env)
    assert checked.returncode == 0, checked.stdout
    async with serving(data_dir, *place.arguments, env=place.env) as server:
        await server.call("DELETE", f"{files}/{file['id']}")
        await place.become(lambda objects: not objects)


async def test_another_place_is_refused(tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS)
    with s3_service() as service:
        place = Place(tmp_path / "data", limits, service)
        async with serving(tmp_path / "data", *place.arguments, env=place.env) as server:
            files = f"{await server.application()}/privateFiles"
            file = await server.call("POST", files, {"name": "a", "type": "file", "fileSize": 4}, status=201)
            assert (await upload(server, file["upload"], b"text")).status_code == 200
            copied = await trunkline("backup", str(tmp_path / "copy"), "--data", str(tmp_path / "data"))
            assert "they are not in the copy" in " ".join(copied.stdout.split())
        said = one_sentence(
            await trunkline("serve", "--port", "0", "--data", str(tmp_path / "data"), env=OWNER)
        )
        assert "start with --blobs s3://" in said
        checked = await trunkline("check", "--data", str(tmp_path / "data"))
        assert "were not checked" in " ".join(checked.stdout.split())
        service.client.delete_object(Bucket=service.bucket().name, Key=service.keys()[0])
        checked = await trunkline("check", "--data", str(tmp_path / "data"), env=place.check_env)
        assert checked.returncode == 1
        assert "the content is missing" in " ".join(checked.stdout.split())
        async with serving(tmp_path / "data", *place.arguments, env=place.env) as server:
            url = (await server.call("GET", f"{files}/{file['id']}"))["url"]
            service.kill()
            async with server.client("") as client:
                assert (await client.get(url)).status_code == 503
            await server.application("devices do not need files")


async def upload(server: ServerProcess, form: dict[str, Any], content: bytes) -> Any:
    async with server.client("") as client:
        return await client.post("/uploads", data=form["fields"], files={"file": ("a", content)})


async def upload_half(server: ServerProcess, form: dict[str, Any], content: bytes) -> None:
    """Send the first half of an upload, and then nothing."""
    boundary = "boundary"

    async def body() -> AsyncIterator[bytes]:
        for name, value in form["fields"].items():
            yield f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'.encode()
        yield content[: SIZE // 2]
        await trio.sleep_forever()

    async with server.client("") as client:
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        with suppress(httpx.HTTPError):  # the server is killed
            await client.post(form["url"], content=body(), headers=headers)
