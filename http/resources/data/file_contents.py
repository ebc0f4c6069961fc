"""The contents of files where a call has them: a small file that is sent in one call, and public files that are read.

Both have the bounds, headers and ranges of `contents.py`, which serves signed forms and links.
"""

from __future__ import annotations

from typing import Final

import msgspec

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.signatures import PUBLIC_PATH, Link
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.data.files.fields import check_announced
from trunkline.actors.data.files.kind import TreeName
from trunkline.actors.data.files.messages import (
    FindFile,
    GetFile,
    ReserveContent,
    SetContent,
    ShownFile,
    usable_type,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.form_data import FormData
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import FILE_TREE_ACTOR
from trunkline.http.calls.verbs import get
from trunkline.http.resources.data.contents import serve

ADVICE: Final = " Send a larger file by a form: PATCH it with its fileSize, which gives one (upload)."


class PrivateFileForm(msgspec.Struct, frozen=True, rename="camel"):
    """A form with the content of a private file."""

    private_file: bytes


class FileForm(msgspec.Struct, frozen=True):
    """A form with the content of a file."""

    file: bytes


async def receive_content(call: Call, tree: TreeName) -> None:
    """Give a file the content that a call sends as the only part of a form, which has the name of the tree."""
    system, id, application = call.service.system, call.ids[tree], call.application
    contents, files = system.component(Contents), FILE_TREE_ACTOR.ref(call.ids)
    bytes_max = system.limits.multipart_bytes_max
    form = FormData(call)
    # Before the body is asked for: a client that waits for that need not send it.
    file: ShownFile = await call.service.read_message(GetFile(tree=tree, application=application, file=id))
    part = await form.expect_file(tree)
    for name in form.fields:
        raise Invalid(f"{name[:100]}: is not a field of this form; send only {tree}.")
    system.check_load()
    with system.component(Uploads).slot(application):
        reserve = ReserveContent(tree=tree, file=id, if_match=call.if_match)
        content: bytes = (await system.ask(files, reserve)).value
        with contents.in_use(application, content):
            async with contents.draft(application, content, bytes_max) as draft:
                async for piece in part:
                    if draft.size_bytes + len(piece) > bytes_max:
                        raise PayloadTooLarge(f"{tree}: has more than {bytes_max} bytes.{ADVICE}")
                    await draft.write(piece)
                await form.expect_end()
                if file.upload is not None:
                    check_announced(tree, draft.size_bytes, file.upload.size_bytes)
                stored = await draft.finish()
            type = usable_type(part.content_type)
            await system.ask(
                files, SetContent(tree=tree, file=id, content=content, stored=stored, content_type=type)
            )


async def download_public(call: Call) -> Response:
    """Download a public file by its path. No token is needed.

    Ranges are served (`Range`, `If-Range`). Files that a browser might run are sent to be saved. Pages of all origins
    may read it. The query string means nothing, so a page may change it to get around a cache.
    """
    file: ShownFile = await call.service.read_message(
        FindFile(tree="file", application=call.application, path=call.ids["filePath"])
    )
    found = file.content
    assert found is not None
    link = Link(call.application, found.content, found.stored, found.name, found.type, 0)
    answer = await serve(call, link, "public, max-age=0, must-revalidate")
    answer.headers.append((b"access-control-allow-origin", b"*"))
    return answer


PUBLIC_DOWNLOAD: Final = get(
    f"{PUBLIC_PATH}/{{applicationId}}/{{filePath}}",
    "files.download",
    "Download a public file",
    download_public,
    bytes,
    free_query=True,
    access="none",
    also={
        206: "A range of the file",
        404: "There is no public file at this path",
        416: "The file has no bytes in the range that is asked for",
    },
)
