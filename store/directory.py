"""The data directory: its lock, and the secret that signs tokens.

Owns the lock that keeps a second process out, the directory's mode, and the secret. Does not own the
subfolders of other modules (`store/` belongs to LMDB, `backups/` to the migrations).

The lock is a `flock`: the kernel releases it when the process ends, in whatever way, so no stale lock remains.
The process id in the file is only for messages. The file is never removed, because a process that waits for a
removed file would get a lock that no other process can see.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import secrets
import shutil
import stat
from pathlib import Path
from types import TracebackType

from trunkline.store.errors import (
    BackupRefused,
    DirectoryInUse,
    SecretExposed,
    SecretMissing,
    StoreBroken,
    StoreError,
    translate,
)

LOCK = "lock"
SECRET = "secret"  # noqa: S105 - the name of the file
SECRET_BYTES = 32
STORE = "store"
"""The folder of LMDB's files in a data directory and in a backup."""
LAST_BACKUP = "last-backup"
"""An empty file; its time of change is when the last backup of the directory was complete."""
CONTENTS = "contents"
"""The folder of the contents of files in a data directory and in a backup."""
DATA_FILE = "data.mdb"
"""The file in it that holds all data."""
LOCK_FILE = "lock.mdb"
"""The file in it in which LMDB notes who reads and who writes."""
KEYS_FILE = "encryption-keys"
"""The file of the keys that seal stored secrets, unless it is elsewhere."""
LOST_AND_FOUND = "lost+found"
"""The folder that a file system makes at its root."""
MANIFEST = "manifest.json"
"""The file that only a backup has."""
_FIRST_WRITE_BYTES = 2 * mmap.PAGESIZE
"""LMDB begins a file with its two meta pages."""
_TRACES = (f"{CONTENTS}/drafts", "results/drafts", LAST_BACKUP, MANIFEST)
"""What no directory has before its store was first on disk. The secret and the keys are no trace: a machine of a server
with a log begins with both."""
_PREPARED = frozenset(
    {STORE, CONTENTS, KEYS_FILE, "results", "outbox", "archives", "backups", "partitions", LOST_AND_FOUND}
)
"""What a new directory may hold, where parts of it are on disks of their own."""
_OWNER_ONLY = 0o600
COPIES_MAX = 1000


