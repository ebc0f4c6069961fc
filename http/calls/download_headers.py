"""The headers of a file that is downloaded: what it is, its hash, and that a browser takes it for nothing else."""

from __future__ import annotations

from trunkline.actors.core.contents.downloads import repr_digest
from trunkline.http.calls.request import Headers


def download_headers(type: str, disposition: str, sha256: str, caching: str) -> Headers:
    """The headers of a whole file or of a range of it, without its length. `caching` is its `Cache-Control`."""
    return [
        (b"content-type", type.encode()),
        (b"content-disposition", disposition.encode()),
        (b"repr-digest", repr_digest(sha256)),
        (b"cache-control", caching.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    ]
