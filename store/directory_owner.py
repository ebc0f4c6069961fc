"""Who may use a data directory: whether this process may, and the user whose server uses it.

Owns the sentences for whoever is the wrong user. Does not own the lock, nor the modes that a start sets
(`directory.py`).
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from trunkline.store.directory import STORE, data_file
from trunkline.store.errors import StoreBroken, StoreError, translate


def check_access(path: Path) -> None:
    """Raise StoreBroken unless this process may read the data directory at `path`. Nothing if there is none."""
    for place in (path, path / STORE, data_file(path)):
        try:
            found = place.stat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise translate(error, f"opening of {place}") from error
        is_file = place == data_file(path)
        if not is_file and not stat.S_ISDIR(found.st_mode):
            raise StoreBroken(f"{place} is a file, not a directory. Name a data directory.")
        if os.access(place, os.R_OK if is_file else os.R_OK | os.X_OK):
            continue
        if found.st_uid == os.geteuid():
            mode = stat.S_IMODE(found.st_mode)
            raise StoreBroken(
                f"{place} may not be read by its owner (mode {mode:04o}). Run: chmod u+rwX {place}"
            )
        raise StoreBroken(
            f"{place} belongs to {_name(found.st_uid)}, and {_name(os.geteuid())} may not read it. "
            f"{_as_user(found.st_uid)}"
        )


def check_owner(path: Path) -> None:
    """Raise StoreError if the data in a directory are another user's, whose server could not read what we write.

    A server is not asked: in a container it may run as another user than the one to whom a volume belongs.
    """
    try:
        owner = data_file(path).stat().st_uid
    except OSError:  # whoever opens it tells more
        return
    if owner != os.geteuid():
        raise StoreError(
            f"The data in {path} belong to {_name(owner)}, whose server could not read what {_name(os.geteuid())} "
            f"writes there. {_as_user(owner)}"
        )


def _as_user(uid: int) -> str:
    return f"Run the command as that user: sudo -u {_name(uid)} trunkline ..."


def _name(uid: int) -> str:
    """The name of a user, in the form that sudo knows."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"'#{uid}'"
