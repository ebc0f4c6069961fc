"""Files: sent by their form, fetched by their URL, and deleted with their contents.

Owns the ledger of the files.
"""

from __future__ import annotations

from typing import Final

from tests.soak.house import Part

FILES_MAX: Final = 10
FILE_BYTES_MAX: Final = 200_000


class Files(Part):
    """Private files of one application."""

    pause_s = 4.0

    async def prepare(self) -> None:
        self._kept: dict[str, bytes] = {}
        """The content of each file by its id."""
        self._number = 0

    async def step(self) -> None:
        if len(self._kept) >= FILES_MAX:
            id = next(iter(self._kept))
            await self.calls.call("file deleted", "DELETE", f"{self.path}/privateFiles/{id}")
            del self._kept[id]
        else:
            await self._upload()
        await self._fetch(self.random.choice(list(self._kept)))

    async def _upload(self) -> None:
        self._number += 1
        content = self.random.randbytes(self.random.randint(1, FILE_BYTES_MAX))
        body = {"name": f"f{self._number}", "type": "file", "fileSize": len(content), "parentDirectory": "/"}
        made = await self.calls.call("file created", "POST", f"{self.path}/privateFiles", body)
        form = made["upload"]
        async with self.calls.server.client("") as client:
            with self.calls.timed("file sent"):
                sent = await client.post(form["url"], data=form["fields"], files={"file": ("f", content)})
        assert sent.is_success, sent.text
        self.calls.acknowledged += 1
        self._kept[made["id"]] = content

    async def _fetch(self, id: str) -> None:
        file = await self.calls.call("file read", "GET", f"{self.path}/privateFiles/{id}")
        async with self.calls.server.client("") as client:
            with self.calls.timed("content fetched"):
                response = await client.get(file["url"])
        assert response.content == self._kept[id], (response.status_code, file)
        self.calls.read_back += 1

    async def look(self) -> int:
        page = await self.calls.call("files read", "GET", f"{self.path}/privateFiles", query={"perPage": 100})
        assert {each["id"] for each in page["items"]} == set(self._kept), page
        for id in self._kept:
            await self._fetch(id)
        return len(self._kept)
