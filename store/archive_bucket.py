"""The bucket of an archive: S3, or a service that is compatible with it.

Owns the calls and the translation of their errors. The bucket, its region and its keys come from a user, and nothing
else does: the endpoint is that of AWS, or the one that the operator has chosen for all buckets, and no keys of the
server's own machine are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trunkline.store.archive_folder import BUFFER_BYTES, Draft
from trunkline.store.errors import StoreError, StoreUnreachable
from trunkline.store.s3 import S3Place, s3_client

PUT_BYTES_MAX: Final = 5 * 1000**3
"""What one call may put; a larger file is put in parts, which also become visible together."""

_REFUSALS: Final = frozenset(
    {
        "AccessDenied", "AccountProblem", "AllAccessDisabled", "AuthorizationHeaderMalformed", "InvalidAccessKeyId",
        "InvalidBucketName", "NoSuchBucket", "PermanentRedirect", "SignatureDoesNotMatch", "403", "301",
    }
)  # fmt: skip
_MISSING: Final = frozenset({"NoSuchKey", "404"})


class BucketRefuses(StoreError):
    """The service refuses the keys, or has no such bucket: only its owner can change that."""


class Bucket:
    """The `Target` of archives in a bucket. The prefix of the place stands before the names of files. Thread-safe."""

    def __init__(self, place: S3Place, connections: int) -> None:
        """Raises ValueError without keys: boto3 would look for those of the server's machine."""
        if place.access_key is None or place.secret_key is None:
            raise ValueError("the bucket of an archive needs the keys of its owner")
        self._bucket = place.name
        self._prefix = place.prefix
        self._client = s3_client(place, connections)

    def put(self, name: str, draft: Draft) -> None:
        """Upload a draft. Raises BucketRefuses or StoreUnreachable."""
        draft.flush()
        with draft.path.open("rb") as file, _Translated(self._bucket):
            place = {"Bucket": self._bucket, "Key": self._prefix + name}
            if draft.size_bytes <= PUT_BYTES_MAX:
                self._client.put_object(Body=file, **place)
            else:
                self._client.upload_fileobj(file, **place)

    def read(self, name: str) -> Iterator[bytes] | None:
        """The pieces of a file; None if there is none. Raises BucketRefuses or StoreUnreachable."""
        from botocore.exceptions import ClientError

        with _Translated(self._bucket):
            try:
                found = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise
        return self._pieces(found["Body"])

    def _pieces(self, body: Any) -> Iterator[bytes]:
        with _Translated(self._bucket):
            yield from body.iter_chunks(BUFFER_BYTES)


class _Translated:
    """Raises the errors of boto3 in its body as those of the store. Their messages are not passed on."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        if isinstance(error, ClientError):
            code = _code(error)
            if code in _REFUSALS:
                raise BucketRefuses(
                    f"The bucket {self._bucket} refuses with {code}: check its name, its region, its keys, and that "
                    "they may list the bucket, and get and put objects in it."
                ) from None
            raise StoreUnreachable(f"The bucket {self._bucket} failed with {code}.") from None
        if isinstance(error, BotoCoreError):
            raise StoreUnreachable(
                f"The bucket {self._bucket} cannot be reached ({type(error).__name__})."
            ) from None


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", "an unknown error"))
