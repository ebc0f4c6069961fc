"""Files of an application, private and public ones: both have the same operations.

A private file is read by a link that expires, a public file at an address that is always the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.signatures import Policy
from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE, TreeName
from trunkline.actors.data.files.links import file_url
from trunkline.actors.data.files.messages import (
    CreateFile,
    DeleteDirectory,
    DeleteFile,
    FileMove,
    FilePage,
    FilePatch,
    FilePost,
    FileUploadView,
    FileView,
    GetFile,
    ListFiles,
    MoveFile,
    PatchFile,
    PrivateFileChoice,
    PrivateFileMove,
    PrivateFilePage,
    ShownFile,
    ShownFiles,
)
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import ENDED, QueueJob
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS, json_response
from trunkline.http.calls.route import APP_PATH, FILE_TREE_ACTOR, LinkTemplates, NoQuery, Route
from trunkline.http.calls.verbs import delete, get, list_of, patch, post
from trunkline.http.resources.data.file_contents import (
    ADVICE,
    PUBLIC_DOWNLOAD,
    FileForm,
    PrivateFileForm,
    receive_content,
)


class _Files:
    """The operations of one tree. `url_ttl` of a query is for how many seconds a link works."""

    def __init__(self, tree: TreeName) -> None:
        self._tree: TreeName = tree
        self._kind = PRIVATE_FILE if tree == "privateFile" else FILE
        self._private = tree == "privateFile"

    async def list(self, call: Call) -> Response:
        """List files and directories: all of them, or what is in one directory.

        `parentExists` says whether there is that directory.
        """
        page: ShownFiles = await call.service.read_message(
            ListFiles(tree=self._tree, application=call.application, query=call.query)
        )
        for file in page.files:
            self._add_url(call, file)
        return json_response(call, 200, page.shown)

    async def create(self, call: Call) -> Response:
        """Create a file, or a directory.

        A file is pending until its content has arrived. For that the answer has a form, `upload`, if `fileSize` is
        given: send its fields to its URL, and the content as the last field, named `file`. A small file may be sent to
        the operation `upload` instead. What exists already is not replaced: change it for new content.
        """
        answer = await self._ask(
            call,
            CreateFile(tree=self._tree, body=call.body, by=call.principal.creator, origin=call.origin),
        )
        call.ids = {**call.ids, self._kind.name: answer.id}
        return await self._respond(call, 201, with_form=True)

    async def get(self, call: Call) -> Response:
        """Get a file or a directory. A complete file has a URL for its content."""
        return await self._respond(call, 200)

    async def patch(self, call: Call) -> Response:
        """Give a file new content, or another type.

        With `fileSize` the answer has a form, `upload`, as that of a new file. Until the new content has arrived, reads
        show and give the old one. Without `fileSize` the other fields change at once. A body without any field gives a
        form as well, for a content of any size. An answer without a form says that another content came meanwhile, for
        which it shows the file: ask again.
        """
        id = call.ids[self._kind.name]
        await self._ask(call, PatchFile(tree=self._tree, file=id, body=call.body, if_match=call.if_match))
        return await self._respond(call, 201, with_form=True)

    async def upload(self, call: Call) -> Response:
        """Send the content of a small file, as the only part of a form; it has the name of the kind of file.

        If the file waits for content of a certain size, this must be it. Larger files are sent by the form that the
        creation or the change of a file gives.
        """
        await receive_content(call, self._tree)
        return await self._respond(call, 200)

    async def move(self, call: Call) -> Response:
        """Move or rename a file, or a directory with all that is in it.

        Directories that the new place needs are created. The id stays the same. A directory is moved at once, whatever
        is in it. Nothing is replaced: what exists at the new place refuses the move.
        """
        await self._ask(
            call,
            MoveFile(
                tree=self._tree,
                file=call.ids[self._kind.name],
                query=call.query,
                by=call.principal.creator,
                if_match=call.if_match,
                origin=call.origin,
            ),
        )
        return await self._respond(call, 201)

    async def delete(self, call: Call) -> Response:
        """Delete a file, or a directory with all that is in it.

        A file is deleted at once. The contents of a directory are deleted by a job, which the job log shows. Until it
        ends they have the status `deleting`, and nothing can be changed in the directory or created at its path.
        """
        id = call.ids[self._kind.name]
        found = await self._read(call)
        if found.shown["type"] == "file":
            await self._ask(
                call, DeleteFile(tree=self._tree, file=id, if_match=call.if_match, origin=call.origin)
            )
        elif not self._is_queued(call, found):
            await self._delete_directory(call, id, found)
        return Response(200, [JSON], SUCCESS)

    async def _delete_directory(self, call: Call, id: bytes, found: ShownFile) -> None:
        application = Ref("application", ROOT, call.application)
        queue = QueueJob(
            operation=f"{self._tree}.delete",
            resource=call.application,
            input={"id": id.hex(), "path": found.path},
            # Who has begun the deletion may leave before its end: for readers the directory is gone already.
            by=msgspec.structs.replace(call.principal.creator, mandates=()),
            result_to=[],  # nobody waits for a mail about it
        )

        def then_mark(answers: list[Any]) -> tuple[Ref, Message]:
            if isinstance(answers[0], DomainError):
                raise answers[0]
            begin = DeleteDirectory(tree=self._tree, file=id, job=answers[0], if_match=call.if_match)
            return FILE_TREE_ACTOR.ref(call.ids), begin

        call.service.system.check_load()
        await call.service.system.ask_each([(application, queue)], then_mark)

    def _is_queued(self, call: Call, found: ShownFile) -> bool:
        """Whether a job deletes the directory already. One that failed is queued again."""
        if found.job is None:
            return False
        with call.service.system.store.snapshot() as snapshot:
            job = records.find(snapshot, JOB, call.application, found.job)
        return job is not None and job.doc["status"] not in ENDED

    # Answers.

    async def _ask(self, call: Call, message: Message) -> Any:
        system = call.service.system
        system.check_load()
        return (await system.ask(FILE_TREE_ACTOR.ref(call.ids), message)).value

    async def _read(self, call: Call) -> ShownFile:
        id = call.ids[self._kind.name]
        shown: ShownFile = await call.service.read_message(
            GetFile(tree=self._tree, application=call.application, file=id)
        )
        return shown

    async def _respond(self, call: Call, status: int, *, with_form: bool = False) -> Response:
        """The record as it is now, with its URL, and with the form for an upload."""
        file = await self._read(call)
        self._add_url(call, file)
        if with_form and file.upload is not None:
            upload = file.upload
            file.shown["upload"] = call.service.system.component(Contents).upload_form(
                Policy(
                    kind=self._tree,
                    application=call.application,
                    record=call.ids[self._kind.name],
                    content=upload.content,
                    size_bytes=upload.size_bytes,
                    type=upload.type,
                    expires_ms=upload.expires_ms,
                    issued_ms=call.now_ms,
                )
            )
        return json_response(call, status, file.shown)

    def _add_url(self, call: Call, file: ShownFile) -> None:
        """Add the URL of a complete file: a link that expires, or its address."""
        if file.content is None:
            return
        contents = call.service.system.component(Contents)
        expires_ms = None
        if self._private:
            ttl_s = getattr(call.query, "url_ttl", None)
            if ttl_s is None:
                ttl_s = call.service.system.limits.url_ttl_default_s
            if not ttl_s:
                return
            expires_ms = call.now_ms + ttl_s * 1000
        file.shown["url"] = file_url(contents, call.application, file, expires_ms=expires_ms)


def _routes(tree: TreeName) -> tuple[Route, ...]:
    """The routes of one tree."""
    files, private = _Files(tree), tree == "privateFile"
    noun = "private file" if private else "file"
    many_path = f"{APP_PATH}/{tree}s"
    one_path = f"{APP_PATH}/{'privateFiles' if private else 'file'}/{{{tree}Id}}"
    links = LinkTemplates({"self": one_path, "application": APP_PATH})
    shown: dict[str, Any] = {
        "query": PrivateFileChoice if private else NoQuery,
        "reply": FileView,
        "links": links,
        "cli": True,
    }
    return (
        list_of(
            many_path,
            f"{tree}s.get",
            f"List {noun}s",
            files.list,
            FileView,
            PrivateFilePage if private else FilePage,
            links=LinkTemplates({"self": many_path, "application": APP_PATH}, links.own),
            cli=True,
            beside={"parentExists": bool},
        ),
        post(
            many_path,
            f"{tree}s.post",
            f"Create a {noun} or a directory",
            files.create,
            body=FilePost,
            reply=FileUploadView,
            links=links,
            ok=201,
            cli=True,
        ),
        get(one_path, f"{tree}.get", f"Get a {noun} or a directory", files.get, **shown),
        patch(
            one_path,
            f"{tree}.patch",
            f"Give a {noun} new content",
            files.patch,
            body=FilePatch,
            reply=FileUploadView,
            links=links,
            ok=201,
            cli=True,
        ),
        delete(one_path, f"{tree}.delete", f"Delete a {noun} or a directory", files.delete, cli=True),
        post(
            f"{one_path}/upload",
            f"{tree}.upload",
            f"Send the content of a small {noun}",
            files.upload,
            form=PrivateFileForm if private else FileForm,
            streams_body=True,
            body_advice=ADVICE,
            also={412: "If-Match names another revision than the stored one"},
            **shown,
        ),
        post(
            f"{one_path}/move",
            f"{tree}.move",
            f"Move a {noun} or a directory",
            files.move,
            ok=201,
            also={412: "If-Match names another revision than the stored one"},
            **{**shown, "query": PrivateFileMove if private else FileMove},
        ),
    )


ROUTES = (
    *_routes("privateFile"),
    *_routes("file"),
    PUBLIC_DOWNLOAD,
)
