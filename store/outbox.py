"""The outbox: mail kept as files where no mail server is configured, for the operator to read or send."""

from __future__ import annotations

from pathlib import Path

from trunkline.store.directory import sync_directory, write_private
from trunkline.store.errors import translate
from trunkline.store.leftovers import remove_left


class Outbox:
    """A folder of `.eml` files, created with the first message. Over `length_max` the oldest are deleted."""

    __slots__ = ("_length_max", "_path")

    def __init__(self, path: Path, length_max: int) -> None:
        self._path = path
        self._length_max = length_max

    @classmethod
    def prepare(cls, path: Path, length_max: int, *, left_s: float = 0.0) -> Outbox:
        """Open the outbox in the folder `path`; files that a crash left incomplete are removed (`leftovers.py`)."""
        try:
            remove_left(path.glob(".*.eml.*"), left_s)
        except OSError as error:
            raise translate(error, f"opening of {path}") from error
        return cls(path, length_max)

    def put(self, name: str, message: bytes) -> None:
        """Write a message; one of the same name is replaced. On disk when this returns.

        Blocks: not for the event loop. Raises StoreFull or StoreBroken.
        """
        try:
            if not self._path.is_dir():
                self._path.mkdir(mode=0o700, exist_ok=True)
                sync_directory(self._path.parent)
            write_private(self._path / f"{name}.eml", message)
            kept = sorted(self._path.glob("*.eml"), key=lambda path: path.stat().st_mtime_ns)
            for path in kept[: -self._length_max]:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise translate(error, f"writing of the message {name}") from error