class DataDirectory:
    """A data directory that this process has locked, until `close` or the end of the process."""

    __slots__ = ("_lock", "_made", "common", "path")

    def __init__(self, path: Path, common: Path, lock: int, made: list[Path]) -> None:
        self.path = path
        self.common = common
        """Where the secret and the mark of the last backup are: another directory for a partition (`partitions.py`)."""
        self._lock: int | None = lock
        self._made = made

    @classmethod
    def open(cls, path: Path, *, common: Path | None = None) -> DataDirectory:
        """Create the directory if it is missing, set its mode to 0700 and lock it.

        `common` is the directory that has the secret, if it is another one.

        Raises DirectoryInUse if another process has locked it, StoreError if it holds other things, StoreBroken if it
        cannot be used.
        """
        made: list[Path] = []
        try:
            made = _make(path)
            if not made:
                _check_own(path)
            if stat.S_IMODE(path.stat().st_mode) != 0o700:
                path.chmod(0o700)
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        except OSError as error:
            _remove(made)
            raise translate(error, f"opening of the data directory {path}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise DirectoryInUse(_in_use(path)) from error
        except OSError as error:
            os.close(lock)
            raise translate(error, f"locking of the data directory {path}") from error
        with contextlib.suppress(OSError):  # on a full disk reads and deletions work
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return cls(path, common or path, lock, made)

    def sync(self) -> None:
        """Make the names of the folders and files in it durable, and its own, and those above it that were made.

        Otherwise a power cut after the first start may lose all of them, with what was written and synced in them.
        """
        try:
            for folder in (self.path / STORE, self.path, *(made.parent for made in self._made)):
                sync_directory(folder)
        except OSError as error:
            raise translate(error, f"syncing of the data directory {self.path}") from error

    @staticmethod
    def is_held(path: Path) -> bool:
        """Whether a process has locked the directory at `path`."""
        try:
            probe = os.open(path / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(probe)
        return False

    def secret(self) -> bytes:
        """Return the secret, 32 random bytes.

        Raises SecretMissing if there is none, SecretExposed if others may read the file or if it is damaged: a
        secret that others may know is worse than none, and only the operator can decide what to do.
        """
        path = self.common / SECRET
        try:
            text = read_private(path, 4 * SECRET_BYTES)
        except FileNotFoundError:
            raise SecretMissing(missing_secret(self.common)) from None
        try:
            secret = bytes.fromhex(text.decode("ascii"))
        except ValueError:
            secret = b""
        if len(secret) != SECRET_BYTES:
            raise SecretExposed(f"{path} is damaged: it should hold {2 * SECRET_BYTES} hexadecimal digits.")
        return secret

    def require_secret(self, *, new: bool) -> None:
        """Create the secret of a `new` directory. Raises SecretMissing if another one has none.

        A new secret in place of a lost one would make all tokens invalid, and those of devices never expire. So
        only the operator makes one.
        """
        if not new:
            check_secret(self.common)
        elif not os.path.lexists(self.common / SECRET):
            self.rotate_secret()

    def rotate_secret(self) -> bytes:
        """Replace the secret by a new one and return that. Everything signed with the old one becomes invalid."""
        secret = secrets.token_bytes(SECRET_BYTES)
        try:
            write_private(self.common / SECRET, secret.hex().encode() + b"\n")
        except OSError as error:
            raise translate(error, f"writing of {self.common / SECRET}") from error
        return secret

    def keep(self) -> None:
        """From now on `discard` removes nothing: somebody relies on what the directory holds."""
        self._made = []

    def discard(self) -> None:
        """Remove the directory and its parents if `open` made them, unless `keep` was called.

        For a first start that fails: it leaves nothing behind. Call it while the directory is locked.
        """
        _remove(self._made)
        self._made = []

    def last_backup_s(self) -> float:
        """When the last backup of this directory was complete, in seconds since 1970; 0 if there was none."""
        try:
            return (self.common / LAST_BACKUP).stat().st_mtime
        except OSError:
            return 0.0

    def close(self) -> None:
        """Unlock the directory. Idempotent."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            with contextlib.suppress(OSError):
                os.ftruncate(lock, 0)
            os.close(lock)

    def __enter__(self) -> DataDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def data_file(path: Path) -> Path:
    """The file that holds the data of the data directory or backup at `path`."""
    return path / STORE / DATA_FILE


def has_data(path: Path) -> bool:
    """Whether the directory at `path` holds a store, be it damaged. Raises StoreBroken if that cannot be seen.

    A file that is shorter than LMDB's first write was cut off, or a first start was ended while it wrote that. Then
    there is nothing yet of what a start makes after it.
    """
    try:
        size_bytes = data_file(path).stat().st_size
    except FileNotFoundError:
        return False
    except OSError as error:
        raise translate(error, f"opening of {data_file(path)}") from error
    if size_bytes >= _FIRST_WRITE_BYTES:
        return True
    return size_bytes > 0 and any(os.path.lexists(path / name) for name in (CONTENTS, KEYS_FILE, MANIFEST))


def check_not_lost(path: Path) -> None:
    """Raise StoreBroken if a directory that holds no store has had one: a new one would hide the loss."""
    if any(os.path.lexists(path / name) for name in _TRACES):
        raise StoreBroken(
            f"{path} has had data, and {data_file(path)} is missing or empty. If {STORE} is on a disk of its own, "
            "mount that disk; otherwise restore a backup. To begin without data, name another directory."
        )


def unused_path(parent: Path, name: str) -> Path:
    """A path that does not exist: an earlier attempt may have left a copy, and copies are never overwritten.

    Raises BackupRefused if there are too many.
    """
    for number in range(COPIES_MAX):
        path = parent / (f"{name}-{number}" if number else name)
        if not path.exists():
            return path
    raise BackupRefused(
        f"{parent} is full of copies of failed attempts, such as {name}. Look into why they fail."
    )


def remove_begun(path: Path) -> None:
    """Remove what there is of the file of a directory that has no data. Raises StoreBroken."""
    try:
        data_file(path).unlink(missing_ok=True)
    except OSError as error:
        raise translate(error, f"removal of {data_file(path)}") from error


def check_secret(path: Path) -> None:
    """Raise SecretMissing if a data directory that has data has no secret."""
    if not os.path.lexists(path / SECRET):
        raise SecretMissing(missing_secret(path))


def missing_secret(path: Path) -> str:
    """The sentence for a data directory at `path` that has data, but no secret."""
    return (
        f"{path} has data but no file `{SECRET}`, which signs all tokens. Copy that file from where the data "
        f"came from; a backup has it. If it is lost, run: trunkline secret rotate --data {path} (all users and "
        "devices must then log in again)."
    )


def read_private(path: Path, bytes_max: int) -> bytes:
    """Read a file that only its owner may read. Raises FileNotFoundError, SecretExposed or StoreBroken."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise translate(error, f"reading of {path}") from error
    with open(file, "rb") as stream:  # noqa: PTH123 - a descriptor, so that mode and content are of the same file
        mode = stat.S_IMODE(os.fstat(file).st_mode)
        content = stream.read(bytes_max)
    if mode & 0o077:
        raise SecretExposed(
            f"{path} may be read by others (mode {mode:04o}). If nobody did, run: chmod 600 {path}; "
            "otherwise replace what it holds: trunkline secret --help."
        )
    return content


def write_private(path: Path, content: bytes) -> None:
    """Write, atomically, a file that only its owner may read. It is on disk when this returns."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY)
    try:
        with open(file, "wb") as stream:  # noqa: PTH123 - a descriptor that was created with its mode
            stream.write(content)
            stream.flush()
            os.fsync(file)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # why the writing failed says more
            draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the entries of a directory durable (fsync)."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _make(path: Path) -> list[Path]:
    """Make the directory and its parents. Returns those that were missing, the deepest first."""
    missing = [path, *(parent for parent in path.parents if not parent.exists())]
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise
        return []
    return missing


def _check_own(path: Path) -> None:
    """Raise StoreError for a directory of other things, which must not be closed to others, nor be mixed with ours.

    A new one may also have what a new home has, and a configuration file.
    """
    if (path / LOCK).is_file() or os.path.lexists(path / SECRET) or data_file(path).exists():
        return
    for name in sorted(os.listdir(path)):  # noqa: PTH208 - only the names
        if name not in _PREPARED and not name.startswith(".") and not name.endswith(".toml"):
            raise StoreError(
                f"{path} is not a data directory, and is not empty: it holds {name}. Name an empty directory, or one "
                "that does not exist."
            )


def _remove(made: list[Path]) -> None:
    for path in made[:1]:
        shutil.rmtree(path, ignore_errors=True)
    for parent in made[1:]:
        with contextlib.suppress(OSError):  # somebody else uses it by now
            parent.rmdir()


def _read_pid(path: Path) -> int | None:
    try:
        return int((path / LOCK).read_text())
    except (OSError, ValueError):
        return None


def _in_use(path: Path) -> str:
    pid = _read_pid(path)
    holder = f"process {pid}" if pid is not None else "another process"
    return (
        f"The data directory {path} is in use by {holder}. Stop that one first, or choose another directory."
    )
