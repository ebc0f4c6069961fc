"""The object store of the contents of files: what both implementations promise, and what the folder adds."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.s3_service import Service, s3_service
from trunkline.store.blobs import Blobs
from trunkline.store.contents_location import FILE, location_of, remember
from trunkline.store.errors import StoreBroken, StoreUnreachable
from trunkline.store.object_store import ObjectStore, Stored
from trunkline.store.s3 import S3Place, S3Store

PART_BYTES = 5 * 2**20
"""The least that the service takes for a part that is not the last one."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with s3_service() as service:
        yield service


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "folder":
        return Blobs.prepare(tmp_path / "contents")
    return s3_store(request.getfixturevalue("service"), tmp_path.name)


def s3_store(service: Service, prefix: str) -> S3Store:
    return S3Store.prepare(service.bucket(prefix), part_bytes=PART_BYTES, connections=2)


def written(store: ObjectStore, name: str, content: bytes) -> Stored:
    with store.write(name) as draft:
        draft.write(content[: len(content) // 2])
        draft.write(content[len(content) // 2 :])
        return draft.finish()


def read(store: ObjectStore, name: str, stored: Stored | None = None) -> bytes | None:
    content = store.open(name, stored)
    if content is None:
        return None
    with content:
        return content.read()


@pytest.mark.parametrize("size", [0, 1, 70_001, 2 * PART_BYTES + 1])
def test_what_was_written_is_read(store: ObjectStore, size: int) -> None:
    content = os.urandom(size)
    stored = written(store, "a/one", content)
    assert stored.size_bytes == size
    assert read(store, "a/one", stored) == content


def test_two_drafts_of_one_name_do_not_mix(store: ObjectStore) -> None:
    with store.write("a/one") as first, store.write("a/one") as second:
        for _ in range(3):
            first.write(b"first ")
            second.write(b"second ")
        assert read(store, "a/one") is None
        second.finish()
        assert read(store, "a/one") == b"second " * 3
        stored = first.finish()
    assert read(store, "a/one", stored) == b"first " * 3


def test_a_draft_that_is_not_finished_leaves_nothing(
    store: ObjectStore, tmp_path: Path, service: Service
) -> None:
    with store.write("a/one") as draft:
        draft.write(bytes(PART_BYTES + 1))
    assert read(store, "a/one") is None
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] in ([], ["lock"])
    assert service.unfinished() == 0


def test_ranges_are_read_and_a_changed_object_is_noticed(store: ObjectStore) -> None:
    stored = written(store, "a/one", bytes(range(200)) * 100)
    other = Stored(stored.size_bytes, "0" * 64)
    content = store.open("a/one", other)
    assert content is not None
    with content:
        content.seek(300)
        assert content.read(4) == bytes(range(100, 104))
        content.seek(-1, io.SEEK_END)
        assert content.read(4) == bytes([199])
        content.seek(0)
        with pytest.raises(StoreBroken):
            content.read()
    with pytest.raises(StoreBroken):
        store.open("a/one", Stored(1, stored.sha256))


def test_an_object_is_a_file_for_other_libraries(store: ObjectStore) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("inside", b"text" * 10_000)
    stored = written(store, "a/zip", archive.getvalue())
    content = store.open("a/zip", stored)
    assert content is not None
    with content, zipfile.ZipFile(io.BufferedReader(content)) as found:
        assert found.read("inside") == b"text" * 10_000


def test_objects_and_folders_are_removed(store: ObjectStore) -> None:
    for name in ("a/one", "a/two", "ab/one"):
        written(store, name, b"content")
    store.remove("a/one")
    store.remove("a/one")
    assert [read(store, name) for name in ("a/one", "a/two", "ab/one")] == [None, b"content", b"content"]
    store.remove_folder("a")
    store.remove_folder("a")
    assert [read(store, name) for name in ("a/two", "ab/one")] == [None, b"content"]


@pytest.mark.parametrize(
    "name", ["..", "../a", "a/../b", "/a", "a/", "", "a/b/c", ".", "a.b", "a\0", "ä", "a\n"]
)
def test_no_name_leads_out_of_the_store(store: ObjectStore, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        store.write(name)
    with pytest.raises(ValueError, match="name"):
        store.open(name)
    with pytest.raises(ValueError, match="name"):
        store.remove(name)
    with pytest.raises(ValueError, match="name"):
        store.remove_folder(name)


def test_a_store_within_another_one_has_the_names_of_a_folder(store: ObjectStore) -> None:
    written(store, "one", b"1")
    written(store, "a/two", b"22")
    inner = store.within("a")
    written(inner, "three", b"333")
    written(inner, "b/four", b"4444")
    assert (store.names(), inner.names()) == (["one"], ["three", "two"])
    assert sorted(inner.sizes()) == [("three", 3), ("two", 2)]
    assert (read(inner, "two"), read(store, "a/three")) == (b"22", b"333")
    inner.remove("two")
    assert inner.names() == ["three"]
    assert [*store.within("empty").sizes()] == []


@pytest.mark.parametrize("size", [3, PART_BYTES + 1])
def test_an_object_can_get_its_name_at_its_end(store: ObjectStore, size: int) -> None:
    with store.write("early") as draft:
        draft.write(bytes(size))
        stored = draft.finish("late")
    assert read(store, "late", stored) == bytes(size)
    assert store.names() == ["late"]


def test_nothing_is_removed_while_files_are_copied(tmp_path: Path) -> None:
    blobs = Blobs.prepare(tmp_path / "contents")
    with blobs.kept(), Blobs(tmp_path / "contents").kept(), blobs.removing() as allowed:
        assert not allowed
    with blobs.removing() as allowed:
        assert allowed


def test_what_a_crash_left_in_a_bucket_is_aborted_at_the_next_start(service: Service) -> None:
    store = s3_store(service, "crash")
    store.write("a/one").write(bytes(PART_BYTES + 1))
    other = s3_store(service, "crash2").write("a/one")
    other.write(bytes(PART_BYTES + 1))
    assert service.unfinished() == 2
    shared = service.bucket("crash")
    # This service says of each upload that it began in 2010.
    S3Store.prepare(shared, part_bytes=PART_BYTES, connections=2, left_s=1e9)
    assert service.unfinished() == 2, "another process may be sending it"
    s3_store(service, "crash")
    assert service.unfinished() == 1, "those of other prefixes stay"
    other.__exit__(None, None, None)
    assert service.unfinished() == 0


def test_a_bucket_that_is_missing_or_cannot_be_reached(service: Service) -> None:
    with pytest.raises(StoreBroken, match="NoSuchBucket"):
        S3Store.prepare(service.bucket(name="no-such-bucket"), part_bytes=PART_BYTES, connections=1)
    with s3_service() as other:
        bucket = other.bucket()
        store = s3_store(other, "files")
        stored = written(store, "a/one", b"content")
        other.kill()
        for call in (
            lambda: written(store, "a/two", b"content"),
            lambda: read(store, "a/one", stored),
            lambda: store.remove("a/one"),
            lambda: store.remove_folder("a"),
        ):
            with pytest.raises(StoreUnreachable, match="cannot be reached"):
                call()
        # A server starts all the same: its devices do not need files.
        S3Store.prepare(bucket, part_bytes=PART_BYTES, connections=1)


def test_a_data_directory_remembers_where_its_contents_are(tmp_path: Path) -> None:
    contents = Blobs.prepare(tmp_path / "contents")
    bucket = S3Place("one", "files")
    assert location_of(tmp_path) == "folder"
    remember(tmp_path, None)
    assert not (tmp_path / FILE).exists()
    written(contents, "a/one", b"content")
    with pytest.raises(StoreBroken, match="are in its folder contents; start without --blobs"):
        remember(tmp_path, bucket)
    contents.remove("a/one")
    remember(tmp_path, bucket)
    assert location_of(tmp_path) == "s3://one/files"
    remember(tmp_path, S3Place("one", "files", secret_key="another"))
    for other, words in ((None, "with --blobs s3://one/files"), (S3Place("one"), "s3://one/files")):
        with pytest.raises(StoreBroken, match=words):
            remember(tmp_path, other)
