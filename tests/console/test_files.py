"""Files in the console: sent, shown, moved, copied to the public ones, replaced and deleted."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import httpx
import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M/wHwAEBgIApD5fRAAAAABJRU5ErkJggg=="
)


async def content(server: Server, application: str, tree: str, name: str) -> bytes:
    """The content of a file, by the link that its record has."""
    (found,) = (await server.call("GET", f"{application}/{tree}?filterField=name&filter={name}"))["items"]
    async with httpx.AsyncClient() as client:
        return (await client.get(found["url"])).content


async def test_files_are_sent_and_shown(server: Server, console: ConsolePage, tmp_path: Path) -> None:
    application = await server.application()
    text, picture, large = tmp_path / "notes.txt", tmp_path / "dot.png", tmp_path / "large.bin"
    text.write_text("The pump <b>is</b> loud.")
    picture.write_bytes(PICTURE)
    large.write_bytes(bytes(range(256)) * 50_000)
    await console.go(f"#{application}/files")
    await console.sees("There are no private files yet")
    await console.at("button", "Create a directory").click()
    await console.at("dialog").at("textbox").fill("pumps/north")
    await console.at("dialog").at("button", "Create").click()
    await console.at("link", "pumps/").click()
    await console.at("link", "north/").click()
    await console.sees("This directory is empty")
    await console.at(css="input[type=file]").upload(text, picture, large)
    await console.until("document.querySelectorAll('.uploads .badge.good').length === 3")
    await console.sees("3 entries")
    assert await content(server, application, "privateFiles", "large.bin") == large.read_bytes()
    await console.at("link", "notes.txt").click()
    await console.sees("The pump <b>is</b> loud.")
    await console.sees("/pumps/north/notes.txt")
    await console.at("link", "north").click()
    await console.at("link", "dot.png").click()
    await console.until("document.querySelector('img[alt=\"dot.png\"]')?.naturalWidth === 1")
    async with console.download() as file:
        await console.at("button", "Download").click()
        assert (await file()).read_bytes() == PICTURE


async def test_a_move_changes_what_the_reader_changed(server: Server, console: ConsolePage) -> None:
    """Somebody else may have moved the file since its page was loaded."""
    application = await server.application()
    body = {"name": "x.txt", "parentDirectory": "/a", "type": "file", "fileSize": 1}
    file = (await server.call("POST", f"{application}/privateFiles", body))["id"]
    await console.go(f"#{application}/files?file={file}")
    await console.sees("/a/x.txt")
    place = f"{application}/privateFiles/{file}"
    await server.call("POST", f"{place}/move", params={"parentDirectory": "/b"})
    await console.at("button", "Rename or move").click()
    form = console.at("dialog")
    await form.at("textbox", "Name").fill("")
    await form.at("button", "Save").click()
    await form.at("alert").says("name: is empty; give one.")
    await form.at("textbox", "Name").fill("y.txt")
    await form.at("button", "Save").click()
    await console.sees("/b/y.txt")
    await console.at("button", "Rename or move").click()
    await form.at("textbox", "Directory").fill("")
    await form.at("button", "Save").click()
    await console.sees("Path /y.txt")


async def test_files_are_moved_published_replaced_and_deleted(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    application = await server.application()
    text = tmp_path / "notes.txt"
    text.write_text("one")
    await console.go(f"#{application}/files")
    await console.at(css="input[type=file]").upload(text)
    await console.at("link", "notes.txt").click()
    await console.at("button", "Rename or move").click()
    await console.at("dialog").at("textbox", "Name").fill("read me.txt")
    await console.at("dialog").at("textbox", "Directory").fill("/docs")
    await console.at("dialog").at("button", "Save").click()
    await console.sees("/docs/read me.txt")
    await console.at("button", "Copy to public files").click()
    await console.at("dialog").at("button", "Copy").click()
    await console.sees("The copy is sent to the public files.")
    await console.at("button", "Link").click()
    await console.at("dialog").at("textbox").fill("2")
    await console.at("dialog").at("button", "Make a link").click()
    link = await console.at("dialog").at(css="pre").text()
    async with httpx.AsyncClient() as client:
        assert (await client.get(link)).text == "one"
    await console.at("dialog").at("button", "Close").click()

    await console.at("link", "docs").click()
    await console.sees("to store them in /docs")  # the page of the file has a field for uploads, too
    text = tmp_path / "read me.txt"
    text.write_text("two, and longer")
    await console.at(css="input[type=file]").upload(text)
    await console.at("button", "Replace its content").click()
    await console.at("cell", "15 B").shown()
    assert await content(server, application, "privateFiles", "read me.txt") == b"two, and longer"
    await console.at("link", "read me.txt").click()
    await console.sees("two, and longer")
    text.write_text("three")
    await console.at(css="input[type=file]").upload(text)
    await console.at("dialog", "Replace the content?").at("button", "Replace").click()
    await console.at(css="pre.preview-text").says("three")

    await console.at("link", "Private files").click()
    await console.at("button", re.compile("^Delete docs")).click()
    await console.at("dialog").at("textbox").fill("docs")
    await console.at("dialog").at("button", "Delete").click()
    await console.sees("There are no private files yet")
    await console.at("link", "Public").click()
    await console.at("link", "docs/").click()
    await console.at("link", "read me.txt").shown()
    async with httpx.AsyncClient() as client:
        public = f"{server.url}/files/{application.rpartition('/')[2]}/docs/read%20me.txt"
        assert (await client.get(public)).text == "one"
