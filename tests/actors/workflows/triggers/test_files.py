"""Changes of files trigger workflows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import BY, create_flow, kept_runs, runs_end, trigger
from tests.actors.house import House, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.data.files.actor import FileTree
from trunkline.actors.data.files.kind import TreeName
from trunkline.actors.data.files.messages import (
    CreateFile,
    DeleteFile,
    FileMove,
    FilePost,
    MoveFile,
    ReserveContent,
    SetContent,
)
from trunkline.store.object_store import Stored

SHOW = [node("d", "DebugNode")]


async def watch(house: House, key: str, **config: Any) -> Ref:
    return await create_flow(house, [trigger("appFile", ["d"], key, config=config)], SHOW)


async def told(house: House, flow: Ref) -> list[tuple[str, str]]:
    """The actions and paths that the runs of a workflow were told."""
    data = [payload["data"] for payload in await payloads(house, flow)]
    return [(each["action"], each["file"]["path"]) for each in data]


async def payloads(house: House, flow: Ref) -> list[Any]:
    await runs_end(house)
    return [run.debug[0][3] for run in kept_runs(house, flow)]


class Files:
    """Changes files as the API does."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._ref = Ref(FileTree.kind, house.application, house.application)

    async def ask(self, message: Any) -> Any:
        answer = (await self._house.system.ask(self._ref, message)).value
        await runs_end(self._house)
        self._house.clock.pass_s(1)
        return answer

    async def create(self, path: str, tree: TreeName = "file") -> bytes:
        """A file without content."""
        body = msgspec.convert({"name": path, "type": "file"}, FilePost)
        return (await self.ask(CreateFile(tree=tree, body=body, by=BY))).id  # type: ignore[no-any-return]

    async def fill(self, id: bytes, size: int, tree: TreeName = "file") -> None:
        """Give a file a content."""
        content = await self.ask(ReserveContent(tree=tree, file=id))
        stored = Stored(size, f"{size:064x}")
        origin = Origin("fe" * 12, "flow", 1)
        await self.ask(SetContent(tree=tree, file=id, content=content, stored=stored, origin=origin))

    async def move(self, id: bytes, name: str) -> None:
        await self.ask(MoveFile(tree="file", file=id, query=FileMove(name=name), by=BY))


async def test_a_file_is_told_when_it_is_complete(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        files = Files(house)
        flow = await watch(house, "/logs/a.txt")
        id = await files.create("logs/a.txt")
        assert await told(house, flow) == []
        await files.fill(id, 3)
        await files.fill(id, 4)
        await files.ask(DeleteFile(tree="file", file=id))
        await files.ask(DeleteFile(tree="file", file=await files.create("logs/a.txt")))
        first, second, third = await payloads(house, flow)
        assert [each["data"]["action"] for each in (first, second, third)] == ["create", "update", "delete"]
        file = first["data"]["file"]
        assert (file["id"], file["name"], file["fileSize"]) == (id.hex(), "a.txt", 3)
        assert (file["path"], file["parentDirectory"], file["isPrivate"]) == ("/logs/a.txt", "/logs/", False)
        assert (file["status"], file["applicationId"]) == ("completed", house.application.hex())
        assert second["data"]["file"]["fileSize"] == 4
        assert (first["relayId"], first["relayType"]) == ("fe" * 12, "flow")


async def test_paths_trees_and_actions_select_changes(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        files = Files(house)
        every = await watch(house, "/", private=False, public=True)
        below = await watch(house, "/logs/")
        private = await watch(house, "/", private=True)
        removed = await watch(house, "/logs/", delete=True)
        exact = await watch(house, "/logs")
        for path, tree in (("logs/a.txt", "file"), ("log.txt", "file"), ("logs/deep/b", "privateFile")):
            name: Any = tree
            await files.fill(await files.create(path, name), 1, name)
        assert await told(house, every) == [("create", "/logs/a.txt"), ("create", "/log.txt")]
        assert await told(house, below) == [("create", "/logs/a.txt"), ("create", "/logs/deep/b")]
        assert await told(house, private) == [("create", "/logs/deep/b")]
        assert await told(house, removed) == []
        assert await told(house, exact) == []


async def test_a_moved_file_is_deleted_and_created(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        files = Files(house)
        flow = await watch(house, "/", create=True, delete=True)
        id = await files.create("logs/a.txt")
        await files.move(id, "old/b.txt")
        await files.fill(id, 1)
        await files.move(id, "c.txt")
        await files.move(id, "c.txt")
        assert await told(house, flow) == [
            ("create", "/logs/old/b.txt"),
            ("delete", "/logs/old/b.txt"),
            ("create", "/logs/old/c.txt"),
        ]
