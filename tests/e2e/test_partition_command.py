"""`trunkline partition` divides the applications of a data directory among several stores, and brings them together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import running_server
from tests.e2e.partitioned import applications, dump, furnish, results, union
from tests.e2e.server_process import one_sentence, trunkline
from trunkline.store.directory import data_file
from trunkline.store.leftovers import NEW_STORE
from trunkline.store.partitions import partition_count, partition_directory
from trunkline.store.store_draft import StoreDraft


async def test_applications_are_divided_and_brought_together_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running_server(data, partitions=1) as server:
        wholes = [await furnish(server, name) for name in ("a", "b", "c", "d")]
        farm = await server.organization()
        await server.call("POST", "/dashboards", {"name": "d", "orgId": farm.removeprefix("/orgs/")})
        await server.call("POST", "/me/tokens", {"name": "mine", "scope": ["all.User"]})
        devices = [f"{whole.path}/devices/{whole.ids['pump']}" for whole in wholes]
        before = [await server.call("GET", f"{device}/state") for device in devices]
        refused = one_sentence(await trunkline("partition", "--count", "3", "--data", str(data)))
        assert "is in use by process" in refused
    made = results(data, 1)
    assert len(made) == 4
    done = await trunkline("partition", "--count", "3", "--data", str(data))
    assert done.returncode == 0, done
    assert partition_count(data) == 3
    original = dump(data / "backups" / "partitions-1")
    stores = [dump(data, number) for number in range(3)]
    assert union(stores) == original
    assert results(data, 3) == made
    checked = await trunkline("check", "--data", str(data))
    assert checked.returncode == 0, checked
    assert checked.stdout.count("database") == 3, "each partition has a table"
    shares = [applications(data, number) for number in range(3)]
    assert shares[1], shares
    assert shares[2], shares
    done = await trunkline("partition", "--count", "1", "--data", str(data))
    assert done.returncode == 0, done
    assert not partition_directory(data, 1).parent.exists()
    assert dump(data) == original
    assert results(data, 1) == made
    async with running_server(data, partitions=1) as server:
        assert [await server.call("GET", f"{device}/state") for device in devices] == before
    checked = await trunkline("check", "--data", str(data))
    assert checked.returncode == 0, checked


async def test_a_disk_of_a_partition_that_is_left_over_keeps_what_is_its_own(tmp_path: Path) -> None:
    """The user of the server may not even read it, and a switch that cannot be completed would be the end of all."""
    data = tmp_path / "data"
    disk = partition_directory(data, 1)
    async with running_server(data, partitions=1) as server:
        await furnish(server, "a")
    (disk / "lost+found").mkdir(parents=True)
    for count in (2, 1, 2):
        done = await trunkline("partition", "--count", str(count), "--data", str(data))
        assert done.returncode == 0, done
        found = {each.name for each in disk.iterdir()}
        assert found == {"lost+found"} if count == 1 else found > {"lost+found", "store"}
    checked = await trunkline("check", "--data", str(data))
    assert checked.returncode == 0, checked


@pytest.mark.parametrize("by", ["a start", "the command"])
async def test_what_a_killed_division_has_left_is_removed(tmp_path: Path, by: str) -> None:
    data = tmp_path / "data"
    async with running_server(data, partitions=1):
        pass
    draft = data / "backups" / ".partitions-1.0123abcd"
    left = [partition_directory(data, number) / NEW_STORE for number in range(2)]
    for place in left:
        StoreDraft(place, size_bytes=1 << 20, batch_bytes=1 << 20).close()
    draft.mkdir(parents=True)
    if by == "a start":
        async with running_server(data, partitions=1):
            pass
    else:
        done = await trunkline("partition", "--count", "1", "--data", str(data))
        assert done.stdout == f"{data} has one partition.\n", done
    assert not [place for place in (*left, draft) if place.exists()]


async def test_a_backup_has_all_partitions(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    async with running_server(data, partitions=1) as server:
        for name in ("a", "b"):
            await furnish(server, name)
    assert (await trunkline("partition", "--count", "2", "--data", str(data))).returncode == 0
    done = await trunkline("backup", str(copy), "--data", str(data))
    assert done.returncode == 0, done
    checked = await trunkline("check", "--data", str(copy))
    assert checked.returncode == 0, checked
    assert [dump(copy, number) for number in range(2)] == [dump(data, number) for number in range(2)]
    assert applications(copy, 1)
    with data_file(partition_directory(copy, 1)).open("r+b") as file:
        file.write(b"x")
    checked = await trunkline("check", "--data", str(copy))
    assert "is another one" in checked.stdout or "is damaged" in checked.stdout, checked
