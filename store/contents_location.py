"""Where the contents of the files of a data directory are: in its folder, in another one, or in a bucket.

Owns the file that remembers it. A server that used another place by mistake would find no contents, and new ones would
be in two places.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trunkline.store.directory import CONTENTS, read_private, write_private
from trunkline.store.errors import StoreBroken, translate
from trunkline.store.s3 import S3Place

FILE: Final = "contents-location"
FOLDER: Final = "folder"
_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder that several machines reach."""

    path: str

    @property
    def location(self) -> str:
        """The location as the setting names it."""
        return self.path


ContentsPlace = S3Place | FolderPlace


def location_of(directory: Path) -> str:
    """The location that a data directory remembers; the folder if it remembers none. Raises StoreError."""
    try:
        return read_private(directory / FILE, _BYTES_MAX).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return FOLDER


def remember(directory: Path, place: ContentsPlace | None) -> None:
    """Note where the contents are from now on. Raises StoreBroken if there are contents at another place."""
    chosen = FOLDER if place is None else place.location
    present = location_of(directory)
    if chosen == present:
        return
    if present != FOLDER or _has_contents(directory / CONTENTS):
        where = "its folder contents" if present == FOLDER else present
        option = "without --blobs" if present == FOLDER else f"with --blobs {present}"
        raise StoreBroken(
            f"The contents of the files of {directory} are in {where}; start {option}. To move them, stop the server, "
            f"copy all of them to {'the folder' if place is None else chosen}, and write `{chosen}` into "
            f"{directory / FILE}."
        )
    try:
        write_private(directory / FILE, f"{chosen}\n".encode())
    except OSError as error:
        raise translate(error, f"writing of {directory / FILE}") from error


def _has_contents(folder: Path) -> bool:
    """Whether there is a folder of an application."""
    return any(path.is_dir() and any(path.iterdir()) for path in folder.iterdir() if path.name != "drafts")
