"""The partitions of a data directory: several stores, each of which one process serves.

Owns where they lie and how many there are. Partition 0, the root, is the data directory itself; it has the users, the
organizations and what belongs to them, and applications as well. Each further one has applications only. What is signed
and sealed, and the contents of files, are common to all of them.

    DIRECTORY/partitions/count    how many partitions there are, in decimal digits; no file: one
    DIRECTORY/partitions/switch   a change of their number that has begun and is not complete (`partition_switch.py`)
    DIRECTORY/partitions/shared   what processes tell each other while they run (`shared_numbers.py`)
    DIRECTORY/partitions/fresh    with a log: until when the stores are fresh (`freshness.py`)
    DIRECTORY/partitions/1/       the second partition: `lock`, `crash`, `store/` and `results/` as in DIRECTORY

While a change of their number is not complete, some stores are the new ones and some the old ones. So nothing is read
then: whoever asks how many there are is told the command that completes it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from trunkline.store.directory import has_data, write_private
from trunkline.store.errors import StoreBroken, StoreError, translate

FOLDER: Final = "partitions"
COUNT: Final = "count"
SWITCH: Final = "switch"
SHARED: Final = "shared"
FRESH: Final = "fresh"
MOVE: Final = "move"
"""The file that is locked while an application is moved, and while a backup is made of all partitions."""
PARTITIONS_MAX: Final = 64


def partition_directory(directory: Path, number: int) -> Path:
    """The directory of a partition of the data directory `directory`."""
    return directory / FOLDER / str(number) if number else directory


class Switch(NamedTuple):
    """A change of the number of partitions: the number before and after, and the results of jobs that move.

    Of each result the name, and the partition where it is and where it will be.
    """

    before: int
    after: int
    results: tuple[tuple[str, int, int], ...] = ()


def partition_count(directory: Path) -> int:
    """How many partitions a data directory has.

    Raises StoreBroken if that cannot be read, StoreError if a change of their number is not complete.
    """
    switch = switch_of(directory)
    if switch is not None:
        raise StoreError(
            f"The change of {directory} from {switch.before} to {switch.after} partitions was interrupted. To complete "
            f"it, run: trunkline partition --count {switch.after} --data {directory}"
        )
    return stored_count(directory)


@contextmanager
def without_moves(directory: Path) -> Iterator[None]:
    """While the body runs no application is moved. Waits for a move that goes on. Raises StoreBroken."""
    path = directory / FOLDER / MOVE
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # none ever was
        yield
        return
    except OSError as error:
        raise translate(error, f"opening of {path}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
    finally:
        os.close(file)


def check_partition(directory: Path, count: int, number: int) -> None:
    """Raise unless partition `number` of `count` can be opened: with all others, because each is read by all.

    None is ever made by opening it: the disk of one that is missing may not be mounted. Raises StoreError, StoreBroken.
    """
    if number >= count:
        raise StoreError(f"{directory} has no partition {number}: it has {count}, and they begin with 0.")
    for each in range(count) if count > 1 else ():
        place = partition_directory(directory, each)
        if not has_data(place):
            raise StoreBroken(
                f"{place} holds no store, and {directory} has {count} partitions. If it is on a disk of its own, mount "
                "that disk; otherwise restore a backup."
            )


def stored_count(directory: Path) -> int:
    """The same, also while a change is not complete: then the number before or after it. Raises StoreBroken."""
    path = directory / FOLDER / COUNT
    try:
        text = path.read_text("ascii")
    except FileNotFoundError:
        return 1
    except (OSError, UnicodeDecodeError) as error:
        raise translate(error, f"reading of {path}") from error
    count = int(text) if text.strip().isdecimal() else 0
    if not 1 <= count <= PARTITIONS_MAX:
        raise StoreBroken(f"{path} is damaged: it should hold a number from 1 to {PARTITIONS_MAX}.")
    return count


def switch_of(directory: Path) -> Switch | None:
    """The change of the number of partitions that is not complete; None if there is none. Raises StoreBroken."""
    path = directory / FOLDER / SWITCH
    try:
        before, after, results = json.loads(path.read_bytes())
        return Switch(int(before), int(after), tuple((str(n), int(a), int(b)) for n, a, b in results))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translate(error, f"reading of {path}") from error
    except (ValueError, TypeError) as error:
        raise StoreBroken(
            f"{path} is damaged: {error}. Restore the newest copy in {directory}/backups."
        ) from error


def write_switch(directory: Path, switch: Switch) -> None:
    """Note a change that begins now. On disk when this returns. Raises OSError."""
    (directory / FOLDER).mkdir(mode=0o700, exist_ok=True)
    write_private(directory / FOLDER / SWITCH, json.dumps(switch).encode())


def write_partition_count(directory: Path, count: int) -> None:
    """Say how many partitions a data directory has. On disk when this returns. Raises OSError."""
    (directory / FOLDER).mkdir(mode=0o700, exist_ok=True)
    write_private(directory / FOLDER / COUNT, b"%d\n" % count)
