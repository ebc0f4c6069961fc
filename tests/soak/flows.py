"""A workflow with a script that writes a row for each state of a device, and its button.

Owns the ledger of the states and presses. Each must have its one row.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import trio

from tests.patience import PATIENCE_S
from tests.soak.house import Part

ROWS_MAX: Final = 300
TAG: Final = {"key": "soak", "value": "flow"}
PAUSE_S: Final = 0.2


class Flows(Part):
    """One workflow."""

    async def prepare(self) -> None:
        self._device = await self.device("cause", tags=[TAG])
        columns = [{"name": "n", "dataType": "number", "constraint": "required"}]
        body: dict[str, Any] = {"name": "effects", "columns": columns}
        made = await self.calls.call("data table created", "POST", f"{self.path}/data-tables", body)
        self._rows_path = f"{self.path}/data-tables/{made['id']}/rows"
        config = {
            "dataTableIdTemplate": made["id"],
            "rowFields": [{"columnTemplate": "n", "valueTemplate": "{{data.twice}}"}],
        }
        script = {"script": "payload.data.twice = payload.data.n * 2"}
        outputs = [["script"]]
        body = {
            "name": "effects",
            "triggers": [
                {
                    "type": "deviceTag",
                    "key": f"{TAG['key']}/{TAG['value']}",
                    "config": {},
                    "outputIds": outputs,
                },
                {"type": "virtualButton", "key": "go", "meta": {"id": "go"}, "outputIds": outputs},
            ],
            "nodes": [
                {"id": "script", "type": "RawFunctionNode", "config": script, "outputIds": [["row"]]},
                {"id": "row", "type": "DataTableInsertRowNode", "config": config, "outputIds": [[]]},
            ],
        }
        made = await self.calls.call("workflow created", "POST", f"{self.path}/flows", body)
        self._flow = f"{self.path}/flows/{made['id']}"
        self._number = self._first = 0

    async def step(self) -> None:
        self._number += 1
        if self.random.random() < 0.8:
            body: dict[str, Any] = {"data": {"n": self._number}}
            await self.calls.call("state with a workflow", "POST", f"{self._device}/state", body)
        else:
            body = {"key": "go", "payload": {"n": self._number}}
            await self.calls.call("button pressed", "POST", f"{self._flow}/virtualButton", body)
        if self._number - self._first > ROWS_MAX:
            await self.look()
            delete = {"n": {"$lte": 2 * self._number}}
            await self.calls.call("rows deleted", "POST", f"{self._rows_path}/delete", delete)
            queued = await self.calls.call("removal of states", "DELETE", f"{self._device}/data")
            await self.calls.job(self.path, queued)
            self._first = self._number

    async def look(self) -> int:
        expected = Counter(2 * number for number in range(self._first + 1, self._number + 1))
        with trio.fail_after(PATIENCE_S), self.calls.timed("effects until all are there"):
            while (found := await self._rows()) != expected:
                assert not found - expected, found - expected
                await trio.sleep(PAUSE_S)
        await self.calls.call("runs read", "GET", f"{self._flow}/runs")
        return len(found)

    async def _rows(self) -> Counter[int]:
        page = await self.calls.call("rows read", "GET", self._rows_path, query={"limit": 1000})
        return Counter(row["n"] for row in page["items"])
