"""The two trees of files of an application beside a model: a dict from path to what is there. Owns no test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.actors.house import House
from trunkline.actors import readers
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.messages import CompleteUpload
from trunkline.actors.core.contents.named import all_contents, content_problems, name_of
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.files import messages as files
from trunkline.actors.data.files.jobs import delete_part
from trunkline.actors.data.files.kind import TREES, TreeName
from trunkline.actors.data.files.tree import find, in_order
from trunkline.actors.platform.jobs.job import Job
from trunkline.actors.platform.jobs.messages import BeginJob, EndJob, QueueJob
from trunkline.store.object_store import Stored

BY = Creator("0123456789abcdef01234567", "user", "owner@example.com")
Path = tuple[str, ...]
DIRECTORIES_MAX, CHARS_MAX = 3, 9


@dataclass
class Entry:
    """What the model knows of a record. `content` is what can be read, `promised` what a form was given for."""

    id: bytes
    is_directory: bool
    content: bytes | None = None
    promised: int | None = None
    deleting: bool = False


class Forest:
    """The trees under test beside their models. Each method does the same to both, and compares the outcome."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.models: dict[TreeName, dict[Path, Entry]] = {"file": {}, "privateFile": {}}
        self.jobs: list[tuple[bytes, TreeName]] = []

    # What is done.

    async def create(self, tree: TreeName, parent: Path, name: Path, size: int | None) -> None:
        """Create a file of a size, or a directory (None)."""
        model, path = self.models[tree], parent + name
        body: dict[str, Any] = {"name": "/".join(name), "type": "directory" if size is None else "file"}
        if parent:
            body["parentDirectory"] = "/" + "/".join(parent)
        if size is not None:
            body["fileSize"] = size
        message = files.CreateFile(tree=tree, body=msgspec.convert(body, files.FilePost), by=BY)
        allowed = self._is_free(model, path, is_directory=size is None)
        made = await self._try(message, allowed=allowed)
        if made is not None:
            await self._add_missing(tree, path)
            model[path] = Entry(made.id, size is None, None, size)

    async def move(self, tree: TreeName, number: int, parent: Path | None, name: Path | None) -> None:
        """Move a record."""
        model = self.models[tree]
        if not model:
            return
        path = sorted(model)[number % len(model)]
        entry = model[path]
        query = files.FileMove(
            name=None if name is None else "/".join(name),
            parent_directory=None if parent is None else "/" + "/".join(parent),
        )
        new = (path[:-1] if parent is None else parent) + (path[-1:] if name is None else name)
        inside = {each: found for each, found in model.items() if each[: len(path)] == path}
        allowed = not entry.deleting and (
            new == path
            or (
                new[: len(path)] != path
                and self._is_free(model, new, is_directory=entry.is_directory)
                and all(
                    fits(new + each[len(path) :], is_directory=found.is_directory)
                    for each, found in inside.items()
                    if found.is_directory
                )
            )
        )
        await self._try(files.MoveFile(tree=tree, file=entry.id, query=query, by=BY), allowed=allowed)
        if allowed and new != path:
            await self._add_missing(tree, new)
            for each in inside:
                model[new + each[len(path) :]] = model.pop(each)

    async def delete(self, tree: TreeName, number: int) -> None:
        """Delete a file, or begin to delete a directory."""
        model = self.models[tree]
        if not model:
            return
        path = sorted(model)[number % len(model)]
        entry = model[path]
        if not entry.is_directory:
            await self._try(files.DeleteFile(tree=tree, file=entry.id), allowed=not entry.deleting)
            if not entry.deleting:
                del model[path]
            return
        owner = Ref("application", ROOT, self.house.application)
        queue = QueueJob(
            operation=f"{tree}.delete",
            resource=self.house.application,
            input={"id": entry.id.hex(), "path": "/".join(path)},
            by=BY,
            result_to=[],
        )

        def mark(answers: list[Any]) -> tuple[Ref, Message]:
            return self.ref, files.DeleteDirectory(tree=tree, file=entry.id, job=answers[0])

        job, _ = await self.house.system.ask_each([(owner, queue)], mark)
        self.jobs.append((job, tree))
        for each, found in model.items():
            found.deleting = found.deleting or each[: len(path)] == path

    async def work(self, number: int) -> None:
        """Let a job do one part, as an attempt of its own."""
        if not self.jobs:
            return
        id, tree = self.jobs[number % len(self.jobs)]
        owner = Ref("application", ROOT, self.house.application)
        doc = (await self.house.system.ask(owner, BeginJob(id=id))).value
        job = Job(self.house.system, owner, id, doc)
        job.completed = job.note.get("removed", 0)
        if not await delete_part(job, TREES[tree], tree):
            self.jobs.remove((id, tree))
            end = EndJob(id=id, status="completed", completed=job.completed, total=None)
            await self.house.system.ask(owner, end)
        model, left = self.models[tree], await self.shown(tree)
        for path in model.keys() - left.keys():
            assert model.pop(path).deleting
        assert all(path[:-1] in left or not path[:-1] for path in left), (
            "a directory went before its contents"
        )

    async def promise(self, tree: TreeName, number: int, size: int) -> None:
        """Ask for a form for new content."""
        entry = self._chosen(tree, number)
        if entry is None:
            return
        allowed = not entry.deleting and not entry.is_directory
        before = await self._read(files.GetFile(tree=tree, application=self.house.application, file=entry.id))
        body = files.FilePatch(file_size=size)
        await self._try(files.PatchFile(tree=tree, file=entry.id, body=body), allowed=allowed)
        if allowed:
            entry.promised = size
        if before.upload is not None:  # the form of an earlier answer is good no more
            content, stored = before.upload.content, Stored(before.upload.size_bytes, "0" * 64)
            late = CompleteUpload(kind=tree, record=entry.id, content=content, stored=stored)
            await self._try(late, allowed=False)

    async def upload(self, tree: TreeName, number: int, *, by_form: bool) -> None:
        """Send content: by the newest form, or by the operation for small files."""
        entry = self._chosen(tree, number)
        if entry is None:
            return
        shown = await self._read(files.GetFile(tree=tree, application=self.house.application, file=entry.id))
        if by_form and shown.upload is None:
            assert entry.promised is None or entry.deleting
            return
        data = bytes([number % 256]) * (2 if entry.promised is None else entry.promised)
        allowed = not entry.deleting and not entry.is_directory
        if by_form:
            content = shown.upload.content
        else:
            content = await self._try(files.ReserveContent(tree=tree, file=entry.id), allowed=allowed)
            if content is None:
                return

        async def pieces() -> AsyncIterator[bytes]:
            yield data

        contents = self.house.system.component(Contents)
        stored = await contents.write(self.house.application, content, pieces(), 100)
        for _ in range(2 if by_form else 1):  # a form may be used again with the same content
            await self._try(
                CompleteUpload(kind=tree, record=entry.id, content=content, stored=stored)
                if by_form
                else files.SetContent(tree=tree, file=entry.id, content=content, stored=stored),
                allowed=allowed,
            )
        if allowed:
            entry.content, entry.promised = data, None

    # What is there.

    async def check(self) -> None:
        """Compare the trees with their models."""
        for tree, model in self.models.items():
            shown = await self.shown(tree)
            assert shown.keys() == model.keys()
            for path, entry in model.items():
                item = shown[path]
                status = "completed" if entry.is_directory or entry.content is not None else "pending"
                size = entry.promised if entry.content is None else len(entry.content)
                assert item["id"] == entry.id.hex()
                assert item["type"] == ("directory" if entry.is_directory else "file")
                assert item["status"] == ("deleting" if entry.deleting else status)
                assert item.get("fileSize") == size
            with self.house.system.store.snapshot() as snapshot:
                for path, entry in model.items():
                    found = find(
                        snapshot, self.house.application, private=tree == "privateFile", path="/".join(path)
                    )
                    assert (found is None) == entry.deleting
                    assert found is None or found.id == entry.id
                ordered = [each.id for each, _ in in_order(snapshot, self.house.application, TREES[tree])]
            complete = {
                entry.id
                for entry in model.values()
                if not entry.deleting and (entry.is_directory or entry.content is not None)
            }
            assert len(ordered) == len(complete)
            assert set(ordered) == complete

    def check_contents(self) -> None:
        """Compare the contents that records name with the model, and with what is in the folder."""
        system = self.house.system
        with system.store.snapshot() as snapshot:
            assert list(content_problems(KINDS, snapshot, system.store.contents)) == []
            named = dict(all_contents(KINDS, snapshot))
        wanted = [
            entry.content
            for model in self.models.values()
            for entry in model.values()
            if entry.content is not None
        ]
        contents = system.component(Contents)
        read = []
        for name, stored in named.items():
            content = bytes.fromhex(name.partition("/")[2])
            assert name == name_of(self.house.application, content)
            with contents.open(self.house.application, content, Stored(*stored)) as opened:
                read.append(opened.read(1000))
        assert sorted(read) == sorted(wanted)
        folder = system.store.directory.path / "contents" / self.house.application.hex()
        assert {each.name for each in folder.glob("*")} == {name.partition("/")[2] for name in named}

    async def shown(self, tree: TreeName) -> dict[Path, dict[str, Any]]:
        """What the list of a whole tree shows, by path."""
        query = files.FilePage(per_page=1000)
        page = await self._read(files.ListFiles(tree=tree, application=self.house.application, query=query))
        found = {tuple(each.path.split("/")): each.shown for each in page.files}
        assert len(found) == page.shown["totalCount"]
        for path, item in found.items():
            assert item["parentDirectory"] == "".join(["/", *(f"{name}/" for name in path[:-1])])
            assert item["name"] == path[-1]
        return found

    # Parts.

    @property
    def ref(self) -> Ref:
        return Ref("fileTree", self.house.application, self.house.application)

    def _chosen(self, tree: TreeName, number: int) -> Entry | None:
        """One of the records, mostly a file; None if there is none."""
        entries = [self.models[tree][path] for path in sorted(self.models[tree])]
        entries = [each for each in entries if number % 8 == 0 or not each.is_directory]
        return entries[number % len(entries)] if entries else None

    def _is_free(self, model: dict[Path, Entry], path: Path, *, is_directory: bool) -> bool:
        above = [model.get(path[:length]) for length in range(1, len(path))]
        if any(entry is not None and (entry.deleting or not entry.is_directory) for entry in above):
            return False
        return path not in model and fits(path, is_directory=is_directory)

    async def _add_missing(self, tree: TreeName, path: Path) -> None:
        """Add the directories that were created above a path to the model."""
        model = self.models[tree]
        missing = [path[:length] for length in range(1, len(path)) if path[:length] not in model]
        if missing:
            shown = await self.shown(tree)
            for each in missing:
                model[each] = Entry(bytes.fromhex(shown[each]["id"]), is_directory=True)

    async def _try(self, message: Message, *, allowed: bool) -> Any:
        """Ask; it must be refused unless it is allowed."""
        if allowed:
            return (await self.house.system.ask(self.ref, message)).value
        with pytest.raises(Invalid):
            await self.house.system.ask(self.ref, message)
        return None

    async def _read(self, message: Message) -> Any:
        return await readers.read(self.house.system, message)


def fits(path: Path, *, is_directory: bool) -> bool:
    """Whether a path is within the bounds of the test."""
    directory = path if is_directory else path[:-1]
    return len(directory) <= DIRECTORIES_MAX and len("/" + "/".join(directory)) <= CHARS_MAX
