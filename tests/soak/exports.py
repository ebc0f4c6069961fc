"""Exports of devices, of rows and of a whole application: queued, written and fetched.

Owns one export at a time. What the file of the rows holds is compared with the rows.
"""

from __future__ import annotations

import csv
from typing import Any

from tests.soak.house import Part


class Exports(Part):
    """Exports one thing after the other."""

    pause_s = 8.0

    async def prepare(self) -> None:
        columns = [{"name": "n", "dataType": "number", "constraint": "required"}]
        body = {"name": "exported", "columns": columns}
        made = await self.calls.call("data table created", "POST", f"{self.path}/data-tables", body)
        self._table = f"{self.path}/data-tables/{made['id']}"
        self._rows = list(range(200))
        rows = [{"n": number} for number in self._rows]
        await self.calls.call("rows inserted", "POST", f"{self._table}/rows", rows)

    async def step(self) -> None:
        step = self.random.choice((self._export_rows, self._export_devices, self._export_application))
        await step()

    async def _export_rows(self) -> None:
        content = await self._exported(f"{self._table}/rows/export", {})
        lines = list(csv.DictReader(content.decode().splitlines()))
        assert [int(line["n"]) for line in lines] == self._rows
        self.calls.read_back += len(lines)

    async def _export_devices(self) -> None:
        await self._exported(f"{self.path}/devices/export", None)

    async def _export_application(self) -> None:
        answer = await self.calls.call(
            "application exported", "POST", f"{self.path}/export", {"forceJob": self.random.random() < 0.5}
        )
        url = answer.get("url") or (await self.calls.job(self.path, answer))["output"]["file"]["url"]
        await self._fetched(url)

    async def look(self) -> int:
        await self._export_rows()
        return 0

    async def _exported(self, path: str, body: Any) -> bytes:
        queued = await self.calls.call("export queued", "POST", path, body)
        log = await self.calls.job(self.path, queued)
        return await self._fetched(log["output"]["file"]["url"])

    async def _fetched(self, url: str) -> bytes:
        async with self.calls.server.client("") as client:
            with self.calls.timed("export fetched"):
                response = await client.get(url)
        assert response.is_success, response.text
        return response.content
