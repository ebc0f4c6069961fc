"""The rotation of the keys of a data directory with several partitions: all stores first, then the old key goes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.partitions import make_partitions
from tests.patience import PATIENCE_S
from tests.store.test_keyring import EACH, RECORDS, SECRETS, fill, opened
from trunkline.actors.maintenance.data_directory import rotate_encryption_key, rotate_secret
from trunkline.limits.settings import Settings
from trunkline.store.directory import KEYS_FILE, SECRET, DataDirectory
from trunkline.store.env import Store
from trunkline.store.errors import DirectoryInUse
from trunkline.store.keyring import Keyring
from trunkline.store.partitions import partition_directory

COUNT = 3
COMMITS = RECORDS // 2 + 1
"""The commits of one store: two records in each, and one that names the key."""

ROTATE = """
import os, signal, sys
from functools import partial
from pathlib import Path
from trunkline.actors.maintenance import data_directory
from trunkline.limits.settings import Settings
from trunkline.store.env import Store

commits = 0
def at_sync():
    global commits
    commits += 1
    if commits == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.0

class Watched(Store):
    open = partial(Store.open, sync_delay_s=at_sync)

data_directory.Store = Watched
data_directory._RESEALED_RECORDS_MAX = 2
data_directory.rotate_encryption_key(Settings(data_dir=sys.argv[1]), discard=False)
"""

pytestmark = pytest.mark.disk


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with secrets in each of its partitions."""
    make_partitions(tmp_path, COUNT)
    for partition in range(COUNT):
        fill(tmp_path, partition=partition)
    return tmp_path


def all_opened(data: Path) -> set[bytes]:
    """The ids of the keys that seal the secrets of all partitions, which can all be opened."""
    used: set[bytes] = set()
    for partition in range(COUNT):
        values, keys = opened(data, partition)
        assert values == SECRETS
        used |= keys
    return used


def test_a_rotation_seals_the_secrets_of_all_partitions_anew(data: Path) -> None:
    (old,) = Keyring.read(data / KEYS_FILE).ids
    done = rotate_encryption_key(Settings(data_dir=str(data)), discard=False)
    (new,) = Keyring.read(data / KEYS_FILE).ids
    assert done == (new.hex(), COUNT * RECORDS * EACH, 0)
    assert new != old
    assert all_opened(data) == {new}


@pytest.mark.slow
@pytest.mark.parametrize(
    "commit", [1, COMMITS - 1, COMMITS, COMMITS + 1, 2 * COMMITS, 3 * COMMITS - 1, 3 * COMMITS]
)
def test_a_rotation_that_is_killed_in_any_partition_loses_nothing_and_goes_on(
    data: Path, commit: int
) -> None:
    command = [sys.executable, "-c", ROTATE, str(data), str(commit)]
    killed = subprocess.run(command, timeout=PATIENCE_S, check=False)
    assert killed.returncode == -signal.SIGKILL
    new, old = Keyring.read(data / KEYS_FILE).ids
    assert all_opened(data) <= {new, old}
    done = rotate_encryption_key(Settings(data_dir=str(data)), discard=False)
    assert done.key == new.hex(), "the rotation went on with its key"
    assert Keyring.read(data / KEYS_FILE).ids == (new,)
    assert all_opened(data) == {new}


def test_after_the_loss_of_all_keys_all_partitions_can_be_used_again(data: Path) -> None:
    (data / KEYS_FILE).unlink()
    done = rotate_encryption_key(Settings(data_dir=str(data)), discard=True)
    assert (done.resealed, done.discarded) == (0, COUNT * RECORDS * EACH)
    for partition in range(COUNT):
        assert opened(data, partition) == ([], set())


@pytest.mark.parametrize("served", range(COUNT))
def test_keys_and_secret_stay_while_any_partition_is_served(data: Path, served: int) -> None:
    secret, keys = (data / SECRET).read_bytes(), (data / KEYS_FILE).read_bytes()
    with Store.open(data, partition=served):
        with pytest.raises(DirectoryInUse):
            rotate_encryption_key(Settings(data_dir=str(data)), discard=False)
        with pytest.raises(DirectoryInUse):
            rotate_secret(data)
    assert ((data / SECRET).read_bytes(), (data / KEYS_FILE).read_bytes()) == (secret, keys)
    rotate_secret(data)
    assert (data / SECRET).read_bytes() != secret
    for partition in range(COUNT):
        assert not DataDirectory.is_held(partition_directory(data, partition))
