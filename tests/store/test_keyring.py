"""Stored secrets are encrypted with a key outside the store, and can be read only where they were put."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from trunkline.store import codec, keys
from trunkline.store.batch import Batch
from trunkline.store.directory import KEYS_FILE
from trunkline.store.env import Store
from trunkline.store.errors import CannotOpen, SecretExposed, SecretMissing, StoreBroken
from trunkline.store.keyring import Keyring, is_sealed, key_of, sealed_values, without_sealed
from trunkline.store.reseal import rotate_keys, seal_problems

pytestmark = pytest.mark.disk

APP = b"a" * 12
PLACE: dict[str, Any] = {"kind": "webhook", "id": b"w" * 12, "field": "basicAuthPassword"}
RECORDS = 20
EACH = 3
"""Sealed values in each record."""


def fill(data: Path, size: int = RECORDS, partition: int = 0) -> None:
    """A store of records with secrets at three depths, and of one without."""
    with Store.open(data, partition=partition, map_size_bytes=1 << 20) as store:
        batch = Batch()
        batch.put(keys.RECORDS, keys.record_key("device", APP, b"d" * 12), codec.encode({"name": "plain"}))
        for number in range(size):
            id = b"%012d" % number
            secrets = {"password": f"secret {number}", "config.token": number, "config.headers.0.value": "h"}
            password, token, header = (
                store.keyring.seal(value, kind="box", id=id, field=field) for field, value in secrets.items()
            )
            config = {"token": token, "headers": [{"key": "a", "value": header}]}
            document = {"name": f"box {number}", "password": password, "config": config}
            batch.put(keys.RECORDS, keys.record_key("box", APP, id), codec.encode(document))
        store.journal.submit(batch)


def opened(data: Path, partition: int = 0) -> tuple[list[Any], set[bytes]]:
    """All secrets of a store in the order of the records, and the ids of the keys that seal them."""
    values, used = [], set()
    with Store.open(data, partition=partition) as store, store.snapshot() as snapshot:
        assert list(seal_problems(snapshot, store.keyring)) == []
        prefix = keys.record_prefix("box", APP)
        for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            for each in sealed_values(codec.decode(raw)):
                used.add(key_of(each.value))
                values.append(store.keyring.unseal(each.value, kind="box", id=key[-12:], field=each.field))
    return values, used


SECRETS = [value for number in range(RECORDS) for value in (f"secret {number}", number, "h")]


# Sealed values.


@pytest.mark.parametrize("value", ["", "pass", "x" * 100_000, {"a": [1, None]}, 5, b"\x00"])
def test_what_was_sealed_is_opened(value: Any) -> None:
    keyring = Keyring.new()
    sealed = keyring.seal(value, **PLACE)
    assert is_sealed(sealed)
    assert keyring.unseal(sealed, **PLACE) == value
    assert sealed != keyring.seal(value, **PLACE), "equal secrets cannot be told from each other"


@pytest.mark.parametrize("other", [{"kind": "user"}, {"id": b"v" * 12}, {"field": "name"}])
def test_a_sealed_value_opens_only_in_its_place(other: dict[str, Any]) -> None:
    keyring = Keyring.new()
    sealed = keyring.seal("pass", **PLACE)
    with pytest.raises(CannotOpen, match="belongs to another record or field"):
        keyring.unseal(sealed, **PLACE | other)


def test_a_changed_value_does_not_open() -> None:
    keyring = Keyring.new()
    sealed = keyring.seal("pass", **PLACE)
    for place in range(len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(CannotOpen):
            keyring.unseal(changed, **PLACE)
        with pytest.raises(CannotOpen):
            keyring.unseal(sealed[:place], **PLACE)


def test_a_value_of_another_keyring_names_the_missing_key() -> None:
    other = Keyring.new()
    with pytest.raises(CannotOpen, match=f"the encryption key {other.current.hex()} is missing"):
        Keyring.new().unseal(other.seal("pass", **PLACE), **PLACE)


def test_a_document_is_shown_without_its_sealed_values() -> None:
    sealed = Keyring.new().seal("pass", **PLACE)
    document = {"a": 1, "b": sealed, "c": [{"d": sealed, "e": b"hash"}, sealed], "f": {}}
    assert without_sealed(document) == {"a": 1, "c": [{"e": b"hash"}], "f": {}}
    assert [each.field for each in sealed_values(document)] == ["b", "c.0.d", "c.1"]


# The file of the keys.


def test_the_keys_are_made_with_the_store_and_only_for_its_owner(tmp_path: Path) -> None:
    fill(tmp_path)
    file = tmp_path / KEYS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = file.read_bytes()
    assert opened(tmp_path) == (SECRETS, set(Keyring.read(file).ids))
    assert file.read_bytes() == written
    assert b"secret 7" not in (tmp_path / "store" / "data.mdb").read_bytes()


def test_the_keys_may_be_kept_elsewhere(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    Store.open(tmp_path / "data", encryption_keys=place).close()
    Store.open(tmp_path / "data", encryption_keys=place).close()
    assert not (tmp_path / "data" / KEYS_FILE).exists()
    with pytest.raises(SecretMissing, match=r"There is no file .*/data/encryption-keys"):
        Store.open(tmp_path / "data")


def test_keys_that_others_may_read_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / KEYS_FILE).chmod(0o640)
    with pytest.raises(SecretExposed, match=r"encryption-keys may be read by others \(mode 0640\)"):
        Store.open(tmp_path)


def test_keys_that_point_elsewhere_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / KEYS_FILE).rename(tmp_path / "moved")
    (tmp_path / KEYS_FILE).symlink_to(tmp_path / "moved")
    with pytest.raises(StoreBroken, match=r"reading of .*encryption-keys"):
        Store.open(tmp_path)


@pytest.mark.parametrize(
    "damage", [b"", b"12 34\n", b"zz", b"\xff", b"01020304\n", b"01020304 " + b"ab" * 31]
)
def test_damaged_keys_are_refused(tmp_path: Path, damage: bytes) -> None:
    fill(tmp_path)
    (tmp_path / KEYS_FILE).write_bytes(damage)
    with pytest.raises(SecretExposed, match="is damaged: each line should hold"):
        Store.open(tmp_path)


def test_lost_keys_are_not_replaced(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / KEYS_FILE).unlink()
    with pytest.raises(SecretMissing, match=r"There is no file .*encryption_keys_file.*rekey --discard"):
        Store.open(tmp_path)
    assert not (tmp_path / KEYS_FILE).exists()


def test_the_keys_of_another_directory_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    Keyring.new().write(tmp_path / KEYS_FILE)
    with pytest.raises(SecretMissing, match=r"does not hold the encryption key [0-9a-f]{8}, with which"):
        Store.open(tmp_path)


# The rotation.


def test_a_rotation_seals_everything_anew_and_drops_the_old_key(tmp_path: Path) -> None:
    fill(tmp_path)
    (old,) = Keyring.read(tmp_path / KEYS_FILE).ids
    with Store.open(tmp_path) as store:
        done = rotate_keys([store], tmp_path / KEYS_FILE, records_per_commit=7)
    (new,) = Keyring.read(tmp_path / KEYS_FILE).ids
    assert done == (new.hex(), RECORDS * EACH, 0)
    assert new != old
    assert opened(tmp_path) == (SECRETS, {new})


ROTATE = """
import os, signal, sys
from pathlib import Path
from trunkline.store.env import Store
from trunkline.store.reseal import rotate_keys

