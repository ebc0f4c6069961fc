"""Blobs: a file is stored completely or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import stat
from pathlib import Path
from random import Random

import pytest

from tests.simulation.loose_files import LooseFiles
from trunkline.store.blobs import DRAFTS, Blobs
from trunkline.store.errors import StoreBroken, StoreFull
from trunkline.store.object_store import Stored
from trunkline.store.outbox import Outbox

pytestmark = pytest.mark.disk


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs.prepare(tmp_path / "files")


def written(blobs: Blobs, name: str, content: bytes) -> Stored:
    with blobs.write(name) as draft:
        for start in range(0, len(content), 1000):
            draft.write(content[start : start + 1000])
        return draft.finish()


def read(blobs: Blobs, name: str, stored: Stored) -> bytes:
    content = blobs.open(name, stored)
    assert content is not None
    pieces = []
    with content:
        while piece := content.read(777):
            pieces.append(piece)
    return b"".join(pieces)


def left_in(folder: Path) -> list[str]:
    """The files in a folder and below, without the lock."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != "lock")


@pytest.mark.parametrize("size", [0, 1, 1000, 700_001])
def test_what_was_written_is_read(blobs: Blobs, size: int) -> None:
    content = os.urandom(size)
    stored = written(blobs, "one", content)
    assert stored == Stored(size, hashlib.sha256(content).hexdigest(), hashlib.md5(content).hexdigest())
    assert read(blobs, "one", stored) == content
    assert blobs.names() == ["one"]
    assert [*blobs.sizes()] == [("one", size)]


def test_a_content_is_not_there_before_it_is_finished(blobs: Blobs) -> None:
    before = written(blobs, "one", b"before")
    with blobs.write("one") as draft:
        draft.write(b"after")
        assert read(blobs, "one", before) == b"before"
        assert blobs.names() == ["one"]
        after = draft.finish()
    assert read(blobs, "one", after) == b"after"


def test_what_is_not_finished_is_removed(blobs: Blobs, tmp_path: Path) -> None:
    with blobs.write("one") as draft:
        draft.write(b"half")
    assert left_in(tmp_path / "files") == []
    assert blobs.open("one") is None


def test_what_a_crash_left_is_removed_at_the_next_start(blobs: Blobs, tmp_path: Path) -> None:
    stored = written(blobs, "one", b"whole")
    (tmp_path / "files" / DRAFTS / "two").write_bytes(b"half")
    again = Blobs.prepare(tmp_path / "files")
    assert left_in(tmp_path / "files") == again.names() == ["one"]
    assert read(again, "one", stored) == b"whole"


def test_a_changed_content_is_noticed(blobs: Blobs, tmp_path: Path) -> None:
    stored = written(blobs, "one", b"content")
    (tmp_path / "files" / "one").write_bytes(b"contend")
    with pytest.raises(StoreBroken):
        read(blobs, "one", stored)


def test_a_content_can_be_removed_while_it_is_read(blobs: Blobs) -> None:
    stored = written(blobs, "one", b"content")
    content = blobs.open("one", stored)
    assert content is not None
    blobs.remove("one")
    blobs.remove("one")
    assert content.read(100) == b"content"
    content.close()
    assert blobs.open("one") is None


def test_only_the_owner_may_read(blobs: Blobs, tmp_path: Path) -> None:
    written(blobs, "one", b"content")
    assert stat.S_IMODE((tmp_path / "files").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "files" / "one").stat().st_mode) == 0o600


def test_a_full_disk_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreFull) as refused:
            written(blobs, "one", bytes(1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(refused.value.__cause__, OSError)
    assert refused.value.__cause__.errno == errno.EFBIG
    assert left_in(tmp_path / "files") == []


def test_the_outbox_keeps_the_newest(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox", 3)
    for number in range(5):
        outbox.put(str(number), b"message %d" % number)
        os.utime(tmp_path / "outbox" / f"{number}.eml", (number, number))
    outbox.put("4", b"again")
    assert sorted(path.name for path in (tmp_path / "outbox").iterdir()) == ["2.eml", "3.eml", "4.eml"]
    assert (tmp_path / "outbox" / "4.eml").read_bytes() == b"again"


def test_what_a_crash_left_in_the_outbox_is_removed_at_the_next_start(tmp_path: Path) -> None:
    outbox = Outbox.prepare(tmp_path / "outbox", 3)
    outbox.put("1", b"message")
    (tmp_path / "outbox" / ".2.eml.0123abcd").write_bytes(b"half")
    Outbox.prepare(tmp_path / "outbox", 3)
    assert [path.name for path in (tmp_path / "outbox").iterdir()] == ["1.eml"]


def test_what_was_removed_does_not_come_back_by_a_power_cut(tmp_path: Path) -> None:
    """Nobody would remove it again: its marker in the store is gone."""
    beside = LooseFiles(tmp_path, Random(1))
    with beside.watched():
        blobs = Blobs.prepare(tmp_path / "contents")
        for name in ("kept", "alone", "folder/one", "folder/two", "other/one", "other/two"):
            with blobs.write(name) as draft:
                draft.write(b"x")
                draft.finish()
        with blobs.removing() as allowed:
            assert allowed
            for name in ("alone", "other/one"):
                blobs.remove(name)
            blobs.remove_folder("folder")
        trees = [beside.after_cut() for _ in range(40)]
    for tree in trees:
        assert {name for name, content in tree.items() if content is not None} == {
            "contents/kept",
            "contents/other/two",
            "contents/lock",
        }
