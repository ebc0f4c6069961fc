"""Uploads by a signed form and downloads by a signed link, over real sockets.

The records of the files are those of a small owner in `tests/actors/core/contents/shelf.py`. The file is long because
all that can go wrong on the wire is in it.
"""

from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import trio

from tests.actors.core.contents.shelf import BOOK, KINDS, Drop, Order, Shelf
from tests.e2e.conftest import ENGINE, Server
from tests.patience import PATIENCE_S
from tests.placement import hold_placement
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.downloads import Downloads
from trunkline.actors.core.contents.named import content_problems, contents_of
from trunkline.actors.core.contents.signatures import Policy
from trunkline.actors.core.contents.uploads import UploadOwner, Uploads
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.structs import Message
from trunkline.store.object_store import Stored

BOUNDARY = "boundary-of-the-test"
CONTENT = bytes(range(256)) * 40
OUR_ENGINE = pytest.mark.skipif(ENGINE == "stock", reason="Hypercorn asks for the body of every request")


class Book(NamedTuple):
    """A book whose content is to come, and the form for it."""

    application: bytes
    record: bytes
    content: bytes
    form: dict[str, Any]


class Library:
    """A server with an owner of contents."""

    def __init__(self, server: Server, application: str) -> None:
        self.server = server
        self.system = server.system
        self.application = bytes.fromhex(application.rpartition("/")[2])
        self.contents = self.system.component(Contents)

    async def ask(self, message: Message) -> None:
        await self.system.ask(Ref("shelf", self.application, self.application), message)

    async def order(self, size: int, type: str = "text/plain", record: bytes | None = None) -> Book:
        """Make a book, and the form for its content."""
        now_ms = self.system.clock.wall_ms()
        record, content = record or self.system.ids.new(now_ms), self.system.ids.new(now_ms)
        expires_ms = now_ms + 3_600_000
        await self.ask(Order(record=record, content=content, expires_ms=expires_ms))
        policy = Policy(
            kind="book",
            application=self.application,
            record=record,
            content=content,
            size_bytes=size,
            type=type,
            expires_ms=expires_ms,
            issued_ms=now_ms,
        )
        return Book(self.application, record, content, self.contents.upload_form(policy))

    async def send(self, book: Book, data: bytes, **changes: str | None) -> httpx.Response:
        """Send the form of a book with its file; `changes` replaces fields, or removes those that are None."""
        fields = {**book.form["fields"], **{name.replace("_", "-"): value for name, value in changes.items()}}
        kept = {name: value for name, value in fields.items() if value is not None}
        async with self.server.client("") as client:
            return await client.post(book.form["url"], data=kept, files={"file": ("a.txt", data)})

    def stored(self, book: Book) -> Stored | None:
        """What the record of a book names."""
        with self.system.store.snapshot() as snapshot:
            named = dict(contents_of(KINDS.values(), snapshot, self.application))
        return named.get(f"{self.application.hex()}/{book.content.hex()}")

    def link(self, book: Book, *, name: str = "a.txt", type: str = "text/plain", keep_s: int = 900) -> str:
        stored = self.stored(book)
        assert stored is not None
        expires_ms = self.system.clock.wall_ms() + keep_s * 1000
        return self.contents.link(
            book.application, book.content, stored, file_name=name, content_type=type, expires_ms=expires_ms
        )

    def files(self) -> list[str]:
        """The files in the folder of contents, those that are being written among them."""
        folder = Path(self.server.settings.data_dir) / "contents"
        found = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
        return sorted(path.name for path in found)

    def check(self) -> None:
        with self.system.store.snapshot() as snapshot:
            assert list(content_problems(KINDS, snapshot, self.system.store.contents)) == []


@asynccontextmanager
async def library_of(server: Server) -> AsyncIterator[Library]:
    server.system._turns.kinds[Shelf.kind] = Shelf
    hold_placement(server.system, KINDS)
    server.system.component(Uploads).owners = {"book": UploadOwner(BOOK, Shelf.kind)}
    yield Library(server, await server.application())


