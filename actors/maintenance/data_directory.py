"""Maintenance of a data directory: its secret, its encryption keys, backups, verification.

The command line does these without an actor system, so nothing of one is imported here: `trunkline secret rotate`
does not load workflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from trunkline.actors.core.records.places import check_given
from trunkline.actors.maintenance.check import check
from trunkline.limits.errors import SettingsError
from trunkline.limits.extras import how_to_install, lacks, library_missing
from trunkline.limits.settings import Settings
from trunkline.store import backup
from trunkline.store.backup_contents import no_contents
from trunkline.store.contents_location import FOLDER, ContentsPlace, FolderPlace, location_of
from trunkline.store.directory import KEYS_FILE, DataDirectory
from trunkline.store.env import Store
from trunkline.store.object_store import Stored
from trunkline.store.partitions import partition_count, partition_directory
from trunkline.store.reseal import Rotation, rotate_keys
from trunkline.store.s3 import S3Place
from trunkline.store.snapshot import Snapshot

_RESEALED_RECORDS_MAX: Final = 500
"""Records of one commit of a rotation of the encryption keys: a few milliseconds."""
__all__ = [
    "FOLDER",
    "back_up",
    "check",
    "contents_place_of",
    "keys_file_of",
    "partition_count",
    "partition_directory",
    "rotate_encryption_key",
    "rotate_secret",
]


def rotate_secret(path: Path) -> None:
    """Replace the secret that signs tokens: every token of this data directory becomes invalid.

    Raises `DirectoryInUse` if a process serves any of its partitions.
    """
    with ExitStack() as stack:
        directory = stack.enter_context(DataDirectory.open(path))
        for number in range(1, partition_count(path)):
            place = partition_directory(path, number)
            if place.exists():
                stack.enter_context(DataDirectory.open(place, common=path))
        directory.rotate_secret()


def rotate_encryption_key(settings: Settings, *, discard: bool) -> Rotation:
    """Seal all stored secrets of all partitions with a new encryption key, and remove the old one.

    No server may be running.

    `discard` removes secrets whose key is lost. Raises `StoreError`; then all keys are kept.
    """
    path, keys_file, place = Path(settings.data_dir), keys_file_of(settings), contents_place_of(settings)
    with ExitStack() as stack:
        stores = [
            stack.enter_context(
                Store.open(
                    path, partition=number, encryption_keys=keys_file, lost_keys=discard, contents_place=place
                )
            )
            for number in range(partition_count(path))
        ]
        return rotate_keys(
            stores,
            keys_file or path / KEYS_FILE,
            records_per_commit=_RESEALED_RECORDS_MAX,
            discard=discard,
        )


def keys_file_of(settings: Settings) -> Path | None:
    """The file of the encryption keys; None if it is in the data directory."""
    return None if settings.encryption_keys_file is None else Path(settings.encryption_keys_file)


def keys_left_out(settings: Settings) -> Path | None:
    """The file of the encryption keys, if it is not the one in the data directory, which a backup has."""
    keys_file = keys_file_of(settings)
    if keys_file is None or keys_file.resolve() == (Path(settings.data_dir) / KEYS_FILE).resolve():
        return None
    return keys_file


def contents_place_of(settings: Settings) -> ContentsPlace | None:
    """Where the contents of files are; None if they are in the data directory.

    Raises `SettingsError` if the library for it is missing.
    """
    if settings.blobs is None:
        return None
    if settings.blobs.startswith("/"):
        return FolderPlace(settings.blobs)
    if lacks("s3"):
        raise SettingsError("blobs", f"is a bucket, and {library_missing('s3')}", how_to_install("s3"))
    name, _, prefix = settings.blobs.removeprefix("s3://").strip("/").partition("/")
    return S3Place(
        name,
        prefix,
        endpoint=settings.s3_endpoint,
        region=settings.blobs_region,
        access_key=settings.blobs_access_key,
        secret_key=settings.blobs_secret_key,
    )


def back_up(path: Path, target: Path) -> str:
    """Copy a data directory consistently, with the contents of its files if they are in it; return where they are.

    A server may be running on it.
    """
    # Only what finds the contents of files needs to know the kinds of records, and with them nearly the whole domain.
    from trunkline.actors.catalogue import KINDS
    from trunkline.actors.core.contents.named import all_contents
    from trunkline.actors.core.records.places import void_copies

    def contents(part: Snapshot, copy: Path, number: int) -> Iterator[tuple[str, Stored]]:
        return all_contents(KINDS, part, void_copies(part, copy, number))

    location = location_of(path)
    backup.backup(path, target, contents if location == FOLDER else no_contents, check_given)
    return location
