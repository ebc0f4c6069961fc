"""A data directory is used by one process at a time, and only its owner can read the secret."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.patience import PATIENCE_S
from tests.simulation.loose_files import LooseFiles
from trunkline.store.directory import DataDirectory, has_data
from trunkline.store.env import Store
from trunkline.store.errors import (
    DirectoryInUse,
    SecretExposed,
    SecretMissing,
    StoreBroken,
    StoreDamaged,
    StoreError,
)

pytestmark = pytest.mark.disk

TRY_TO_OPEN = """
import sys
from pathlib import Path
from trunkline.store.directory import DataDirectory
from trunkline.store.errors import DirectoryInUse
try:
    DataDirectory.open(Path(sys.argv[1]))
except DirectoryInUse as refusal:
    print(refusal)
else:
    print("opened")
print(DataDirectory.is_held(Path(sys.argv[1])))
"""


def in_another_process(path: Path) -> list[str]:
    command = [sys.executable, "-c", TRY_TO_OPEN, str(path)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout.splitlines()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
def test_another_process_is_refused_with_a_sentence_while_we_hold_it(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path):
        refusal, is_held = in_another_process(tmp_path)
        assert str(tmp_path) in refusal
        assert f"in use by process {os.getpid()}. Stop that one first" in refusal
        assert is_held == "True"
        assert DataDirectory.is_held(tmp_path)
    assert not DataDirectory.is_held(tmp_path)
    assert in_another_process(tmp_path)[0] == "opened"


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    hold = (
        "import sys, signal, pathlib; from trunkline.store.directory import DataDirectory\n"
        "held = DataDirectory.open(pathlib.Path(sys.argv[1])); print('held', flush=True); signal.pause()"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DirectoryInUse, match=f"process {holder.pid}"):
            DataDirectory.open(tmp_path)
    finally:
        holder.kill()
        holder.communicate()
    assert not DataDirectory.is_held(tmp_path)
    DataDirectory.open(tmp_path).close()


@pytest.mark.slow
def test_a_store_is_opened_and_held_where_the_disk_has_no_byte_left(tmp_path: Path) -> None:
    """The id of the process in the file of the lock is only for messages."""
    Store.open(tmp_path, map_size_bytes=1 << 20).close()
    hold = (
        "import resource, signal, sys, pathlib; from trunkline.store.env import Store\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        "held = Store.open(pathlib.Path(sys.argv[1])); print('held', flush=True); signal.pause()"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert (tmp_path / "lock").read_text() == ""
        assert DataDirectory.is_held(tmp_path)
        with pytest.raises(DirectoryInUse, match="another process"):
            DataDirectory.open(tmp_path)
    finally:
        holder.kill()
        holder.communicate()


def test_a_second_store_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with (
        Store.open(tmp_path, map_size_bytes=1 << 20),
        pytest.raises(DirectoryInUse, match=f"process {os.getpid()}"),
    ):
        Store.open(tmp_path, map_size_bytes=1 << 20)
    Store.open(tmp_path, map_size_bytes=1 << 20).close()


def test_a_store_that_cannot_be_opened_unlocks_the_directory(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as directory:
        directory.require_secret(new=True)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "data.mdb").write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreBroken, match="meta page 0 is not one of LMDB"):
        Store.open(tmp_path, map_size_bytes=1 << 20)
    DataDirectory.open(tmp_path).close()


def test_the_directory_is_closed_to_others(tmp_path: Path) -> None:
    made = tmp_path / "deep" / "data"
    DataDirectory.open(made).close()
    assert mode(made) == 0o700
    made.chmod(0o755)
    DataDirectory.open(made).close()
    assert mode(made) == 0o700
    with Store.open(made, map_size_bytes=1 << 20):
        assert mode(made / "store" / "data.mdb") == 0o600


def test_a_directory_of_other_things_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "contents").mkdir()
    tmp_path.chmod(0o1777)
    with pytest.raises(StoreError, match=r"is not a data directory, and is not empty: it holds reports\."):
        DataDirectory.open(tmp_path)
    assert mode(tmp_path) == 0o1777
    assert sorted(path.name for path in tmp_path.iterdir()) == ["contents", "reports"]


def test_a_new_directory_may_hold_what_file_systems_and_operators_put_there(tmp_path: Path) -> None:
    for name in ("lost+found", ".cache", "contents", "contents/lost+found", "store"):
        (tmp_path / name).mkdir()
    (tmp_path / "trunkline.toml").touch()
    Store.open(tmp_path, map_size_bytes=1 << 20).close()
    assert mode(tmp_path) == 0o700


def test_a_path_that_cannot_be_a_directory_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreBroken, match=r"opening of the data directory .*file"):
        DataDirectory.open(tmp_path / "file")


def test_the_secret_is_made_once_and_only_for_its_owner(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with DataDirectory.open(tmp_path) as directory:
            directory.require_secret(new=True)
            secret = directory.secret()
            assert len(secret) == 32
            assert mode(tmp_path / "secret") == 0o600
            directory.require_secret(new=True)
            assert directory.secret() == secret
    finally:
        os.umask(umask)
    with DataDirectory.open(tmp_path) as directory:
        assert directory.secret() == secret
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "secret"]


def test_a_new_secret_replaces_the_old_one(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as directory:
        old = directory.rotate_secret()
        new = directory.rotate_secret()
        assert old != new == directory.secret()
        assert mode(tmp_path / "secret") == 0o600


@pytest.mark.parametrize("exposed", [0o640, 0o604, 0o644])
def test_a_secret_that_others_may_read_is_refused(tmp_path: Path, exposed: int) -> None:
    with DataDirectory.open(tmp_path) as directory:
        secret = directory.rotate_secret()
        (tmp_path / "secret").chmod(exposed)
        with pytest.raises(
            SecretExposed, match=r"may be read by others \(mode 0\d{3}\).*chmod 600"
        ) as refusal:
            directory.secret()
        assert secret.hex() not in str(refusal.value)


@pytest.mark.parametrize("damage", [b"", b"12ab", b"zz" * 32, b"\xff" * 64, b"ab" * 100])
def test_a_damaged_secret_is_refused(tmp_path: Path, damage: bytes) -> None:
    with DataDirectory.open(tmp_path) as directory:
        directory.rotate_secret()
        (tmp_path / "secret").write_bytes(damage)
        with pytest.raises(SecretExposed, match="damaged"):
            directory.secret()


def test_a_secret_that_points_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("ab" * 32)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").symlink_to(tmp_path / "elsewhere")
    with DataDirectory.open(tmp_path / "data") as directory, pytest.raises(StoreBroken, match="reading of"):
        directory.secret()


# What a failed start leaves.


def test_a_discarded_directory_is_removed_with_the_parents_that_were_made(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "a" / "b" / "data") as directory:
        directory.require_secret(new=True)
        (tmp_path / "a" / "other").touch()
        directory.discard()
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "other"]


@pytest.mark.parametrize("kept", ["made before", "kept"])
def test_a_directory_that_is_used_is_not_discarded(tmp_path: Path, kept: str) -> None:
    if kept == "made before":
        (tmp_path / "data").mkdir()
    with DataDirectory.open(tmp_path / "data") as directory:
        directory.require_secret(new=True)
        if kept == "kept":
            directory.keep()
        directory.discard()
    assert (tmp_path / "data" / "secret").exists()


def test_a_store_that_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken):
        Store.open(tmp_path / "new" / "data", map_size_bytes=2**62)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "new" / "data"):
        with pytest.raises(DirectoryInUse):
            Store.open(tmp_path / "new" / "data")
        assert (tmp_path / "new" / "data" / "store").is_dir()


def test_a_lost_secret_is_not_replaced(tmp_path: Path) -> None:
    """All tokens would be invalid, and those of devices never expire."""
    Store.open(tmp_path, map_size_bytes=128 * 1024).close()
    (tmp_path / "secret").unlink()
    with pytest.raises(SecretMissing, match=r"has data but no file `secret`.*trunkline secret rotate --data"):
        Store.open(tmp_path)
    assert not (tmp_path / "secret").exists()
    with DataDirectory.open(tmp_path) as directory:
        with pytest.raises(SecretMissing):
            directory.secret()
        directory.rotate_secret()
    Store.open(tmp_path).close()


@pytest.mark.parametrize("lost", ["the file", "its content", "the folder"])
def test_a_lost_store_is_not_replaced(tmp_path: Path, lost: str) -> None:
    """An empty one in its place would look like a server that nobody has used yet."""
    Store.open(tmp_path, map_size_bytes=128 * 1024).close()
    if lost == "its content":
        os.truncate(tmp_path / "store" / "data.mdb", 0)
    else:
        (tmp_path / "store").rename(tmp_path / "unmounted")
        if lost == "the file":
            (tmp_path / "store").mkdir()
    with pytest.raises(
        StoreBroken, match=r"has had data, and .*data\.mdb is missing or empty\. If store is on"
    ):
        Store.open(tmp_path)
    assert not has_data(tmp_path)
    Store.open(tmp_path, keeps_log=True).close()


def test_a_power_cut_in_the_first_start_is_not_taken_for_a_lost_store(tmp_path: Path) -> None:
    """What tells of an earlier store is on the disk behind the name of its file."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "results").touch()
    beside = LooseFiles(tmp_path / "data", Random(1), left_out=frozenset())
    with beside.watched():
        with pytest.raises(StoreBroken, match="results"):
            Store.open(tmp_path / "data")
        trees = [beside.after_cut() for _ in range(40)]
    for tree in trees:
        assert "contents/drafts" not in tree or "store/data.mdb" in tree
    assert any("contents/drafts" in tree for tree in trees)


def test_a_first_start_that_was_killed_while_it_wrote_the_file_is_made_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Store.open(data):
        whole = (data / "store" / "data.mdb").read_bytes()
    begun = tmp_path / "begun"
    (begun / "store").mkdir(parents=True)
    (begun / "store" / "data.mdb").write_bytes(whole[:60])
    with Store.open(begun) as store:
        assert store.sizes().used >= 8192


def test_a_file_that_was_cut_off_is_never_taken_for_a_first_start(tmp_path: Path) -> None:
    with Store.open(tmp_path):
        pass
    os.truncate(tmp_path / "store" / "data.mdb", 60)
    with pytest.raises(StoreDamaged, match="cut off"):
        Store.open(tmp_path)
    assert (tmp_path / "store" / "data.mdb").stat().st_size == 60
