"""What the first page of a list costs when there are many records.

Run in the checkout it prints, for each list and each indexed sort field, the time of the first page of a list of 100
records, that of a long list, and their ratio:

    python -m tests.e2e.long_lists --records 100000 [--list webhooks.get]

Records are copies of those that `lists.py` creates over HTTP, written to the store beside their actors.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from tests.e2e.conftest import Server, running_server
from tests.e2e.lists import FILLED
from tests.e2e.test_lists import LISTS, choices
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.http.calls.route import Route

FEW: Final = 100
PER_BATCH: Final = 1000
ROUNDS: Final = 15
SPACED_MS: Final = 1000

KINDS: Final[Mapping[str, Kind]] = {
    "applications.get": APPLICATION,
    "devices.get": DEVICE,
    "devices.getCompositeState": DEVICE,
    "events.get": EVENT,
    "flows.get": FLOW,
    "privateFiles.get": PRIVATE_FILE,
    "files.get": FILE,
} | {
    operation: route.resource.kind
    for operation, route in LISTS.items()
    if route.resource is not None and operation != "experienceVersions.get"
}
"""What each list shows. The others are of at most a thousand records (jobs, versions, attributes, templates) or show
what another list shows."""


NARROWED: Final = {"applications.get", "flows.get"}
"""Lists that always show the records of one facet: of one owner, of one class of workflows."""


_FIXED: Final = ("integrationType", "level", "method", "resourceType", "state", "status", "type")
"""Fields that take certain words only."""


_ID: Final = re.compile("[0-9a-f]{24}")


class _Clerk(Actor):
    """Stages the copies."""

    kind = "clerk"
    noun = "clerk"

    def load(self) -> bool:
        return True


def indexed(route: Route, kind: Kind) -> list[str]:
    """The sort fields of a list for which its kind has an index. Those of a facet are not sorted by id."""
    fields = kind.facet_indexes if route.operation in NARROWED else (*kind.indexes, "id")
    return [field for field in choices(route, "sortField") if field in fields]


async def lengthen(server: Server, kind: Kind, path: str, count: int) -> None:
    """Copy the records of a list until there are `count`."""
    system = server.system
    user = (await server.call("GET", "/me"))["id"]
    parents = [ROOT, *(bytes.fromhex(part) for part in [user, *path.split("/")] if len(part) == 24)]
    with system.store.snapshot() as snapshot:
        found = {parent: list(records.scan(snapshot, kind, parent)) for parent in parents}
    parent, originals = next((parent, docs) for parent, docs in found.items() if docs)
    made, now_ms = len(originals), system.clock.wall_ms()
    while made < count:
        clerk = _Clerk(system, Ref("clerk", ROOT, ROOT))
        for number in range(made, min(made + PER_BATCH, count)):
            _, original = originals[number % len(originals)]
            doc = copy_of(original, kind, number, now_ms)
            records.write(clerk, kind, parent, system.ids.new(now_ms), None, doc)
        assert clerk.batch is not None
        await system.journal.submit(clerk.batch).wait()
        made += PER_BATCH


def copy_of(original: Doc, kind: Kind, number: int, now_ms: int) -> Doc:
    """A record with other names, times and unique texts than the original."""
    doc: Doc = {name: value for name, value in original.items() if name != "id"}
    for field in {*kind.indexes, *kind.facet_indexes, *kind.unique} - {kind.facet, *_FIXED}:
        _change(doc, field, number, now_ms)
    return doc


def _change(doc: Any, field: str, number: int, now_ms: int) -> None:
    outer, _, inner = field.partition(".")
    if inner:
        doc[outer] = {**doc[outer]}
        _change(doc[outer], inner, number, now_ms)
    elif isinstance(doc.get(field), str) and _ID.fullmatch(doc[field]) is None:
        doc[field] = f"{doc[field]}-{number}"
    elif field in ("creationDate", "lastUpdated"):
        doc[field] = now_ms + number * SPACED_MS


async def first_page_s(server: Server, path: str, **query: Any) -> float:
    """The shortest time of the first page, in seconds: other processes only make it longer."""
    took_s = []
    async with server.client() as client:
        client.event_hooks = {}
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            response = await client.get(path, params=query)
            took_s.append(time.perf_counter() - began_s)
            assert len(response.json()["items"]) == FEW, response.text
    return min(took_s)


async def measure(operation: str, count: int) -> None:
    """Print a line for each indexed sort field of a list."""
    route, kind = LISTS[operation], KINDS[operation]
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(Path(folder) / "data", limits={"event_create": "off"}) as server:
            path = await FILLED[operation](server, await server.application())
            await lengthen(server, kind, path, FEW)
            fields = indexed(route, kind)
            few = {field: await first_page_s(server, path, sortField=field) for field in fields}
            await lengthen(server, kind, path, count)
            for field in fields:
                many_s = await first_page_s(server, path, sortField=field)
                sys.stdout.write(
                    f"{operation:40}{field:28}{few[field] * 1000:8.2f} ms {many_s * 1000:8.2f} ms"
                    f" {many_s / few[field]:6.2f}\n"
                )
                sys.stdout.flush()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--list", choices=sorted(KINDS), action="append")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for operation in chosen.list or sorted(KINDS):
        trio.run(measure, operation, chosen.records)


if __name__ == "__main__":
    _main()
