"""Whoever is the wrong user for a data directory is told so, and changes nothing in it.

The tests run as root or as another user. Root can read everything, so it looks as somebody else then; another user
cannot give files away, so the data are those of root then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trunkline.store.directory import data_file
from trunkline.store.directory_owner import check_access, check_owner
from trunkline.store.env import Store
from trunkline.store.errors import StoreBroken, StoreError

pytestmark = pytest.mark.disk

OTHER = 65_534
"""The id of a user to whom nothing belongs."""


def told_another_user(folder: Path, look: Callable[[], None]) -> str:
    """What `look` raises when another user calls it in the folder. For root only."""
    folder.chmod(0o755)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(folder)  # which others cannot reach by its path
        os.setgroups([])
        os.setgid(OTHER)
        os.setuid(OTHER)
        try:
            look()
        except StoreError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as told:  # noqa: PTH123 - a descriptor
        said = told.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.parametrize("closed", [".", "store", "store/data.mdb"])
def test_what_may_not_be_read_is_told_with_the_user_who_may(tmp_path: Path, closed: str) -> None:
    data = tmp_path / "data"
    Store.open(data, map_size_bytes=1 << 20).close()
    check_access(data)
    for place in (data, data / "store"):
        place.chmod(0o755)
    if os.geteuid() == 0:
        (data / closed).chmod(0o700)
        said = told_another_user(tmp_path, lambda: check_access(Path("data")))
        assert said.startswith(f"{Path('data') / closed} belongs to root, and ")
        assert said.endswith("may not read it. Run the command as that user: sudo -u root trunkline ...")
    else:
        (data / closed).chmod(0)
        with pytest.raises(
            StoreBroken, match=r"may not be read by its owner \(mode 0000\)\. Run: chmod u\+rwX"
        ):
            check_access(data)
        (data / closed).chmod(0o700)


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(StoreBroken, match="data is a file, not a directory"):
        check_access(tmp_path / "data")
    check_access(tmp_path / "none")


def test_data_of_another_user_are_left_to_that_user(tmp_path: Path) -> None:
    Store.open(tmp_path, map_size_bytes=1 << 20).close()
    check_owner(tmp_path)
    give_away(data_file(tmp_path))
    with pytest.raises(StoreError, match=r"belong to .*Run the command as that user: sudo -u \S+ trunkline"):
        check_owner(tmp_path)


def give_away(file: Path) -> None:
    """Let a file belong to another user."""
    if os.geteuid() == 0:
        os.chown(file, OTHER, -1)
    else:
        file.unlink()
        file.symlink_to("/bin/sh")
