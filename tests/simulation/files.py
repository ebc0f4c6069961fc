"""Files, private and public: created, uploaded in one call or by a form, replaced, deleted alone or with a directory.

A file is pending until a content was acknowledged. Then what is downloaded is that content, whole, until another one is
acknowledged or the file is deleted. An upload that was cut off changes nothing. Contents that nobody needs go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

from tests.simulation.life import Life
from tests.simulation.model import Book, Broken, Change
from tests.simulation.part import Part
from tests.simulation.site import Site
from tests.simulation.world import World

TREES: Final = ("privateFile", "file")
FILES_MAX: Final = 8
SIZES: Final = (0, 1, 40, 3000, 3000, 300_000)
PENDING: Final = "pending"
SWEPT_S: Final = 200.0
_BOUNDARY: Final = "b" * 20


class Files:
    """By name: what each file contains, in short, and its path. `lost` uploads had no answer, or a bad one."""

    def __init__(self) -> None:
        self.book = Book("files")
        self.paths: dict[str, str] = {}
        self.trees: dict[str, str] = {}
        self.directories: dict[str, str] = {}
        """Of files in a directory, its name."""
        self.open_directory = "d0"
        self.lost = 0
        self.life: Life | None = None
        self.since_s = 0.0
        self.changes = -1

    def one(self, chance: Random) -> str | None:
        """A file that is there for sure, which nobody changes."""
        names = [name for name in self.book.sure() if name in self.paths]
        return chance.choice(names) if names else None


async def create(world: World, chance: Random) -> None:
    files, tree = world.of(Files), chance.choice(TREES)
    if len(files.book.sure()) >= FILES_MAX:
        return
    name = f"f{world.unique()}"
    body = {"name": name, "type": "file", "contentType": "text/plain"}
    if chance.random() < 0.4:
        files.directories[name] = files.open_directory
        body["parentDirectory"] = files.open_directory
    files.trees[name] = tree
    change = Change([(files.book, name, PENDING)])
    answer = await world.change(change, "POST", f"{world.of(Site).path}/{tree}s", body, chance=chance)
    if answer is not None and answer.status == 201:
        files.paths[name] = _path(world, tree, answer.body[f"{tree}Id"])


async def upload(world: World, chance: Random) -> None:
    """In one call, or by a form that is asked for."""
    files = world.of(Files)
    name = files.one(chance)
    if name is None:
        return
    content, digest = _content(world, chance)
    path, tree = files.paths[name], files.trees[name]
    if chance.random() < 0.5:
        url, fields, part = f"{path}/upload", {}, tree
    else:
        version = files.book.thing(name).version
        answer = await world.call("PATCH", path, {"fileSize": len(content)}, chance=chance)
        if answer is None or answer.status >= 300 or not files.book.thing(name).is_sure:
            return  # or somebody else changes it meanwhile
        if answer.body["status"] == "deleting":
            return  # with its directory
        if "upload" not in answer.body:
            if files.book.thing(name).version == version:
                raise Broken(f"{name}: no form came for its new content")
            return  # another content came meanwhile
        form = answer.body["upload"]
        url, fields, part = urlsplit(form["url"]).path, form["fields"], "file"
    body, headers = _form(fields, part, content)
    change = Change([(files.book, name, digest)])
    files.lost += 1  # until it is acknowledged
    answer = await world.change(
        change, "POST", url, body, headers=headers, chance=chance, needs=(world.home,)
    )
    files.lost -= answer is not None and answer.status < 300
    if answer is not None and answer.status < 300:
        world.reached["a content was uploaded"] += 1


async def delete(world: World, chance: Random) -> None:
    files = world.of(Files)
    name = files.one(chance)
    if name is not None:
        await world.change(Change([(files.book, name, None)]), "DELETE", files.paths[name], chance=chance)


async def delete_directory(world: World, chance: Random) -> None:
    """Delete a directory with all that is in it, if nobody is about to change that."""
    files, tree = world.of(Files), chance.choice(TREES)
    directory = files.open_directory
    inside = [name for name, at in files.directories.items() if at == directory]
    if not inside or any(files.book.thing(name).coming for name in inside) or chance.random() < 0.7:
        return
    files.open_directory = f"d{world.unique()}"
    found = await world.call("GET", f"{world.of(Site).path}/{tree}s?perPage=1000")
    if found is None:
        return
    for each in found.body["items"]:
        if each["type"] == "directory" and each["name"] == directory and each["status"] == "completed":
            names = [name for name in inside if files.trees[name] == tree]
            if any(files.book.thing(name).coming for name in names):
                return
            change = Change([(files.book, name, None) for name in names])
            path = _path(world, tree, each[f"{tree}Id"])
            answer = await world.change(change, "DELETE", path, chance=chance)
            world.reached["a directory was deleted"] += answer is not None and answer.status < 300


async def download(world: World, chance: Random) -> None:
    files = world.of(Files)
    name = files.one(chance)
    if name is None:
        return
    with files.book.watched() as window:
        answer = await world.call("GET", files.paths[name], chance=chance)
        if answer is None or answer.status >= 500:
            return
        found = None if answer.status == 404 else await _found(world, answer.body)
    if found != "":
        window.check({} if found is None else {name: found}, [name])


async def _found(world: World, shown: Mapping[str, Any]) -> str | None:
    """What a file contains, in short; None if it is about to be deleted, nothing if it was changed meanwhile."""
    if shown["status"] == "deleting":
        return None
    if shown["status"] == PENDING:
        return PENDING
    url = urlsplit(shown["url"])
    path = url.path + (f"?{url.query}" if url.query else "")
    answer = await world.call("GET", path, token="", needs=(world.home,))
    if answer is None or answer.status != 200:
        return "" if answer is None or answer.status in (404, 410) else str(answer.status)
    if answer.stream is None:
        return _short(answer.raw)
    pieces = bytearray()
    try:
        while (piece := await answer.stream.next()) is not None:
            pieces += piece
    finally:
        answer.stream.close()
    if len(pieces) != int(answer.headers["content-length"]):
        return f"{len(pieces)} bytes of {answer.headers['content-length']}"
    return _short(bytes(pieces))


def _path(world: World, tree: str, id: str) -> str:
    return f"{world.of(Site).path}/{'privateFiles' if tree == 'privateFile' else 'file'}/{id}"


def _content(world: World, chance: Random) -> tuple[bytes, str]:
    """Bytes that no other file has, but for very short ones."""
    size = chance.choice(SIZES)
    content = (f"{world.unique()} " * (size // 2 + 1)).encode()[:size]
    return content, _short(content)


def _short(content: bytes) -> str:
    return f"{len(content)} bytes {hashlib.sha256(content).hexdigest()[:8]}"


def _form(fields: Mapping[str, str], name: str, content: bytes) -> tuple[bytes, dict[str, str]]:
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        for field, value in fields.items()
    ]
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n'
    head += "Content-Type: text/plain\r\n\r\n"
    body = "".join([*parts, head]).encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()
    return body, {"content-type": f"multipart/form-data; boundary={_BOUNDARY}"}


async def look(world: World) -> None:
    """List both trees, and download everything."""
    files = world.of(Files)
    for tree in TREES:
        with files.book.watched() as window:
            answer = await world.call("GET", f"{world.of(Site).path}/{tree}s?perPage=1000")
            assert answer is not None
            shown = [each for each in answer.body["items"] if each["type"] == "file"]
            found = {each["name"]: await _found(world, each) for each in shown}
        files.paths |= {each["name"]: _path(world, tree, each[f"{tree}Id"]) for each in shown}
        known = [name for name, of in files.trees.items() if of == tree]
        window.check({name: state for name, state in found.items() if state is not None}, known)
    _look_at_disk(world, files)


def _look_at_disk(world: World, files: Files) -> None:
    """Some minutes after the last change there are only contents that files have, or lost uploads."""
    changes = sum(thing.version for thing in files.book.things.values())
    if files.life is not world.life or files.changes != changes:
        files.life, files.changes, files.since_s = world.life, changes, world.virtual.now_s
    if world.virtual.now_s - files.since_s < SWEPT_S:
        return
    folder = world.life.disk.whole / "contents" / world.of(Site).id
    there = len(list(folder.iterdir())) if folder.is_dir() else 0
    complete = [name for name, thing in files.book.things.items() if thing.states - {None, PENDING}]
    if there > len(complete) + files.lost:
        raise Broken(f"{there} contents are there for {len(complete)} files and {files.lost} lost uploads")


async def prepare(world: World) -> None:
    await create(world, Random(1))


PART: Final = Part(
    prepare, {create: 3, upload: 6, delete: 1, delete_directory: 1, download: 4}, look, divided=True
)
