"""Bodies of answers that are compressed, although this server asks for none."""

from __future__ import annotations

import gzip
import zlib

import httpx
import pytest

from tests.web_server import Answer, WebServer, web_server
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.http_requests import Request, fetch


async def got(server: WebServer) -> bytes:
    request = Request("GET", server.url, httpx.Headers())
    return (await fetch(request, timeout_s=30, bytes_max=1000, private=lambda _: True)).content


def bare(content: bytes) -> bytes:
    """Deflate without the header of zlib."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


@pytest.mark.parametrize(
    ("compression", "content"),
    [
        ("gzip", gzip.compress(b"one, two")),
        ("x-gzip", gzip.compress(b"one, ") + gzip.compress(b"") + gzip.compress(b"two")),
        ("GZIP", gzip.compress(b"one, two") + bytes(8)),
        ("deflate", zlib.compress(b"one, two")),
        ("deflate", bare(b"one, two")),
    ],
    ids=["gzip", "members", "zeros", "deflate", "bare"],
)
async def test_a_compressed_body_is_unpacked_to_its_end(compression: str, content: bytes) -> None:
    async with web_server(lambda _: Answer(200, (("Content-Encoding", compression),), content)) as server:
        assert await got(server) == b"one, two"
        assert server.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("compression", "content"),
    [
        ("gzip", gzip.compress(b"one, two")[:-1]),
        ("gzip", gzip.compress(b"one, ") + gzip.compress(b"two" * 50)[:-9]),
        ("deflate", zlib.compress(b"one, two" * 50)[:-9]),
        ("deflate", b"one, two"),
    ],
    ids=["checksum", "member", "deflate", "nonsense"],
)
async def test_a_compressed_body_that_was_cut_off_is_refused(compression: str, content: bytes) -> None:
    async with web_server(lambda _: Answer(200, (("Content-Encoding", compression),), content)) as server:
        with pytest.raises(Undelivered, match="cannot be decompressed"):
            await got(server)


@pytest.mark.parametrize("content", [bytes(1001), b"x" * 10_000], ids=["one", "many"])
async def test_all_members_count_for_the_bound(content: bytes) -> None:
    members = b"".join(gzip.compress(content[at : at + 500]) for at in range(0, len(content), 500))
    async with web_server(lambda _: Answer(200, (("Content-Encoding", "gzip"),), members)) as server:
        with pytest.raises(Undelivered, match="more than 1000 bytes"):
            await got(server)