commits = 0
def at_sync():
    global commits
    commits += 1
    if commits == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.0

data = Path(sys.argv[1])
with Store.open(data, sync_delay_s=at_sync) as store:
    rotate_keys([store], data / "encryption-keys", records_per_commit=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("commit", [1, 5, RECORDS // 2, RECORDS // 2 + 1])
def test_a_rotation_that_is_killed_loses_nothing_and_goes_on(tmp_path: Path, commit: int) -> None:
    """At the first of its commits, between them, at the last one with secrets, and at the one that ends it."""
    fill(tmp_path)
    command = [sys.executable, "-c", ROTATE, str(tmp_path), str(commit)]
    killed = subprocess.run(command, timeout=PATIENCE_S, check=False)
    assert killed.returncode == -signal.SIGKILL
    new, old = Keyring.read(tmp_path / KEYS_FILE).ids
    values, used = opened(tmp_path)
    assert values == SECRETS
    assert used <= {new, old}
    with Store.open(tmp_path) as store:
        done = rotate_keys([store], tmp_path / KEYS_FILE, records_per_commit=2)
    assert done.key == new.hex(), "the rotation went on with its key"
    assert Keyring.read(tmp_path / KEYS_FILE).ids == (new,)
    assert opened(tmp_path) == (SECRETS, {new})


def lose_key(data: Path) -> None:
    """Put a record of another keyring into the store, as after an incomplete restore."""
    with Store.open(data) as store:
        lost = Keyring.new()
        place: dict[str, Any] = {"kind": "box", "id": b"9" * 12}
        password = lost.seal("x", **place, field="password")
        codes = [lost.seal("y", **place, field="codes.0"), store.keyring.seal("z", **place, field="codes.1")]
        batch = Batch()
        document = codec.encode({"name": "lost", "password": password, "codes": codes})
        batch.put(keys.RECORDS, keys.record_key("box", APP, b"9" * 12), document)
        store.journal.submit(batch)


def test_what_cannot_be_opened_stops_a_rotation_and_is_discarded_on_request(tmp_path: Path) -> None:
    fill(tmp_path)
    lose_key(tmp_path)
    with Store.open(tmp_path) as store:
        with store.snapshot() as snapshot:
            problem, _ = seal_problems(snapshot, store.keyring)
        assert "the sealed password cannot be opened: the encryption key" in problem
        with pytest.raises(CannotOpen, match=r"password of the box .* All keys are kept"):
            rotate_keys([store], tmp_path / KEYS_FILE, records_per_commit=5)
    assert len(Keyring.read(tmp_path / KEYS_FILE).ids) == 2
    with Store.open(tmp_path) as store:
        done = rotate_keys([store], tmp_path / KEYS_FILE, records_per_commit=5, discard=True)
    assert done.discarded == 2
    assert opened(tmp_path)[0] == [*SECRETS, "z"]


def test_after_the_loss_of_all_keys_the_directory_can_be_used_again(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / KEYS_FILE).unlink()
    with Store.open(tmp_path, lost_keys=True) as store:
        done = rotate_keys([store], tmp_path / KEYS_FILE, records_per_commit=5, discard=True)
    assert (done.resealed, done.discarded) == (0, RECORDS * EACH)
    assert opened(tmp_path) == ([], set())


def test_drafts_of_keys_that_a_killed_process_has_left_are_removed(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "keys[1]"
    with Store.open(data, map_size_bytes=1 << 20, encryption_keys=elsewhere):
        pass
    drafts = [
        data / ".secret.0123abcd",
        tmp_path / ".keys[1].0123abcd",
        data / "partitions" / ".switch.0123abcd",
    ]
    others = [data / ".secret.mine", tmp_path / ".keys1.0123abcd"]
    (data / "partitions").mkdir()
    for path in (*drafts, *others):
        path.write_text("x")
    with Store.open(data, map_size_bytes=1 << 20, encryption_keys=elsewhere):
        pass
    assert [path for path in (*drafts, *others) if path.exists()] == others
    assert elsewhere.exists()
