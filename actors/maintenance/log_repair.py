"""What an operator decides where a log cannot go on: which machine's data a new log begins with, and who follows it.

Owns both decisions, which are made on the directory of a stopped machine: `begin_again` and `rejoin`. Nothing makes a
log again by itself, or drops what a machine has: the log may have had what no machine has, and one machine what
another one has not.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final

from trunkline.actors.maintenance.log_connection import answered_within, log_of, opened_to_follow
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store.directory import STORE, DataDirectory, has_data, sync_directory, unused_path
from trunkline.store.errors import LogUnreachable, StoreBroken, translate
from trunkline.store.follower import chain_of
from trunkline.store.log_groups import forget_log
from trunkline.store.log_nodes import Word, heard
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.partitions import COUNT, FOLDER, partition_count, partition_directory
from trunkline.store.store_files import opened_read_only

ANSWER_S: Final = 5.0
"""How long the log is asked which one it is."""
LISTEN_S: Final = 3.0
"""How long machines are listened for: each speaks four times a second."""


async def standing(settings: Settings) -> tuple[list[str], LogUnreachable | None]:
    """A sentence for each partition of a data directory that tells how far it has which log, and why the log could not
    be asked. Raises StoreError."""
    found, directory, unreachable = [], Path(settings.data_dir), None
    async with log_of(settings) as log_place:
        try:
            stream = await answered_within(ANSWER_S, log_place.log.look)
            identity, problem = ("", "It does not exist.") if stream is None else (stream.identity, "")
        except LogUnreachable as error:
            identity, problem, unreachable = "", "", error
        except StoreBroken as error:
            identity, problem = "", str(error)
    if problem:
        found.append(f"The log {log_place.log.name}: {problem}")
    for number in range(partition_count(directory)):
        place = partition_directory(directory, number)
        with opened_read_only(place) as memory_map:
            chain = chain_of(memory_map, number)
        if not chain.place:
            found.append(f"{place} was written without a log.")
            continue
        which = "the log" if chain.log == identity else "a log before the present one"
        found.append(
            f"{place} has {which if identity else 'a log'} ({chain.log[:8]}) up to message {chain.place}, of epoch "
            f"{chain.epoch}, in which {chain.owner} served."
        )
    return found, unreachable


async def begin_again(settings: Settings) -> str:
    """Remove the log, so that the next start of this machine begins one with its data; returns the name of the log.

    Raises SettingsError while any machine of the log runs, and StoreError.
    """
    with ExitStack() as stack:
        stores = [
            stack.enter_context(opened_to_follow(settings, number, ends_log=True))
            for number in range(partition_count(Path(settings.data_dir)))
        ]
        async with log_of(settings) as place:
            machines = await _heard(place.connection, place.nodes(0))
            if machines:
                running = ", ".join(sorted(machines))
                raise SettingsError(
                    "cluster new-log", f"is refused while machines run: {running}", "stop all of them first"
                )
            await place.log.remove()
        for store in stores:
            forget_log(store.memory_map)
        return place.log.name


async def rejoin(settings: Settings) -> Path:
    """Put the stores of this machine aside, so that its next start gets a copy; returns where they are now.

    Raises SettingsError unless a machine is heard that serves the data, and StoreError.
    """
    directory = Path(settings.data_dir)
    with DataDirectory.open(directory):
        if not has_data(directory):
            raise SettingsError(settings.data_dir, "has no data", "start it: it gets a copy")
        async with log_of(settings) as place:
            machines = await _heard(place.connection, place.nodes(0))
        if not any(each.is_owner for each in machines.values()):
            raise SettingsError(
                "cluster rejoin",
                "is refused while no machine is heard that serves the data",
                "start the one that has all of them first",
            )
        aside = unused_path(directory / "backups", "before-rejoin")
        count = partition_count(directory)
        try:
            aside.mkdir(mode=0o700, parents=True)
            # The root goes first: a directory without it is filled anew at the next start (`joining.py`).
            for number in range(count):
                there = partition_directory(aside, number)
                there.mkdir(mode=0o700, parents=True, exist_ok=True)
                (partition_directory(directory, number) / STORE).rename(there / STORE)
            if count > 1:
                (directory / FOLDER / COUNT).rename(aside / FOLDER / COUNT)
            for each in (aside, aside.parent, directory):
                sync_directory(each)
        except OSError as error:
            raise translate(error, f"renaming of {directory / STORE}") from error
    return aside


async def _heard(connection: NatsConnection, subject: str) -> dict[str, Word]:
    """The machines that are there. Raises StoreError where the log cannot be reached."""
    try:
        return await heard(connection, subject, LISTEN_S)
    except LogUnreachable as problem:
        raise StoreBroken(f"Nobody can say which machines run. {problem}") from None
