"""A real S3-compatible service in a process of its own, for tests: the server of moto, on a free port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3

from tests.patience import PATIENCE_S
from trunkline.store.s3 import S3Place

BUCKET = "trunkline-test"
_KEYS = {"access_key": "key", "secret_key": "secret"}


class Service:
    """The running service. `kill` stops it, as if the network were down."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self.url = url
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )
        self.client.create_bucket(Bucket=BUCKET)

    def bucket(self, prefix: str = "files", name: str = BUCKET) -> S3Place:
        """The place of a store in this service."""
        return S3Place(name, prefix, endpoint=self.url, region="us-east-1", **_KEYS)

    def keys(self) -> list[str]:
        """The names of all objects."""
        return [each["Key"] for each in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ())]

    def unfinished(self) -> int:
        """The number of uploads that are not finished."""
        return len(self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ()))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)


@contextmanager
def s3_service() -> Iterator[Service]:
    """Run the service until the block ends."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
                    break
            else:
                raise AssertionError("the service has not started")
            # Nobody reads its log, and it must not wait for that.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield Service(process, found[0].decode())
        finally:
            process.kill()
