"""The first page of a list that is sorted by an index reads the same number of entries, however long the list is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import running_server
from tests.e2e.lists import FILLED
from tests.e2e.long_lists import FEW, KINDS, indexed, lengthen
from tests.e2e.test_lists import LISTS, choices
from trunkline.store.snapshot import Snapshot

MANY = 10 * FEW
PAGE = 20


class Entries:
    """Counts the entries that all snapshots read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = 0
        get, scan, keys = Snapshot.get, Snapshot.range, Snapshot._bare_keys

        def counted_get(snapshot: Snapshot, *where: Any) -> bytes | None:
            self.read += 1
            return get(snapshot, *where)

        def counted(scan: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
            def scanned(snapshot: Snapshot, *where: Any, **how: Any) -> Iterator[Any]:
                for entry in scan(snapshot, *where, **how):
                    self.read += 1
                    yield entry

            return scanned

        monkeypatch.setattr(Snapshot, "get", counted_get)
        monkeypatch.setattr(Snapshot, "range", counted(scan))
        monkeypatch.setattr(Snapshot, "_bare_keys", counted(keys))


def test_what_is_sorted_without_an_index_is_known() -> None:
    """These lists look at all records of the parent, beside the event loop where there are many."""
    scanned = {
        f"{operation} {field}"
        for operation, kind in KINDS.items()
        for field in {*choices(LISTS[operation], "sortField")} - {*indexed(LISTS[operation], kind)}
    }
    assert scanned == {
        "applicationApiTokens.get expirationDate",
        "applicationApiTokens.get status",
        "applicationKeys.get key",
        "applicationKeys.get status",
        "applications.get id",
        "applications.get ownerId",
        "dashboards.get applicationId",
        "dashboards.get ownerId",
        "devices.get deletedAt",
        "experienceEndpoints.get requestCount",
        "flows.get id",
        "userApiTokens.get expirationDate",
        "userApiTokens.get status",
    }


@pytest.mark.slow
@pytest.mark.parametrize("operation", sorted(KINDS))
async def test_the_first_page_reads_as_much_of_a_long_list_as_of_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    entries = Entries(monkeypatch)
    kind = KINDS[operation]
    async with running_server(tmp_path / "data", limits={"event_create": "off"}) as server:
        path = await FILLED[operation](server, await server.application())
        fields = indexed(LISTS[operation], kind)
        pages = [(field, direction) for field in fields for direction in ("asc", "desc")]

        async def count() -> dict[tuple[str, str], int]:
            found = {}
            async with server.client() as client:
                await client.get(path)  # the token is known from here on
                for field, direction in pages:
                    before = entries.read
                    query: dict[str, str | int] = {
                        "sortField": field,
                        "sortDirection": direction,
                        "perPage": PAGE,
                    }
                    response = await client.get(path, params=query)
                    assert len(response.json()["items"]) == PAGE, response.text
                    found[field, direction] = entries.read - before
            return found

        await lengthen(server, kind, path, FEW)
        few = await count()
        await lengthen(server, kind, path, MANY)
        many = await count()
        for page, read in few.items():
            # Some records have entries of their own, and not every page has the same number of them.
            assert read >= PAGE
            assert abs(many[page] - read) <= PAGE, page
