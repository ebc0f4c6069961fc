"""What a query costs: for each document, and for a page of the devices of a large application.

Run in the checkout it prints the figures, which no test asserts because machines differ:

    python -m tests.actors.query_speed --devices 100000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.queries import lists as devices
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import DevicePage
from trunkline.actors.fleet.devices.record.read_messages import ListDevices
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.limits.table import Limits
from trunkline.store.env import Store

APPLICATION: Final = b"a" * 12
MADE_MS: Final = 1_714_521_600_000
PER_BATCH: Final = 1000
ROUNDS: Final = 5
TIMES: Final = 20_000


class _Clerk(Actor):
    """Stages the devices."""

    kind = "clerk"
    noun = "clerk"

    def load(self) -> bool:
        return True


def document(number: int) -> dict[str, Any]:
    """A device as it is stored."""
    return {
        "name": f"device {number}",
        "deviceClass": "standalone",
        "creationDate": MADE_MS + number * 1000,
        "lastUpdated": MADE_MS + number * 1000,
        "tags": [{"key": "floor", "value": str(number % 10)}, {"key": "plant", "value": "north"}],
        "attributes": [
            {"name": "temp", "dataType": "number"},
            {"name": "on", "dataType": "boolean"},
        ],
        "attributeNext": 2,
        **(
            {} if number % 1000 else {"connection": {"connected": 1, "time": MADE_MS, "connectedAt": MADE_MS}}
        ),
    }


def fill(store: Store, count: int) -> None:
    """Store so many devices."""
    for start in range(0, count, PER_BATCH):
        clerk = _Clerk(None, Ref("clerk", ROOT, ROOT))  # type: ignore[arg-type]
        for number in range(start, min(start + PER_BATCH, count)):
            records.write(clerk, DEVICE, APPLICATION, number.to_bytes(12, "big"), None, document(number))
        assert clerk.batch is not None
        store.journal.submit(clerk.batch)
        store.journal.flush()


QUERIES: Final[dict[str, Any]] = {
    "everything": {},
    "equal": {"deviceClass": "gateway"},
    "equal in any case": {"name": {"$eq": "DEVICE 7", "$ci": True}},
    "one of ten": {"name": {"$in": [f"device {number}" for number in range(10)]}},
    "a range of times": {"creationDate": {"$gte": MADE_MS, "$lt": MADE_MS + 10_000}},
    "begins with": {"name": {"$startsWith": "device 77"}},
    "contains": {"name": {"$contains": "77"}},
    "a tag": {"tags": {"floor": "7"}},
    "an attribute": {"attributeName": "temp"},
    "two or": {"$or": [{"name": "device 7"}, {"name": {"$startsWith": "device 77"}}]},
    "joined": {"$and": [{"tags": {"floor": "7"}}, {"$nor": [{"name": "x"}, {"deviceClass": "gateway"}]}]},
    "by id": {"id": {"$in": [(7).to_bytes(12, "big").hex(), (8).to_bytes(12, "big").hex()]}},
    "after an id": {"id": {"$gt": (100).to_bytes(12, "big").hex()}},
    "connected": {"connectionStatus": "connected"},
}


def each_document() -> Iterator[tuple[str, float]]:
    """For each query the seconds of one evaluation, the best of some rounds."""
    doc = {**document(5), "id": "0" * 24, "attributeName": ["temp", "on"], "connectionStatus": "connected"}
    for name, query in QUERIES.items():
        names = {"matches": compile_query(query, DEVICE_FIELDS).matches, "doc": doc}
        took_s = timeit.repeat("matches(doc)", globals=names, number=TIMES, repeat=ROUNDS)
        yield name, min(took_s) / TIMES


def each_list(store: Store, **more: Any) -> Iterator[tuple[str, int, float]]:
    """For each query the devices found and the seconds of a page, the best of some rounds."""
    for name, query in QUERIES.items():
        page = msgspec.convert({"query": query, **more}, DevicePage)
        message = ListDevices(application=APPLICATION, query=page, reach=None)
        took_s = []
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            with store.snapshot() as snapshot:
                found = devices.list_devices(Reading(snapshot, Limits(), in_loop=False), message)
            took_s.append(time.perf_counter() - began_s)
        yield name, found["totalCount"], min(took_s)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--devices", type=int, default=100_000)
    count = parser.parse_args().devices
    for name, took_s in each_document():
        sys.stdout.write(f"{name:20} {took_s * 1e9:8.0f} ns a document\n")
    with (
        tempfile.TemporaryDirectory() as directory,
        Store.open(Path(directory), map_size_bytes=2**30) as store,
    ):
        fill(store, count)
        for name, total, took_s in each_list(store):
            sys.stdout.write(f"{name:20} {total:8} of {count} devices, a page in {took_s * 1e3:9.2f} ms\n")


if __name__ == "__main__":
    main()