@pytest.fixture
async def library(server: Server) -> AsyncIterator[Library]:
    async with library_of(server) as library:
        yield library


def form_bytes(fields: dict[str, str], data: bytes, *, end: bool = True) -> bytes:
    """A form as a browser sends it, the file last."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'.encode()
    return b"".join(parts) + head + data + (f"\r\n--{BOUNDARY}--\r\n".encode() if end else b"")


async def fetched(library: Library, url: str, method: str = "GET", **headers: str) -> httpx.Response:
    async with library.server.client("") as client:
        return await client.request(
            method, url, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )


async def test_files_are_uploaded_and_downloaded(library: Library) -> None:
    for data in (b"", b"a", b"\r\n--boundary\r\n" * 1000, CONTENT * 200):
        book = await library.order(len(data))
        response = await library.send(book, data)
        assert response.status_code == 200, response.text
        assert library.stored(book) == Stored(len(data), hashlib.sha256(data).hexdigest())
        found = await fetched(library, library.link(book))
        assert (found.status_code, found.content) == (200, data)
        assert (await library.send(book, data)).status_code == 200, "an upload can be repeated"
        other = await library.send(book, data[:-1] + b"x") if data else None
        assert other is None or (other.status_code, "other bytes" in other.text) == (400, True)
        assert (await fetched(library, library.link(book))).content == data
    assert len(library.files()) == 4
    library.check()


async def test_only_the_form_that_was_made_is_taken(library: Library) -> None:
    book, other = await library.order(5), await library.order(5)
    fields = other.form["fields"]
    for changes, status, words in (
        ({"policy": fields["policy"]}, 403, "signature"),
        ({"signature": fields["signature"]}, 403, "signature"),
        ({"signature": None}, 403, "signature"),
        ({"policy": None}, 403, "signature"),
        ({"key": fields["key"]}, 400, "key"),
        ({"key": None}, 400, "key"),
        ({"bucket": "0" * 24}, 400, "bucket"),
        ({"Content_Type": "text/html"}, 400, "Content-Type"),
        ({"algorithm": "none"}, 400, "algorithm"),
        ({"credential": fields["credential"]}, 400, "credential"),
        ({"date": "2020-01-01T00:00:00.000Z"}, 400, "date"),
        ({"more": "1"}, 400, "more"),
    ):
        response = await library.send(book, b"12345", **changes)
        assert (response.status_code, words in response.json()["message"]) == (status, True), response.text
    for data, words in ((b"1234", "has 4 bytes"), (b"", "has 0 bytes")):
        response = await library.send(book, data)
        assert (response.status_code, words in response.text) == (400, True), response.text
    assert (await library.send(book, b"123456")).status_code == 413
    library.server.move_clock(3601)
    assert (await library.send(book, b"12345")).status_code == 410
    assert library.files() == []
    assert library.stored(book) is None


async def test_a_form_for_what_is_gone_is_refused(library: Library) -> None:
    changed, dropped = await library.order(5), await library.order(5)
    await library.order(6, record=changed.record)
    await library.ask(Drop(record=dropped.record))
    for book in (changed, dropped):
        assert (await library.send(book, b"12345")).status_code == 410
    last = await library.order(5)
    await library.server.call("DELETE", f"/applications/{library.application.hex()}")
    assert (await library.send(last, b"12345")).status_code == 404
    assert library.files() == []


MALFORMED = (
    (b"", 400, "malformed"),
    (b"no form at all", 400, "malformed"),
    (f"--{BOUNDARY}--\r\n".encode(), 400, "no such file"),
    (form_bytes({}, b"x").replace(b'name="file"', b'name="data"'), 400, "name it file"),
    (form_bytes({"key": "x"}, b"x").replace(b'name="key"', b'name=""'), 400, "name"),
    (form_bytes({"key": "x"}, b"x").replace(b"Content-Disposition", b"Other", 1), 400, "malformed"),
    (form_bytes({"key": "ä"}, b"x").replace("ä".encode(), b"\xff"), 400, "UTF-8"),
    (form_bytes({"key": "x"}, b"x") + form_bytes({"key": "x"}, b"x"), 403, "signature"),
    (form_bytes({}, b"x").replace(b"\r\n\r\n", b"\r\nX: " + b"y" * 300_000 + b"\r\n\r\n"), 413, "fields"),
    (form_bytes({"key": "x" * 300_000}, b"x"), 413, "fields"),
    (b"-" * 300_000, 413, "fields"),
    (form_bytes({f"field{n}": "x" for n in range(200)}, b"x"), 413, "parts"),
    (2 * form_bytes({"key": "x"}, b"x").split(b"--" + BOUNDARY.encode())[1], 400, "malformed"),
)


async def test_a_malformed_form_is_refused(library: Library) -> None:
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    async with library.server.client("") as client:
        for body, status, words in MALFORMED:
            response = await client.post("/uploads", content=body, headers=headers)
            assert (response.status_code, words in response.json()["message"]) == (status, True), (
                response.text
            )
        for type, status in (
            ("application/json", 415),
            ("multipart/form-data", 400),
            (f"multipart/form-data; boundary={'x' * 71}", 400),
        ):
            response = await client.post("/uploads", content=b"{}", headers={"Content-Type": type})
            assert response.status_code == status, response.text
    assert library.files() == []


async def test_the_file_is_the_last_part(library: Library) -> None:
    book = await library.order(5)
    head, _, tail = form_bytes(book.form["fields"], b"12345").rpartition(f"--{BOUNDARY}--".encode())
    more = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="later"\r\n\r\nx\r\n--{BOUNDARY}--'.encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    async with library.server.client("") as client:
        response = await client.post("/uploads", content=head + more + tail, headers=headers)
    assert (response.status_code, "last one" in response.text) == (400, True), response.text
    assert (library.files(), library.stored(book)) == ([], None)


def raw_head(body_bytes: int, *more: str, path: str = "/uploads") -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: a",
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}",
        f"Content-Length: {body_bytes}",
        *more,
    )
    return "\r\n".join((*lines, "", "")).encode()


async def connected(library: Library) -> trio.SocketStream:
    host, _, port = library.server.url.removeprefix("http://").rpartition(":")
    return await trio.open_tcp_stream(host, int(port))


async def settled(library: Library) -> None:
    """Wait until no upload is under way."""
    with trio.fail_after(PATIENCE_S):
        while library.system.component(Uploads).running:  # noqa: ASYNC110 - it has no event
            await trio.sleep(0.01)


async def test_a_cut_upload_leaves_nothing_and_can_be_repeated(library: Library) -> None:
    data = CONTENT * 300
    book = await library.order(len(data))
    body = form_bytes(book.form["fields"], data)
    for sent in (len(body) - len(data), len(body) // 2, len(body) - 1):
        async with await connected(library) as stream:
            await stream.send_all(raw_head(len(body)) + body[:sent])
            with trio.fail_after(PATIENCE_S):
                while not library.system.component(Uploads).running:  # noqa: ASYNC110 - it has no event
                    await trio.sleep(0.01)
        await settled(library)
        assert (library.files(), library.stored(book)) == ([], None)
    assert (await library.send(book, data)).status_code == 200
    assert not library.system.component(Contents).writing
    library.check()


async def test_two_uploads_at_a_time_do_not_mix(library: Library) -> None:
    """All of them have all bytes at the same moment; the first one counts."""
    book = await library.order(len(CONTENT))
    bodies = [form_bytes(book.form["fields"], data) for data in (CONTENT, CONTENT[::-1]) * 2]
    async with AsyncExitStack() as held:
        streams = [await held.enter_async_context(await connected(library)) for _ in bodies]
        for stream, body in zip(streams, bodies, strict=True):
            await stream.send_all(raw_head(len(body)) + body[:-1])
        with trio.fail_after(PATIENCE_S):
            while library.contents.writing.total() < 4 * len(CONTENT):  # noqa: ASYNC110 - it has no event
                await trio.sleep(0.01)
            for stream, body in zip(streams, bodies, strict=True):
                await stream.send_all(body[-1:])
            answers = [await stream.receive_some(65_536) for stream in streams]
    stored = library.stored(book)
    assert stored is not None
    assert sorted(answer.split()[1] for answer in answers) == [b"200", b"200", b"400", b"400"]
    found = await fetched(library, library.link(book))
    assert hashlib.sha256(found.content).hexdigest() == stored.sha256
    library.check()


@OUR_ENGINE
async def test_a_body_is_asked_for_only_if_it_will_be_taken(library: Library) -> None:
    book = await library.order(len(CONTENT))
    body = form_bytes(book.form["fields"], CONTENT)
    async with await connected(library) as stream:
        await stream.send_all(raw_head(6_000_000_000, "Expect: 100-continue"))
        with trio.fail_after(PATIENCE_S):
            answer = await stream.receive_some(65_536)
    assert answer.startswith(b"HTTP/1.1 413 ")
    async with await connected(library) as stream:
        await stream.send_all(raw_head(len(body), "Expect: 100-continue"))
        with trio.fail_after(PATIENCE_S):
            assert (await stream.receive_some(65_536)).startswith(b"HTTP/1.1 100 ")
            await stream.send_all(body)
            assert (await stream.receive_some(65_536)).startswith(b"HTTP/1.1 200 ")
    assert library.stored(book) is not None


@OUR_ENGINE
async def test_a_call_is_refused_before_its_file_is_sent(start_server: Callable[..., Any]) -> None:
    limits = {"application_files_bytes_max": 1000}
    async with start_server(limits=limits) as server, library_of(server) as library:
        application = f"/applications/{library.application.hex()}"
        file = await server.call(
            "POST", f"{application}/privateFiles", {"name": "a", "type": "file"}, status=201
        )
        path = f"{application}/privateFiles/{file['id']}/upload"
        none = path.replace(file["id"], "0" * 24)
        for target, token, status in ((path, "no-token", 401), (none, server.token, 404)):
            head = raw_head(5_000_000, "Expect: 100-continue", f"Authorization: Bearer {token}", path=target)
            async with await connected(library) as stream:
                await stream.send_all(head)
                with trio.fail_after(PATIENCE_S):
                    assert (await stream.receive_some(65_536)).startswith(f"HTTP/1.1 {status} ".encode())
        # The form is read, and the file is not waited for.
        book = await library.order(1001)
        body = form_bytes(book.form["fields"], bytes(1001))
        async with await connected(library) as stream:
            await stream.send_all(raw_head(len(body)) + body[: body.index(bytes(1001))])
            with trio.fail_after(PATIENCE_S):
                assert (await stream.receive_some(65_536)).startswith(b"HTTP/1.1 507 ")
                while await stream.receive_some(65_536):
                    pass  # and the connection ends


async def test_http2_uploads_and_downloads(start_server: Callable[..., Any]) -> None:
    data = CONTENT * 300
    async with start_server(http2_prior_knowledge=True) as server, library_of(server) as library:
        book, short = await library.order(len(data)), await library.order(5)
        client = httpx.AsyncClient(
            base_url=server.url, http1=False, http2=True, trust_env=False, timeout=PATIENCE_S
        )
        async with client:
            files = {"file": ("a.bin", data)}
            sent = await client.post("/uploads", data=book.form["fields"], files=files)
            assert (sent.http_version, sent.status_code) == ("HTTP/2", 200), sent.text
            files = {"file": ("a.bin", b"123456")}
            refused = await client.post("/uploads", data=short.form["fields"], files=files)
            assert refused.status_code == 413, refused.text
            found = await client.get(library.link(book), headers={"Range": "bytes=10-"})
            assert (found.status_code, found.content) == (206, data[10:])
        await settled(library)
        assert len(library.files()) == 1


async def test_a_slow_client_is_told(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"body_timeout_s": 0.2}) as server, library_of(server) as library:
        book = await library.order(len(CONTENT))
        body = form_bytes(book.form["fields"], CONTENT)
        async with await connected(library) as stream:
            await stream.send_all(raw_head(len(body)) + body[:5000])
            with trio.fail_after(PATIENCE_S):
                assert (await stream.receive_some(65_536)).startswith(b"HTTP/1.1 408 ")
        await settled(library)
        assert library.files() == []


async def test_a_full_disk_is_told_and_leaves_nothing(library: Library) -> None:
    data = os.urandom(3_000_000)
    book = await library.order(len(data))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    try:
        response = await library.send(book, data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (response.status_code, response.json()["type"]) == (507, "StorageFull"), response.text
    assert (library.files(), library.stored(book)) == ([], None)
    assert (await library.send(book, data)).status_code == 200
    library.check()


async def test_bounds_of_uploads_and_downloads(start_server: Callable[..., Any]) -> None:
    limits = {
        "uploads_max": 1,
        "file_downloads_max": 1,
        "application_files_bytes_max": 10_000_000,
        "files_bytes_max": 8_000_000,
    }
    async with start_server(limits=limits) as server, library_of(server) as library:
        small, large, larger = (
            await library.order(6_000_000),
            await library.order(5_000_000),
            await library.order(2_500_000),
        )
        assert (await library.send(small, bytes(6_000_000))).status_code == 200
        refused = await library.send(large, bytes(5_000_000))
        assert (refused.status_code, "application" in refused.text) == (507, True), refused.text
        refused = await library.send(larger, bytes(2_500_000))
        assert (refused.status_code, "of this owner" in refused.text) == (507, True), refused.text
        book = await library.order(len(CONTENT))
        body = form_bytes(book.form["fields"], CONTENT)
        async with await connected(library) as stream:
            await stream.send_all(raw_head(len(body)) + body[:5000])
            with trio.fail_after(PATIENCE_S):
                while not library.system.component(Uploads).running:  # noqa: ASYNC110 - it has no event
                    await trio.sleep(0.01)
            assert (await library.send(book, CONTENT)).status_code == 503
        await settled(library)
        assert (await library.send(book, CONTENT)).status_code == 200
        link = library.link(small)
        downloads = library.system.component(Downloads)
        token = link.rpartition("=")[2]
        held = await downloads.open(
            library.contents.signatures.read_link(token, library.system.clock.wall_ms())
        )
        assert (await fetched(library, link)).status_code == 503
        held.close()
        assert (await fetched(library, link)).status_code == 200
        with trio.fail_after(PATIENCE_S):
            while downloads.running:  # noqa: ASYNC110 - it has no event
                await trio.sleep(0.01)
        library.check()


async def test_ranges(library: Library) -> None:
    book = await library.order(1000)
    data = os.urandom(1000)
    await library.send(book, data)
    url = library.link(book)
    etag = (await fetched(library, url)).headers["etag"]
    for asked, first, last in (
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=990-", 990, 999),
        ("bytes=990-5000", 990, 999),
        ("bytes=-10", 990, 999),
        ("bytes=-5000", 0, 999),
    ):
        found = await fetched(library, url, Range=asked)
        assert (found.status_code, found.content) == (206, data[first : last + 1]), asked
        assert found.headers["content-range"] == f"bytes {first}-{last}/1000"
    for asked in ("bytes=1000-", "bytes=1000-2000", "bytes=-0"):
        found = await fetched(library, url, Range=asked)
        assert (found.status_code, found.headers["content-range"]) == (416, "bytes */1000"), asked
    for asked in ("bytes=5-2", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6"):
        assert (await fetched(library, url, Range=asked)).content == data, asked
    assert (await fetched(library, url, Range="bytes=0-9", If_Range=etag)).status_code == 206
    assert (await fetched(library, url, Range="bytes=0-9", If_Range='"other"')).status_code == 200
    assert (await fetched(library, url, If_None_Match=etag)).status_code == 304
    head = await fetched(library, url, "HEAD")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "1000", b"")
    assert head.headers["accept-ranges"] == "bytes"
    head = await fetched(library, url, "HEAD", Range="bytes=0-3")
    assert (head.status_code, head.headers["content-length"]) == (200, "1000"), "only GET has ranges"
    assert "content-range" not in head.headers


async def test_a_file_cannot_run_on_our_origin(library: Library) -> None:
    book = await library.order(len(CONTENT))
    await library.send(book, CONTENT)
    for type, shown in (
        ("image/png", "inline"),
        ("text/plain; charset=utf-8", "inline"),
        ("video/mp4", "inline"),
        ("audio/ogg", "inline"),
        ("image/svg+xml", "attachment"),
        ("text/html", "attachment"),
        ("application/pdf", "attachment"),
        ("text/xml", "attachment"),
        ("a\r\nx: y", "attachment"),
    ):
        found = await fetched(library, library.link(book, type=type))
        assert found.headers["content-disposition"].startswith(f"{shown};"), type
        assert found.headers["content-type"] == (type if "\r" not in type else "application/octet-stream")
        assert found.headers["content-security-policy"].startswith("sandbox")
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "x" not in found.headers
    odd = 'é"\\\r\nx.txt'
    found = await fetched(library, library.link(book, name=odd))
    disposition = found.headers["content-disposition"]
    assert disposition == "inline; filename=\"_____x.txt\"; filename*=UTF-8''%C3%A9%22%5C%0D%0Ax.txt"


async def test_links_expire_and_cannot_be_made(library: Library) -> None:
    book = await library.order(len(CONTENT))
    await library.send(book, CONTENT)
    url = library.link(book, keep_s=60)
    assert (await fetched(library, url + "x")).status_code == 403
    assert (await fetched(library, "/contents?token=x")).status_code == 403
    assert (await fetched(library, url)).status_code == 200
    library.server.move_clock(61)
    assert (await fetched(library, url)).status_code == 410
    url = library.link(book)
    await library.ask(Drop(record=book.record))
    await library.contents.sweep()
    assert (await fetched(library, url)).status_code == 410


async def test_a_damaged_file_breaks_off(library: Library) -> None:
    data = os.urandom(1_000_000)
    book = await library.order(len(data))
    await library.send(book, data)
    url = library.link(book)
    path = Path(library.server.settings.data_dir) / "contents" / book.application.hex() / book.content.hex()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(httpx.RemoteProtocolError):
        await fetched(library, url)
    path.write_bytes(data[:-1])
    assert (await fetched(library, url)).status_code == 500


async def test_pages_of_other_origins_may_upload_and_download(start_server: Callable[..., Any]) -> None:
    origin = "https://app.example.com"
    async with start_server(cors_origins=origin) as server, library_of(server) as library:
        book = await library.order(len(CONTENT))
        async with server.client("") as client:
            client.headers["Origin"] = origin
            files = {"file": ("a.txt", CONTENT)}
            sent = await client.post(book.form["url"], data=book.form["fields"], files=files)
            found = await client.get(library.link(book), headers={"Range": "bytes=0-9"})
        for response in (sent, found):
            assert response.headers["access-control-allow-origin"] == origin
        assert "content-range" in found.headers["access-control-expose-headers"].lower()
        assert (sent.status_code, found.content) == (200, CONTENT[:10])
