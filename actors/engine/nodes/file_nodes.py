"""FileCreateNode and FileGetNode: files of the application are created with a content, and read.

`private` chooses the tree. The content is a text (`fileContentsTemplate`, read as `encodingTemplate` says), or that of
a URL (`fileUrlTemplate`), of at most 5 MB. `shouldOverwrite` gives an existing file the new content. `resultPath` gets
the file with its `url`; for a private one that is a link which works for `urlTTLTemplate` seconds. A file is created
once, also if the run is repeated after a crash.

FileGetNode puts `{"value", "metadata"}` at `destination`: the content as a text, of at most 5 MB, or with
`isDownloadURL` the URL. What is refused is there as `{"error": {"type", "message"}}`; without a path it ends the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final

import httpx

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.downloads import Downloads
from trunkline.actors.core.contents.signatures import Link
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.http_requests import Request, fetch
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.data.files.kind import TreeName
from trunkline.actors.data.files.links import file_url
from trunkline.actors.data.files.messages import (
    CreateFile,
    FilePatch,
    FilePost,
    FindFile,
    PatchFile,
    SetContent,
    ShownFile,
)
from trunkline.actors.engine.bodies import body_of, with_error
from trunkline.actors.engine.encodings import bytes_written, text_writer
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_rights import may_read, may_write
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    RESULT,
    Config,
    FlagSetting,
    LongTemplateSetting,
    NumberSetting,
    PathSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    is_on,
    needed_path,
    needed_text_reader,
    number_reader,
    path_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.store.object_store import Stored

_FILE_NAME: Final = TemplateSetting("fileNameTemplate", is_needed=True)
_PARENT_DIRECTORY: Final = TemplateSetting("parentDirectoryTemplate")
_PRIVATE: Final = FlagSetting("private")
_FILE_CONTENTS: Final = LongTemplateSetting("fileContentsTemplate")
_ENCODING: Final = TemplateSetting("encodingTemplate")
_FILE_URL: Final = TemplateSetting("fileUrlTemplate")
_CONTENT_TYPE: Final = TemplateSetting("contentTypeTemplate")
_SHOULD_OVERWRITE: Final = FlagSetting("shouldOverwrite")
_URL_TTL: Final = NumberSetting("urlTTLTemplate")
_FILE_PATH: Final = TemplateSetting("filePathTemplate", is_needed=True)
_IS_DOWNLOAD_URL: Final = FlagSetting("isDownloadURL")
_DESTINATION: Final = PathSetting("destination", is_needed=True)

CONTENT_BYTES_MAX: Final = 5_000_000
URL_TIMEOUT_S: Final = 30.0


def _create(config: Config) -> NodeStep:
    tree = _tree(config)
    name, directory = (
        needed_text_reader(config, _FILE_NAME),
        text_reader(config, _PARENT_DIRECTORY),
    )
    type, content = text_reader(config, _CONTENT_TYPE), _content(config)
    overwrites, expiry = is_on(config, _SHOULD_OVERWRITE), number_reader(config, _URL_TTL)
    result = path_of(config, RESULT)

    def step(visit: Visit) -> Any:
        return with_error(visit, result, created(visit))

    async def created(visit: Visit) -> dict[str, Any]:
        given = {
            "type": "file",
            "name": name(visit),
            "parentDirectory": directory(visit),
            "contentType": type(visit),
        }
        post = body_of(FilePost, given, "fileNameTemplate")
        visit.world.effect("creates a file")
        id, stored = await _written(visit, await content(visit))
        path = "/".join(
            part.strip("/") for part in (given["parentDirectory"], given["name"]) if part.strip("/")
        )
        files = Ref("fileTree", visit.world.application, visit.world.application)
        found = await _found(visit, tree, path) if overwrites else None
        if found is None:
            by, origin = visit.world.creator, visit.world.origin
            create = CreateFile(tree=tree, body=post, by=by, content=id, stored=stored, origin=origin)
            await visit.ask(files, create)
        else:
            file = bytes.fromhex(found.shown["id"])
            change = SetContent(tree=tree, file=file, content=id, stored=stored, origin=visit.world.origin)
            await visit.ask(files, change)
            if given["contentType"] and given["contentType"] != found.shown.get("contentType"):
                patch = FilePatch(content_type=given["contentType"])
                await visit.ask(files, PatchFile(tree=tree, file=file, body=patch))
        shown = await visit.read(FindFile(tree=tree, application=visit.world.application, path=path))
        return _shown(visit, tree, shown, expiry)

    return step


def _content(config: Config) -> Callable[[Visit], Any]:
    """Reads the content of a new file, which may wait for a URL."""
    text, encoding = text_reader(config, _FILE_CONTENTS), text_reader(config, _ENCODING)
    if not text_of(config, _FILE_URL):

        async def of_text(visit: Visit) -> bytes:
            return bytes_written(text(visit), encoding(visit), "config.fileContentsTemplate")

        return of_text
    if text_of(config, _FILE_CONTENTS):
        raise Unusable("config.fileUrlTemplate: give it or fileContentsTemplate, not both.")
    url = text_reader(config, _FILE_URL)

    async def of_url(visit: Visit) -> bytes:
        request = Request("GET", url(visit).strip(), httpx.Headers(), field="config.fileUrlTemplate")
        private = partial(may_be_private, visit.world.system)
        try:
            received = await fetch(
                request, timeout_s=URL_TIMEOUT_S, bytes_max=CONTENT_BYTES_MAX, private=private
            )
        except Undelivered as problem:
            raise refused(f"config.fileUrlTemplate: {problem}") from None
        if received.status != 200:
            raise refused(
                f"config.fileUrlTemplate: this URL answered with {received.status}; 200 was expected."
            )
        return received.content

    return of_url


async def _written(visit: Visit, content: bytes) -> tuple[bytes, Stored]:
    """Write a content, which is removed after a time if no file gets it."""
    world = visit.world
    system, now_ms = world.system, world.system.clock.wall_ms()
    contents, id = system.component(Contents), system.ids.new(now_ms)
    await contents.reserve_now(world.application, id, now_ms + system.limits.upload_form_s * 1000)
    stored = await contents.write(world.application, id, _one(content), CONTENT_BYTES_MAX)
    return id, stored


async def _one(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


async def _found(visit: Visit, tree: TreeName, path: str) -> ShownFile | None:
    try:
        found: ShownFile = await visit.read(
            FindFile(tree=tree, application=visit.world.application, path=path)
        )
    except NotFound:
        return None
    return found


def _get(config: Config) -> NodeStep:
    tree, path = _tree(config), needed_text_reader(config, _FILE_PATH)
    is_url, encoding = is_on(config, _IS_DOWNLOAD_URL), text_reader(config, _ENCODING)
    expiry, destination = number_reader(config, _URL_TTL), needed_path(config, _DESTINATION)

    async def step(visit: Visit) -> int:
        output = await with_error(visit, destination, got(visit))
        check_payload(visit)
        return output

    async def got(visit: Visit) -> dict[str, Any]:
        write = text_writer(encoding(visit))
        file = await visit.read(FindFile(tree=tree, application=visit.world.application, path=path(visit)))
        shown = _shown(visit, tree, file, expiry)
        return {"value": shown["url"] if is_url else write(await _read(visit, file)), "metadata": shown}

    return step


async def _read(visit: Visit, file: ShownFile) -> bytes:
    found, application = file.content, visit.world.application
    assert found is not None
    if found.stored.size_bytes > CONTENT_BYTES_MAX:
        raise refused(
            f"config.filePathTemplate: the file has {found.stored.size_bytes} bytes; at most {CONTENT_BYTES_MAX} are "
            "read. Use its URL (isDownloadURL)."
        )
    link = Link(application, found.content, found.stored, found.name, found.type, 0)
    download = await visit.world.system.component(Downloads).open(link)
    pieces: list[bytes] = []
    try:
        while (piece := await download.next()) is not None:
            pieces.append(piece)
    finally:
        download.close()
    return b"".join(pieces)


def _shown(
    visit: Visit, tree: TreeName, file: ShownFile, expiry: Callable[[Visit], float] | None
) -> dict[str, Any]:
    system, expires_ms = visit.world.system, None
    if tree == "privateFile":
        seconds = system.limits.url_ttl_default_s if expiry is None else expiry(visit)
        if not 1 <= seconds <= 604_800:
            raise refused(f"config.urlTTLTemplate: gives {seconds:g}; give seconds from 1 to 604800.")
        expires_ms = system.clock.wall_ms() + int(seconds * 1000)
    url = file_url(system.component(Contents), visit.world.application, file, expires_ms=expires_ms)
    return file.shown | {"url": url}


def _tree(config: Config) -> TreeName:
    return "privateFile" if is_on(config, _PRIVATE) else "file"


TYPES: Final[dict[str, NodeType]] = {
    "FileCreateNode": NodeType(
        _create,
        Form(
            "data",
            (
                _FILE_NAME,
                _PARENT_DIRECTORY,
                _PRIVATE,
                _FILE_CONTENTS,
                _ENCODING,
                _FILE_URL,
                _CONTENT_TYPE,
                _SHOULD_OVERWRITE,
                _URL_TTL,
                RESULT,
            ),
        ),
        (
            may_write("privateFiles.post", _PRIVATE),
            may_write("privateFile.patch", _PRIVATE, _SHOULD_OVERWRITE),
            may_write("files.post", unless=(_PRIVATE,)),
            may_write("file.patch", _SHOULD_OVERWRITE, unless=(_PRIVATE,)),
        ),
    ),
    "FileGetNode": NodeType(
        _get,
        Form("data", (_FILE_PATH, _PRIVATE, _ENCODING, _IS_DOWNLOAD_URL, _URL_TTL, _DESTINATION)),
        (may_read("privateFile.get", _PRIVATE), may_read("file.get", unless=(_PRIVATE,))),
    ),
}
