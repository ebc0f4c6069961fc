"""Archives in a bucket, against a service that is compatible with S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.e2e.conftest import running_server
from tests.e2e.device_calls import id_of
from tests.e2e.test_archive_reading import archive_command
from tests.e2e.test_archives import configure, days_ago, done
from tests.e2e.test_exports import ended

KEYS = {"accessKeyId": "KEYID", "secretAccessKey": "PLANTED-SECRET"}


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of the service."""
    service = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    service.start()
    host, port = service.get_host_and_port()
    yield f"http://{host}:{port}"
    service.stop()


def client(endpoint: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="o",
        aws_secret_access_key="o",
        region_name="us-east-1",
    )


async def test_an_archive_in_a_bucket_is_read_back(tmp_path: Path, endpoint: str) -> None:
    service = client(endpoint)
    service.create_bucket(Bucket="my-bucket")
    async with running_server(tmp_path / "data", s3_endpoint=endpoint) as server:
        application = await server.application()
        device = await server.device(application)
        start_ms, _ = days_ago(server, 40)
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}, "time": start_ms})
        await configure(server, application, directory="a/b", s3={"bucket": "my-bucket", **KEYS})
        log = await done(server, application, "archiveData", date=start_ms)
        assert KEYS["secretAccessKey"] not in json.dumps(log)
        # Again: the manifest of the bucket is read and written.
        await server.call("POST", f"{device}/command", {"name": "go"})
        await done(server, application, "archiveData", date=start_ms)
        found = [each["Key"] for each in service.list_objects_v2(Bucket="my-bucket")["Contents"]]
        assert all(key.startswith(f"a/b/{id_of(application)}/") for key in found)
        copy = tmp_path / "copy"
        for key in found:
            (copy / key).parent.mkdir(parents=True, exist_ok=True)
            service.download_file("my-bucket", key, str(copy / key))
        assert "files: 1" in await archive_command("check", str(copy))
        (line,) = (await archive_command("read", str(copy), "--device", id_of(device))).splitlines()
        assert json.loads(line) == {"time": start_ms, "data": {"temp": 1}}
        assert not any((tmp_path / "data" / "archives").rglob("*.csv"))


async def test_a_bucket_that_refuses_ends_the_job_with_a_sentence(tmp_path: Path, endpoint: str) -> None:
    async with running_server(tmp_path / "data", s3_endpoint=endpoint) as server:
        application = await server.application()
        device = await server.device(application)
        start_ms, _ = days_ago(server, 40)
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}, "time": start_ms})
        await configure(server, application, s3={"bucket": "no-bucket", **KEYS})
        queued = await server.call("GET", f"{application}/archiveData?date={start_ms}", status=202)
        log = await ended(server, application, queued["jobId"])
        assert log["status"] == "errored"
        message = log["error"]["message"]
        assert message.startswith(
            f"archiveConfig.s3: s3://no-bucket/{id_of(application)} cannot be used: NoSuchBucket"
        )
        assert not any((tmp_path / "data" / "archives" / ".drafts").iterdir())
