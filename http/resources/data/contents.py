"""Routes: the bytes of files, uploaded by a signed form and downloaded by a signed link. They need no token of ours."""

from __future__ import annotations

import re
from typing import Annotated, Final, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.downloads import Downloads
from trunkline.actors.core.contents.signatures import CONTENTS_PATH, UPLOADS_PATH, Link
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.core.runtime import work
from trunkline.actors.core.values.structs import Query
from trunkline.http.calls.call import Call
from trunkline.http.calls.download_headers import download_headers
from trunkline.http.calls.entity_tag import tag_matches
from trunkline.http.calls.errors import JSON, protocol_error
from trunkline.http.calls.form_data import FormData
from trunkline.http.calls.request import Headers, Response
from trunkline.http.calls.responses import SUCCESS
from trunkline.http.calls.verbs import get, post

_INLINE: Final = re.compile(
    r"(image/(png|jpeg|gif|webp|avif|bmp)|text/plain|(audio|video)/[a-z0-9.+-]+)(;.*)?", re.ASCII
)
"""Types that a browser may show: they run nothing. All others are saved."""
_TYPE: Final = re.compile(r"[!-~]+/[!-~]+(;[ -~]*)?", re.ASCII)
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class ContentLink(Query, frozen=True):
    """The query string of a link to a content."""

    token: Annotated[str, Meta(max_length=4096)]


class UploadFields(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"content_type": "Content-Type"}
):
    """An upload form: `upload.fields` of a file as they are, and then the file."""

    key: str
    content_type: str
    algorithm: str
    credential: str
    date: str
    policy: str
    signature: str
    file: bytes
    bucket: str | UnsetType = UNSET
    """May be left out."""


async def upload(call: Call) -> Response:
    """Upload the contents of a file by the form that its creation or change gave. No token is needed.

    Send each of `upload.fields` unchanged, and the file as the last part, named `file`. The file must have the size
    that was announced. The answer comes when all of it is on disk and the file is completed. An upload that was cut can
    be repeated until the form expires; one that has succeeded can be repeated with the same bytes. The `ETag` of the
    answer is the MD5 of the content, as object stores answer.
    """
    system = call.service.system
    form = FormData(call)
    file = await form.expect_file("file")
    policy = system.component(Contents).signatures.read_form(form.fields, call.now_ms)
    work.is_for(policy.application)
    if policy.size_bytes is not None:
        form.check_size(policy.size_bytes)
    async with system.component(Uploads).begin(policy) as uploading:
        async for piece in file:
            await uploading.write(piece)
        await form.expect_end()
        stored = await uploading.finish()
    return Response(200, [JSON, (b"etag", f'"{stored.md5}"'.encode())], SUCCESS)


async def download(call: Call) -> Response:
    """Download the contents of a file by a link. No token is needed.

    Ranges are served (`Range`, `If-Range`). Files that a browser might run are sent to be saved. The last bytes of a
    whole file are sent only if its hash is correct.
    """
    signatures = call.service.system.component(Contents).signatures
    return await serve(call, signatures.read_link(call.query.token, call.now_ms))


async def serve(call: Call, link: Link, caching: str = "private, max-age=0, must-revalidate") -> Response:
    """The response with the content that a link names, or a range of it, or 304. `caching` is its `Cache-Control`."""
    system, request = call.service.system, call.request
    system.component(Contents).check_named(link.application, link.content)
    etag = f'"{link.stored.sha256}"'
    headers = _headers(link, etag, caching)
    if tag_matches(request.header(b"if-none-match"), link.stored.sha256):
        return Response(304, headers)
    size_bytes = link.stored.size_bytes
    part = _range(request.header(b"range"), size_bytes) if request.method == "GET" else None
    if part is not None and request.header(b"if-range") not in (None, etag):
        part = None  # the client has a part of another file
    if part is not None and not part.length:
        headers, body = protocol_error(
            416, f"Range: the file has {size_bytes} bytes, and none of this range."
        )
        return Response(416, [*headers, (b"content-range", b"bytes */%d" % size_bytes)], body)
    downloads = system.component(Downloads)
    if part is None:
        found = await downloads.open(link, request.address)
        return Response(200, [*headers, (b"content-length", b"%d" % size_bytes)], stream=found)
    found = await downloads.open(link, request.address, first=part.first, length=part.length)
    last = part.first + part.length - 1
    headers += [
        (b"content-length", b"%d" % part.length),
        (b"content-range", b"bytes %d-%d/%d" % (part.first, last, size_bytes)),
    ]
    return Response(206, headers, stream=found)


class _Part(NamedTuple):
    """A range of a file; of no bytes if the file has none of those that were asked for."""

    first: int
    length: int


def _range(asked: str | None, size_bytes: int) -> _Part | None:
    """The range that is asked for; None for the whole file: also if the header is none that this server knows."""
    match = None if asked is None else _RANGE.fullmatch(asked.strip())
    if match is None or match[0] == "bytes=-":
        return None
    if not match[1]:
        length = min(int(match[2]), size_bytes)
        return _Part(size_bytes - length, length)
    first = int(match[1])
    last = int(match[2]) if match[2] else size_bytes - 1
    if last < first and match[2]:
        return None
    return _Part(first, max(0, min(last, size_bytes - 1) - first + 1))


def _headers(link: Link, etag: str, caching: str) -> Headers:
    # A type with other characters could add a header of its own.
    type = link.type if _TYPE.fullmatch(link.type) else "application/octet-stream"
    shown = "inline" if _INLINE.fullmatch(type.lower()) else "attachment"
    plain = re.sub(r"[^ !#-\[\]-~]", "_", link.name)
    disposition = f"{shown}; filename=\"{plain}\"; filename*=UTF-8''{quote(link.name, safe='')}"
    return [
        *download_headers(type, disposition, link.stored.sha256, caching),
        (b"accept-ranges", b"bytes"),
        (b"etag", etag.encode()),
        (b"content-security-policy", b"sandbox; default-src 'none'"),
        (b"cross-origin-resource-policy", b"cross-origin"),
    ]


ROUTES = (
    post(
        UPLOADS_PATH,
        "uploads.post",
        "Upload the contents of a file",
        upload,
        form=UploadFields,
        streams_body=True,
        body_limit="file_bytes_max",
        access="none",
        also={
            403: "The form was not made by this server, or it was changed",
            404: "The application of the file does not exist any more",
            410: "The form has expired, or the file was changed or deleted",
            507: "The disk is full, or a limit on the bytes of files is reached; nothing was stored",
        },
    ),
    get(
        CONTENTS_PATH,
        "contents.get",
        "Download the contents of a file",
        download,
        bytes,
        query=ContentLink,
        access="none",
        also={
            206: "A range of the file",
            403: "The link is not a valid link of this server",
            410: "The link has expired, or the file was changed or deleted",
            416: "The file has no bytes in the range that is asked for",
        },
    ),
)
