"""Requests that others describe in full: method, headers, body, TLS, what proves who sends them, and redirects.

The address of each URL is checked as in `http_calls.py`, also that of each redirect. What proves who sends a request
goes only to the URLs that it is meant for: where a redirect leads to elsewhere, it is left out, as are headers that
were given and whose names are those of secrets, such as `Authorization`, `Cookie` and `X-Api-Key`.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import unquote

import httpx
import trio

from trunkline.actors.core.outgoing.dialing import Tls, tls_context
from trunkline.actors.core.outgoing.http_calls import Received, Undelivered, check_url, send
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.secret_names import is_secret_name

REDIRECTS_MAX: Final = 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_KEEPS_BODY: Final = frozenset({307, 308})
_ABOUT_BODY: Final = ("Content-Type", "Content-Encoding", "Content-Language", "Content-Location")
_COMPRESSIONS: Final = frozenset({"gzip", "x-gzip", "deflate"})
_MEMBER: Final = b"\x1f\x8b"
"""How a member of a content in gzip begins."""


class Late(Undelivered):
    """There was no answer in time."""


class Proof(NamedTuple):
    """What proves who sends a request, to the URLs under `base`: headers, a query, or a certificate with its key."""

    base: httpx.URL
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    certificate: str | None = None
    private_key: str | None = None

    def covers(self, url: httpx.URL) -> bool:
        """Whether a URL has the origin of `base`, and a path below that of it."""
        path, base = url.path, self.base.path.rstrip("/")
        return (
            _origin(url) == _origin(self.base)
            and (path == base or path.startswith(f"{base}/"))
            and ".." not in unquote(unquote(path)).replace("\\", "/").split("/")
        )


class Request(NamedTuple):
    """A request. `authority` replaces the well-known authorities, as PEM; names in errors are those of `field`."""

    method: str
    url: str
    headers: httpx.Headers
    body: bytes | None = None
    proof: Proof | None = None
    authority: str | None = None
    verifies: bool = True
    follows_redirects: bool = True
    field: str = "url"


async def fetch(
    request: Request, *, timeout_s: float, bytes_max: int, private: Callable[[str], bool]
) -> Received:
    """Send a request and read the answer, which is not compressed any more.

    `private` says of a URL, also of one of a redirect, whether its address may be one that is not public.

    Raises `Invalid` for a URL that cannot be called, `Late` if the answer is not complete within `timeout_s`, and
    `Undelivered` if there is none, or it has more than `bytes_max` bytes.
    """
    check_url(request.url, private=private(request.url), field=request.field)
    url = httpx.URL(request.url)
    with trio.move_on_after(timeout_s):
        received = await _follow(request, url, timeout_s, bytes_max, private)
        return await _unpacked(received, url.host, bytes_max)
    raise Late(f"{url.host} did not answer within {timeout_s:g} seconds.")


async def _follow(
    request: Request, url: httpx.URL, timeout_s: float, bytes_max: int, private: Callable[[str], bool]
) -> Received:
    method, body, headers = request.method, request.body, request.headers.copy()
    for _ in range(REDIRECTS_MAX + 1):
        proof = request.proof if request.proof is not None and request.proof.covers(url) else None
        sent, target = headers.copy(), url
        if proof is not None:
            sent.update([(name.encode(), value.encode("utf-8", "replace")) for name, value in proof.headers])
            target = url.copy_merge_params(dict(proof.query)) if proof.query else url
        received = await send(
            method,
            target,
            body,
            sent,
            timeout_s,
            private=private(str(url)),
            bytes_max=bytes_max,
            context=await _context(request, proof) if url.scheme == "https" else None,
        )
        location = received.headers.get("Location")
        if not request.follows_redirects or received.status not in _REDIRECTS or not location:
            return received
        after = _joined(url, location)
        check_url(str(after), private=private(str(after)), field=f"the redirect of {url.host}")
        if received.status not in _KEEPS_BODY and method not in ("GET", "HEAD"):
            method, body = "GET", None
            _remove(headers, _ABOUT_BODY)
        if _origin(after) != _origin(url):
            _remove(headers, ("Host", *filter(is_secret_name, headers)))
        url = after
    raise Undelivered(f"{url.host} redirects once more after {REDIRECTS_MAX} redirects.")


async def _context(request: Request, proof: Proof | None) -> ssl.SSLContext | None:
    """The context of a connection; None for the one of all calls."""
    certificate = None if proof is None else proof.certificate
    if request.verifies and request.authority is None and certificate is None:
        return None
    key = None if proof is None else proof.private_key
    tls = Tls(request.authority, certificate, key, request.verifies)
    return await in_thread(SHORT, tls_context, tls)


async def _unpacked(received: Received, host: str, bytes_max: int) -> Received:
    """The answer with its content as it was before it was compressed, within the bound."""
    compression = received.headers.get("Content-Encoding", "").lower()
    if compression not in _COMPRESSIONS or not received.content:
        return received
    try:
        content = await in_thread(SHORT, _decompressed, received.content, compression, bytes_max)
    except zlib.error:
        raise Undelivered(f"{host} answered with a body that cannot be decompressed.") from None
    if len(content) > bytes_max:
        raise Undelivered(f"{host} answered with more than {bytes_max} bytes.")
    return received._replace(content=content)


def _decompressed(content: bytes, compression: str, bytes_max: int) -> bytes:
    """What was compressed, or more than `bytes_max` bytes of it. Raises `zlib.error`, also for a content that was cut
    off. One in gzip may have several members; what follows the last one, such as zeros, is none."""
    # 32 + 15: the header tells which form it is. Some servers send deflate without the header of zlib.
    is_bare = compression == "deflate" and (content[0] & 15 != 8 or int.from_bytes(content[:2], "big") % 31)
    pieces, size = [], 0
    while content and size <= bytes_max:
        unpacker = zlib.decompressobj(-15 if is_bare else 47)
        pieces.append(unpacker.decompress(content, bytes_max + 1 - size))
        size += len(pieces[-1])
        if size <= bytes_max and not unpacker.eof:
            raise zlib.error
        content = unpacker.unused_data if unpacker.unused_data.startswith(_MEMBER) else b""
    return b"".join(pieces)


def _joined(url: httpx.URL, location: str) -> httpx.URL:
    try:
        return url.join(location)
    except (httpx.InvalidURL, ValueError):
        raise Undelivered(f"{url.host} redirects to something that is not a URL.") from None


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def _remove(headers: httpx.Headers, names: tuple[str, ...]) -> None:
    for name in names:
        headers.pop(name, None)
