"""Contents of files, and results of jobs, in a folder that several machines reach.

What a start leaves in a bucket is not tested: moto says of every unfinished upload that it began in 2010.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.store.contents_location import FolderPlace
from trunkline.store.env import Store


@pytest.fixture
def shared(tmp_path: Path) -> FolderPlace:
    return FolderPlace(str(tmp_path / "shared"))


def opened(directory: Path, shared: FolderPlace) -> Store:
    """A store that has a log."""
    return Store.open(directory, contents_place=shared, keeps_log=True)


def read(store: Store) -> bytes:
    found = store.contents.open("file")
    assert found is not None
    with found:
        return found.read()


def test_results_of_jobs_are_where_all_machines_reach_them(tmp_path: Path, shared: FolderPlace) -> None:
    """Also those that were made before there was a log."""
    with Store.open(tmp_path / "one", contents_place=shared) as one:
        finished(one, "before")
    with opened(tmp_path / "one", shared) as one:
        finished(one, "after")
    assert [*(tmp_path / "one" / "results").glob("*fore")] == []
    with opened(tmp_path / "two", shared) as two:
        assert two.results.names() == ["after", "before"]


def finished(store: Store, name: str) -> None:
    with store.results.write(name) as draft:
        draft.write(b"content")
        draft.finish()


def test_the_start_of_a_machine_leaves_what_another_one_writes(tmp_path: Path, shared: FolderPlace) -> None:
    with opened(tmp_path / "one", shared) as one:
        with one.contents.write("file") as draft:
            draft.write(b"content")
            with opened(tmp_path / "two", shared):
                pass
            draft.finish()
        assert read(one) == b"content"


def test_what_is_written_by_one_is_read_by_the_other(tmp_path: Path, shared: FolderPlace) -> None:
    with opened(tmp_path / "one", shared) as one, one.contents.write("file") as draft:
        draft.write(b"content")
        draft.finish()
    with opened(tmp_path / "two", shared) as two:
        assert read(two) == b"content"
