"""The bucket of an archive: S3, or a service that is compatible with it.

Owns the calls and the translation of their errors. The bucket, its region and its keys come from a user, and nothing
else does: the endpoint is that of AWS, or the one that the operator has chosen for all buckets, and no keys of the
server's own machine are looked for. boto3 is loaded with the first bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trunkline.store.archive_folder import BUFFER_BYTES, Draft
from trunkline.store.errors import StoreBroken, StoreError

CONNECT_S: Final = 10
READ_S: Final = 60
ATTEMPTS_MAX: Final = 4
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
    """The `Target` of archives in a bucket. Names of files are put after `prefix`. Thread-safe."""

    def __init__(
        self,
        *,
        bucket: str,
        prefix: str,
        access_key_id: str,
        secret_access_key: str,
        region: str | None,
        endpoint: str | None,
    ) -> None:
        """`endpoint` is the URL of the operator's service; None for AWS. Loads boto3: not for the event loop."""
        import boto3
        from botocore.config import Config

        self._bucket = bucket
        self._prefix = prefix
        session = boto3.session.Session(
            aws_access_key_id=access_key_id,
            aws_secret_access_key=secret_access_key,
            region_name=region or "us-east-1",
        )
        checksums = "when_supported" if endpoint is None else "when_required"
        self._client: Any = session.client(
            "s3",
            endpoint_url=endpoint,
            config=Config(
                connect_timeout=CONNECT_S,
                read_timeout=READ_S,
                retries={"total_max_attempts": ATTEMPTS_MAX, "mode": "standard"},
                signature_version="s3v4",
                request_checksum_calculation=checksums,
                response_checksum_validation=checksums,
                s3={"addressing_style": "auto" if endpoint is None else "path"},
            ),
        )

    def put(self, name: str, draft: Draft) -> None:
        """Upload a draft. Raises BucketRefuses or StoreBroken."""
        draft.flush()
        with draft.path.open("rb") as file, _Translated(self._bucket):
            place = {"Bucket": self._bucket, "Key": self._prefix + name}
            if draft.size_bytes <= PUT_BYTES_MAX:
                self._client.put_object(Body=file, **place)
            else:
                self._client.upload_fileobj(file, **place)

    def read(self, name: str) -> Iterator[bytes] | None:
        """The pieces of a file; None if there is none. Raises BucketRefuses or StoreBroken."""
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
            raise StoreBroken(f"The bucket {self._bucket} failed with {code}.") from None
        if isinstance(error, BotoCoreError):
            raise StoreBroken(
                f"The bucket {self._bucket} cannot be reached ({type(error).__name__})."
            ) from None


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", "an unknown error"))
