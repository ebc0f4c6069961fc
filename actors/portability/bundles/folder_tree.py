"""The files of a template folder: of a directory, or of a zip that somebody else has made.

Owns which files count, and how paths within the folder are resolved. What the files mean is in `folder.py`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.portability.bundles.zip_reader import ZipReader

if TYPE_CHECKING:
    from trunkline.limits.table import Limits

APPLICATION: Final = "application.yaml"
"""The file that makes a folder a template folder."""

_PIECE_BYTES: Final = 64 * 1024
_PATH_CHARS_MAX: Final = 1024


class Tree(Protocol):
    """The files of a folder by their paths, which begin below it."""

    paths: frozenset[str]

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content of a file, in pieces."""
        ...


class ZipTree:
    """The folder of a zip; None stands in `root` if there is none. Raises `Invalid` or `PayloadTooLarge`."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        self._zip = ZipReader(file, limits, lambda _: True)
        self.names = frozenset(self._zip.entries)
        self.root = _root(self.names)
        if self.root is None:
            self.paths: frozenset[str] = frozenset()
            return
        for name in self.names:
            _check_path(name)
        self.paths = _below(self.names, self.root)

    def pieces(self, path: str) -> Iterator[bytes]:
        return self._zip.pieces(f"{self.root}{path}")


class DirectoryTree:
    """A directory of the file system. Links are refused, so that nothing outside is read."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self._directory = directory
        names: set[str] = set()
        for at, folders, files in os.walk(directory):
            folders[:] = [each for each in folders if not _is_hidden(each)]
            for each in (*folders, *files):
                path = Path(at, each)
                if path.is_symlink():
                    raise Invalid(f"{path}: is a link; a template folder has only files and directories.")
            names.update(Path(at, each).relative_to(directory).as_posix() for each in files)
            if len(names) > limits.bundle_entries_max:
                raise PayloadTooLarge(
                    f"{directory}: has more than {limits.bundle_entries_max} files, which is the limit."
                )
        root = _root(names)
        if root is None:
            raise Invalid(f"{directory}: has no {APPLICATION}; give the folder of a template.")
        self._root = root
        self.paths = _below(names, root)

    def pieces(self, path: str) -> Iterator[bytes]:
        with Path(self._directory, self._root + path).open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece


def resolved(tree: Tree, beside: str, path: object) -> str:
    """The file that a file of the folder names by a path relative to itself. Raises `Invalid`."""
    found = folder_path(beside, path)
    if found not in tree.paths:
        raise Invalid(f"{beside}: names the file {str(path)[:200]!r}, which the folder does not have.")
    return found


def folder_path(beside: str, path: object) -> str:
    """A path of the folder that is given relative to one of its files."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(beside), str(path)))


def _root(names: Iterable[str]) -> str | None:
    """What stands before the paths of the folder: its file with the application is the one that lies highest."""
    found = [each for each in names if posixpath.basename(each) == APPLICATION and not _is_skipped(each)]
    best = min(found, key=lambda each: (each.count("/"), each), default=None)
    return None if best is None else best[: -len(APPLICATION)]


def _below(names: Iterable[str], root: str) -> frozenset[str]:
    below = (name[len(root) :] for name in names if name.startswith(root))
    return frozenset(name for name in below if name and not name.endswith("/") and not _is_skipped(name))


def _is_skipped(name: str) -> bool:
    return any(map(_is_hidden, name.split("/")))


def _is_hidden(part: str) -> bool:
    """What programs of desktops and of version control leave in folders."""
    return (part.startswith(".") and part not in (".", "..")) or part == "__MACOSX"


def _check_path(name: str) -> None:
    parts = name.removesuffix("/").split("/")
    if len(name) > _PATH_CHARS_MAX or "\\" in name or "\x00" in name or {"", ".", ".."}.intersection(parts):
        raise Invalid(f"importBundle: the entry {name[:100]!r} is not a path within a folder.")
