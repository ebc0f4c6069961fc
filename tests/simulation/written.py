"""Tables in which workflows write what they have done: a row of texts for each run.

Owns the table, and how many rows may be missing: a run whose row is refused because a commit has failed ends with this
error, so each failed commit may have cost one row of each run that was at work.
"""

from __future__ import annotations

from typing import Any, Final

import trio

from tests.simulation.model import Broken
from tests.simulation.site import Site
from tests.simulation.world import World

ROWS_MAX: Final = 5000
WAIT_S: Final = 600.0
"""After so long runs must have ended."""
_LOOKS: Final = 100

Row = tuple[str, ...]


class Written:
    """A table with columns of texts, and the rows that were seen at the last look."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.id = ""
        self.path = ""
        self._failures = 0

    async def create(self, world: World, name: str) -> None:
        columns = [{"name": each, "dataType": "string", "constraint": "optional"} for each in self.columns]
        site = world.of(Site)
        answer = await world.call("POST", f"{site.path}/data-tables", {"name": name, "columns": columns})
        assert answer is not None
        self.id = answer.body["dataTableId"]
        self.path = f"{site.path}/data-tables/{self.id}/rows"

    def node(self, id: str, *values: str, to: str | None = None) -> dict[str, Any]:
        """A node that writes a row of these templates."""
        fields = [
            {"columnTemplate": column, "valueTemplate": value}
            for column, value in zip(self.columns, values, strict=True)
        ]
        config = {"dataTableIdTemplate": self.id, "rowFields": fields}
        return {
            "id": id,
            "type": "DataTableInsertRowNode",
            "config": config,
            "outputIds": [[] if to is None else [to]],
        }

    async def rows(self, world: World) -> list[Row]:
        answer = await world.call("GET", f"{self.path}?limit={ROWS_MAX}")
        assert answer is not None
        if answer.body["totalCount"] > ROWS_MAX:
            raise AssertionError("the run is longer than this part reads")
        return [tuple(row[column] or "" for column in self.columns) for row in answer.body["items"]]

    def failures(self, world: World) -> int:
        """The commits that have failed since this was asked for the last time."""
        before, self._failures = self._failures, world.failed_commits
        return self._failures - before


async def create_flow(world: World, name: str, triggers: list[Any], nodes: list[Any]) -> str:
    """A workflow that is enabled, by its id."""
    body = {"name": name, "triggers": triggers, "nodes": nodes}
    answer = await world.call("POST", f"{world.of(Site).path}/flows", body)
    assert answer is not None
    assert answer.status == 201, answer
    id: str = answer.body["flowId"]
    return id


async def until(world: World, missing: Any, what: str) -> None:
    """Wait until `missing`, which looks at the rows, finds nothing any more. It returns what is missing."""
    for attempt in range(_LOOKS):
        left = await missing()
        if not left:
            return
        world.reached["runs were waited for"] += attempt == 0
        await trio.sleep(WAIT_S / _LOOKS)
    raise Broken(f"{what}: {left} is missing after {WAIT_S:.0f} seconds")
