"""Acknowledged means stored: a process killed at any moment loses nothing that it acknowledged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import trio

from tests.simulation.loose_files import LooseFiles
from trunkline.store import codec
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.keys import COUNTS, LOGS, RECORDS

pytestmark = pytest.mark.disk

WRITERS = 16

ACKNOWLEDGE = """
import os, sys
from pathlib import Path
import trio
from trunkline.store import codec
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.keys import COUNTS, LOGS, RECORDS

async def write(journal, writer):
    number = 0
    while True:
        key = b"%02d-%08d" % (writer, number)
        batch = Batch()
        batch.put(RECORDS, key, codec.encode({"padding": bytes(200)}))
        batch.put(LOGS, key, b"")
        batch.add(COUNTS, b"written", {"n": 1})
        await journal.submit(batch).wait()
        os.write(1, key + b"\\n")
        number += 1

async def main():
    with Store.open(Path(sys.argv[1]), map_size_bytes=128 * 1024) as store:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            for writer in range(int(sys.argv[2])):
                nursery.start_soon(write, store.journal, writer)

trio.run(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize("acknowledgements", [1, 100, 1000])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, acknowledgements: int) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", ACKNOWLEDGE, str(tmp_path), str(WRITERS)], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    try:
        acknowledged = [writer.stdout.readline().strip() for _ in range(acknowledgements)]
    finally:
        writer.kill()
        rest, _ = writer.communicate()
    # Lines of 11 digits and signs; the last may have been cut by the kill.
    acknowledged += [line for line in rest.split(b"\n") if len(line) == 11]
    assert len(acknowledged) >= acknowledgements
    with Store.open(tmp_path) as store, store.snapshot() as snapshot:
        lost = [key for key in acknowledged if snapshot.get(RECORDS, key) is None]
        assert lost == []
        stored = list(snapshot.keys(RECORDS, b"", None))
        assert stored == list(snapshot.keys(LOGS, b"", None)), "no batch is there by half"
        assert codec.decode(snapshot.get(COUNTS, b"written") or b"") == {"n": len(stored)}
        for number in range(WRITERS):
            mine = [key for key in stored if key.startswith(b"%02d-" % number)]
            assert mine == [b"%02d-%08d" % (number, n) for n in range(len(mine))], "nor out of order"
    assert verify(tmp_path).ok


async def test_nothing_is_acknowledged_before_the_sync(
    open_store: Callable[..., Store], nursery: trio.Nursery
) -> None:
    events: list[str] = []

    def disk() -> float:
        events.append("sync")
        return 0.0

    store = open_store(sync_delay_s=disk)
    await nursery.start(store.journal.run)

    async def write(key: bytes) -> None:
        batch = Batch()
        batch.put(RECORDS, key, b"v")
        group = store.journal.submit(batch)
        events.append("submitted")
        await group.wait()
        events.append("told")

    async with trio.open_nursery() as writers:
        for number in range(3):
            writers.start_soon(write, b"%d" % number)
    assert events == ["submitted"] * 3 + ["sync"] + ["told"] * 3


def test_a_power_cut_after_the_first_start_leaves_the_files_and_their_folders(tmp_path: Path) -> None:
    """The names of new folders are synced as well: those of the data directory, the store, contents and mails."""
    beside = LooseFiles(tmp_path, Random(1), left_out=frozenset())
    with beside.watched():
        store = Store.open(tmp_path / "new" / "data")
        try:
            for name in ("application/content", "other"):
                with store.contents.write(name) as draft:
                    draft.write(b"whole")
                    draft.finish()
            store.outbox.put("mail", b"text")
            trees = [beside.after_cut() for _ in range(40)]
        finally:
            store.close()
    for tree in trees:
        assert {"new/data/store/data.mdb", "new/data/secret"} <= set(tree)
        assert tree["new/data/outbox/mail.eml"] == b"text"
        assert tree["new/data/contents/application/content"] == tree["new/data/contents/other"] == b"whole"
