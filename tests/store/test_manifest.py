"""A backup has a manifest of its files, which the check and the first start compare with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.store import codec, keys
from trunkline.store.backup import backup, verify
from trunkline.store.batch import Batch
from trunkline.store.directory import MANIFEST, data_file
from trunkline.store.env import Store
from trunkline.store.errors import StoreDamaged
from trunkline.store.manifest import manifest_problems


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A backup of a small store."""
    with Store.open(tmp_path / "data") as store:
        batch = Batch()
        for number in range(100):
            batch.put(keys.LOGS, b"%04d" % number, codec.encode(bytes(500)))
        store.journal.submit(batch)
    backup(tmp_path / "data", tmp_path / "copy")
    return tmp_path / "copy"


def change_unused(copy: Path) -> None:
    """Change bytes that LMDB does not use, so that only the manifest can tell."""
    raw = bytearray(data_file(copy).read_bytes())
    raw[2000] ^= 1  # behind the fields of the first meta page
    data_file(copy).write_bytes(raw)


def test_a_whole_backup_is_accepted_once(copy: Path) -> None:
    assert manifest_problems(copy) == []
    assert verify(copy).problems == []
    with Store.open(copy) as store, store.snapshot() as snapshot:
        assert snapshot.count(keys.LOGS, b"", None) == 100
    assert not (copy / MANIFEST).exists(), "from now on the files change"
    Store.open(copy).close()


def test_a_changed_file_is_found(copy: Path) -> None:
    change_unused(copy)
    (problem,) = verify(copy).problems
    assert problem == f"{data_file(copy)} is not what was backed up: its SHA-256 is another one."
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"is not what was backed up.*Copy the backup again"):
            Store.open(copy)
    (copy / MANIFEST).unlink()  # as the sentence says, where it is intended
    Store.open(copy).close()


def test_a_file_of_another_length_is_found(copy: Path) -> None:
    with (copy / "secret").open("ab") as file:
        file.write(b"\n")
    (problem,) = verify(copy).problems
    assert problem == f"{copy / 'secret'} has 66 bytes, in the backup it had 65."


def test_a_forgotten_secret_is_found(copy: Path) -> None:
    (copy / "secret").unlink()
    missing, told = verify(copy).problems
    assert missing == f"{copy / 'secret'} is missing, but the backup has it."
    assert "has data but no file `secret`" in told
    with pytest.raises(StoreDamaged, match="is missing, but the backup has it"):
        Store.open(copy)
    assert not (copy / "secret").exists()


@pytest.mark.parametrize("text", ["", "[]", '{"files": 1}', '{"files": {"secret": 1}}', "\xff"])
def test_a_damaged_manifest_is_told(copy: Path, text: str) -> None:
    (copy / MANIFEST).write_text(text, encoding="latin-1")
    (problem,) = verify(copy).problems
    assert problem.startswith(f"{copy / MANIFEST} is damaged")
