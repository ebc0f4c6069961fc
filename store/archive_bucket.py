"""The bucket of an archive: S3, or a service that is compatible with it.

Owns which requests are made, and the distinction between a bucket that refuses and one that fails. The bucket, its
region and its keys come from a user, and nothing else does: the endpoint is that of AWS, or the one that the operator
has chosen for all buckets, and no keys of the server's own machine are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from trunkline.store.archive_folder import BUFFER_BYTES, Draft
from trunkline.store.errors import StoreBroken, StoreError
from trunkline.store.s3 import Missing, S3Draft, S3Place, S3Store

PUT_BYTES_MAX: Final = 5 * 1000**3
"""What one request may put. A larger file goes in parts, of which nothing is seen before all of them are there."""
PART_BYTES: Final = 64 * 1024 * 1024


class BucketRefuses(StoreError):
    """The service refuses the keys, or has no such bucket: only its owner can change that."""


class Bucket:
    """The `Target` of archives in a bucket. The prefix of the place stands before the names of files. Thread-safe."""

    def __init__(self, place: S3Place, connections: int) -> None:
        """Slow. Raises ValueError without keys: those of the server's machine would be looked for."""
        if place.access_key is None or place.secret_key is None:
            raise ValueError("the bucket of an archive needs the keys of its owner")
        self._store = S3Store(place, part_bytes=PART_BYTES, connections=connections)
        self._prefix = place.prefix

    def put(self, name: str, draft: Draft) -> None:
        """Upload a draft. Raises BucketRefuses, StoreFull or StoreUnreachable."""
        draft.flush()
        key = f"{self._prefix}/{name}"
        with draft.path.open("rb") as file, _refusals():
            if draft.size_bytes <= PUT_BYTES_MAX:
                self._store.request("put_object", Key=key, Body=file)
                return
            with S3Draft(self._store, f"{self._prefix}/", name, PART_BYTES) as upload:
                while piece := file.read(BUFFER_BYTES):
                    upload.write(piece)
                upload.finish()

    def read(self, name: str) -> Iterator[bytes] | None:
        """The pieces of a file; None if there is none. Raises BucketRefuses or StoreUnreachable."""
        with _refusals():
            try:
                found = self._store.request("get_object", Key=f"{self._prefix}/{name}")
            except Missing:
                return None
        return self._pieces(found["Body"])

    def _pieces(self, body: Any) -> Iterator[bytes]:
        with self._store.translated():
            yield from body.iter_chunks(BUFFER_BYTES)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Missing:
        raise
    except StoreBroken as refusal:
        raise BucketRefuses(str(refusal)) from refusal
