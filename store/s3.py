"""An object store in a bucket of an S3-compatible service.

Owns the requests to the service, their bounds, and what becomes of uploads that are not finished. Does not own which
objects are needed.

A small object is one request. A larger one is a multipart upload, of which nothing can be seen before it is complete;
each part carries its MD5, which the service compares. An upload that is given up is aborted at once, and those of a
process that died are aborted at the next start: so only one data directory may use a prefix.

Every request has bounded times and a bounded number of attempts. A service that cannot be reached, or refuses, is
`StoreUnreachable`: the operation may be tried again later.

boto3 is imported with the first store, since only a server with a bucket needs it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from trunkline.store.errors import StoreBroken, StoreError, StoreFull, StoreUnreachable
from trunkline.store.object_store import Content, Digest, Stored, checked_name

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

CONNECT_S: Final = 5
READ_S: Final = 20
ATTEMPTS: Final = 3
"""A request takes at most (CONNECT_S + READ_S) * ATTEMPTS seconds, and some for the pauses between attempts."""
READ_AHEAD_BYTES: Final = 1 << 20
"""The least that one request reads."""

_FULL: Final = frozenset({"QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity", "507"})
_MISSING: Final = frozenset({"NoSuchKey", "NoSuchUpload", "404", "NotFound"})
_log = structlog.get_logger("trunkline.store")


@dataclass(frozen=True, slots=True)
class S3Place:
    """Where the objects are, and how the service is reached. What is None comes from the environment of boto3."""

    name: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)

    @property
    def location(self) -> str:
        """The location as the setting names it: `s3://bucket/prefix`."""
        return f"s3://{self.name}/{self.prefix}".rstrip("/")


class S3Store:
    """Implements `ObjectStore` in a bucket."""

    def __init__(self, bucket: S3Place, *, part_bytes: int, connections: int = 1, client: Any = None) -> None:
        self._client = client or _client(bucket, connections)
        self._place = bucket
        self._bucket = bucket.name
        self._prefix = f"{bucket.prefix}/" if bucket.prefix else ""
        self._part_bytes = part_bytes
        self._location = bucket.location

    @classmethod
    def prepare(cls, bucket: S3Place, *, part_bytes: int, connections: int, left_s: float = 0.0) -> S3Store:
        """Open the store; uploads that an earlier process has not finished are aborted (`leftovers.py`).

        Raises StoreBroken if the bucket does not exist or may not be used. A service that cannot be reached is logged.
        """
        store = cls(bucket, part_bytes=part_bytes, connections=connections)
        try:
            store.abort_unfinished(left_s)
        except StoreUnreachable as failure:
            _log.error("the store of files cannot be reached", reason=str(failure))
        return store

    def abort_unfinished(self, left_s: float) -> None:
        """Abort the multipart uploads under the prefix that began `left_s` seconds ago; all of them if it is 0.

        Raises StoreBroken or StoreUnreachable.
        """
        more: dict[str, str] = {}
        before = datetime.now(UTC) - timedelta(seconds=left_s)
        while True:
            page = self.request("list_multipart_uploads", Prefix=self._prefix, **more)
            for upload in page.get("Uploads", ()):
                if not left_s or upload["Initiated"] < before:
                    self.request("abort_multipart_upload", Key=upload["Key"], UploadId=upload["UploadId"])
            if not page.get("IsTruncated"):
                return
            more = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def request(self, operation: str, **arguments: Any) -> Any:
        """Make one request. Raises StoreFull, StoreBroken or StoreUnreachable; `Missing` if there is nothing."""
        with self.translated():
            return getattr(self._client, operation)(Bucket=self._bucket, **arguments)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the errors of the client."""
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        try:
            yield
        except NoCredentialsError as error:
            raise StoreBroken(
                f"There are no keys for {self._location}; set blobs_access_key and blobs_secret_key."
            ) from error
        except ClientError as error:
            raise self._refused(error.response) from error
        except (BotoCoreError, OSError) as error:
            raise StoreUnreachable(f"{self._location} cannot be reached: {type(error).__name__}.") from error

    def _refused(self, response: Mapping[str, Any]) -> StoreError:
        code = str(response.get("Error", {}).get("Code", "?"))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in _MISSING:
            return Missing(f"{self._location} has no such object.")
        if code in _FULL or status == 507:
            return StoreFull(f"{self._location} is full: {code}.")
        if code == "NoSuchBucket" or status in (301, 400, 401, 403):
            return StoreBroken(
                f"{self._location} cannot be used: {code}. Check the bucket, its region, the keys and their rights."
            )
        return StoreUnreachable(f"{self._location} refused a request: {code}.")

    def write(self, name: str) -> S3Draft:
        """Begin an object."""
        return S3Draft(self, self._prefix, checked_name(name), self._part_bytes)

    def open(self, name: str, stored: Stored | None = None) -> Content | None:
        """Open an object; None if there is none."""
        key = self._prefix + checked_name(name)
        try:
            head = self.request("head_object", Key=key)
        except Missing:
            return None
        return Content(_S3Source(self, key, head["ContentLength"]), stored)

    def move(self, key: str, new: str) -> None:
        """Give an object another name; services take 5 GiB at most."""
        self.request("copy_object", Key=new, CopySource={"Bucket": self._bucket, "Key": key})
        self.request("delete_object", Key=key)

    def remove(self, name: str) -> None:
        """Remove an object; no error if there is none."""
        self.request("delete_object", Key=self._prefix + checked_name(name))

    def remove_folder(self, name: str) -> None:
        """Remove all objects whose names begin with `name` and a slash."""
        prefix = f"{self._prefix}{checked_name(name)}/"
        while True:
            page = self.request("list_objects_v2", Prefix=prefix)
            keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
            if not keys:
                return
            answer = self.request("delete_objects", Delete={"Objects": keys, "Quiet": True})
            if answer.get("Errors"):
                raise StoreUnreachable(f"{self._location} did not remove all objects; it is tried again.")

    def names(self) -> list[str]:
        """The names of all objects whose names have no slash."""
        return [name for name, _ in self.sizes()]

    def sizes(self) -> Iterator[tuple[str, int]]:
        """These names, in order, and the bytes of each; what is being written is not there yet."""
        more: dict[str, str] = {}
        while True:
            page = self.request("list_objects_v2", Prefix=self._prefix, Delimiter="/", **more)
            for each in page.get("Contents", ()):
                yield each["Key"].removeprefix(self._prefix), each["Size"]
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def within(self, name: str) -> S3Store:
        """The objects under a longer prefix; what is left of uploads to it is aborted with that of this store."""
        place = replace(self._place, prefix=self._prefix + checked_name(name))
        return S3Store(place, part_bytes=self._part_bytes, client=self._client)

    @contextmanager
    def removing(self) -> Iterator[bool]:
        """A backup does not copy the objects of a bucket, so they may always be removed."""
        yield True


class S3Draft:
    """An object that is being written. A part of it is in memory."""

    def __init__(self, store: S3Store, prefix: str, name: str, part_bytes: int) -> None:
        self._store = store
        self._prefix = prefix
        self._key = prefix + name
        self._part_bytes = part_bytes
        self._digest = Digest()
        self._gathered = bytearray()
        self._upload: str | None = None
        self._parts: list[dict[str, Any]] = []

    def __enter__(self) -> S3Draft:
        return self

    @property
    def stored(self) -> Stored:
        """The size and the hashes of what was written so far."""
        return self._digest.stored

    def write(self, piece: bytes) -> None:
        """Add a piece; sends a part when there is enough for one."""
        self._digest.update(piece)
        self._gathered += piece
        while len(self._gathered) >= self._part_bytes:
            part = bytes(self._gathered[: self._part_bytes])
            del self._gathered[: self._part_bytes]
            self._send(part)

    def _send(self, part: bytes) -> None:
        if self._upload is None:
            self._upload = self._store.request("create_multipart_upload", Key=self._key)["UploadId"]
        number = len(self._parts) + 1
        sent = self._store.request(
            "upload_part",
            Key=self._key,
            UploadId=self._upload,
            PartNumber=number,
            Body=part,
            ContentMD5=_md5(part),
        )
        self._parts.append({"PartNumber": number, "ETag": sent["ETag"]})

    def finish(self, name: str | None = None, /) -> Stored:
        """Give the object its name, or `name`; a large one is copied for that. It is complete when this returns."""
        key = self._key if name is None else self._prefix + checked_name(name)
        rest = bytes(self._gathered)
        if self._upload is None:
            self._store.request("put_object", Key=key, Body=rest, ContentMD5=_md5(rest))
            return self.stored
        if rest:
            self._send(rest)
        self._store.request(
            "complete_multipart_upload",
            Key=self._key,
            UploadId=self._upload,
            MultipartUpload={"Parts": self._parts},
        )
        self._upload = None
        if key != self._key:
            self._store.move(self._key, key)
        return self.stored

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._upload is None:
            return
        try:
            self._store.request("abort_multipart_upload", Key=self._key, UploadId=self._upload)
        except StoreError as failure:
            # The next start aborts it.
            _log.error("an unfinished upload cannot be aborted now", reason=str(failure))


class _S3Source:
    """An open object. Implements `Source`."""

    def __init__(self, store: S3Store, key: str, size_bytes: int) -> None:
        self._store = store
        self._key = key
        self._ahead = b""
        self._ahead_at = 0
        self.size_bytes = size_bytes

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        at = offset - self._ahead_at
        if not 0 <= at < len(self._ahead):
            size = max(READ_AHEAD_BYTES, size_bytes)
            self._ahead, self._ahead_at, at = self._fetch(offset, size), offset, 0
        return self._ahead[at : at + size_bytes]

    def _fetch(self, offset: int, size_bytes: int) -> bytes:
        asked = f"bytes={offset}-{min(offset + size_bytes, self.size_bytes) - 1}"

        def fetch() -> bytes:
            found = self._store.request("get_object", Key=self._key, Range=asked)
            with self._store.translated(), found["Body"] as body:
                read: bytes = body.read()
            return read

        return _repeated(fetch)

    def close(self) -> None:
        self._ahead = b""


class Missing(StoreBroken):
    """There is no such object."""


def _repeated(fetch: Callable[[], T]) -> T:
    """Fetch again if a response breaks off, which the client itself does not repeat."""
    for _ in range(ATTEMPTS - 1):
        try:
            return fetch()
        except StoreUnreachable:
            continue
    return fetch()


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _client(bucket: S3Place, connections: int) -> Any:
    import boto3
    from botocore.config import Config

    config = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        max_pool_connections=connections,
        # Compatible services do not know newer checksums, and not all have a host name for each bucket.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if bucket.endpoint else "auto"},
    )
    session = boto3.session.Session()
    return session.client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name=bucket.region or session.region_name or "us-east-1",
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
        config=config,
    )
