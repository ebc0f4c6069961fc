"""What the disk has changed at rest: after the last life of some runs, a server starts on a copy with damaged bytes.

It may refuse to start, or refuse a call, and says so. What it answers must be what the last life has answered. Only a
disk that has not written what it said was synced may take it back: then it may be as it was before, or not be there.

Owns the damage, and the comparison. Does not own what is right: the last life, which all looks have seen.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from tests.simulation import machine
from tests.simulation.disk import PAGE, SECTOR
from tests.simulation.life import Life
from tests.simulation.model import Broken
from tests.simulation.network import Network
from trunkline.store.errors import StoreBroken, StoreDamaged
from trunkline.store.partitions import partition_directory

Said = Mapping[str, tuple[int, bytes]]
"""Answers by path."""
LOST: Final = "lost writes"
"""The disk has written the pages that make commits valid, and of the others not all that it said were synced."""
_METAS: Final = 2
"""The pages at the beginning: of their bits one is not found when it is flipped (docs/guides/operating.md)."""
_READ: Final = re.compile(r" GET (\S+): 200")
_STEADY: Final = re.compile(
    r"/(keys\?perPage=\d+|(devices/\w+/(state|command)|data-tables/\w+/rows)\?limit=1000(&sortDirection=asc)?)$"
)


def partition_of(world: Any) -> int:
    """The partition whose store is damaged at the end of a run."""
    return Random(f"{world.seed} damaged partition").randrange(world.partitions)


async def live(world: Any, before: Said, here: Path, there: Path, older: bytes) -> None:
    """A life on what another one has left, of which the disk has changed something. `before` is what that has said.

    `older` is the file of the store as it was earlier, empty if that is not known.
    """
    chance = Random(f"{world.seed} damage")
    shutil.copytree(here, there, ignore=shutil.ignore_patterns("lock", "control.sock", "crash"))
    how = damage(partition_directory(there, partition_of(world)) / "store" / "data.mdb", chance, older)
    disk = machine.disks_of(world, there, chance, first=False)
    network = Network(Random(f"{world.seed} network damaged"), world.reached)
    found = "refused at the start"
    try:
        async with machine.started(world, "damaged", disk, network, chance) as life:
            after = await said(life, world.token, before)
            found = compared(before, after, how) if how != LOST else known(world, before, after)
    except* (StoreDamaged, StoreBroken):
        pass
    world.reached[f"damage was {found}"] += 1
    world.note(f"damage ({how}) was {found}")


def steady(trace: Iterable[str]) -> list[str]:
    """What has been read that no background task and no clock changes."""
    return sorted({path for path in _READ.findall("\n".join(trace)) if _STEADY.search(path)})


async def said_before(world: Any) -> Said:
    """What the last life of a run answers, to be compared."""
    with world.nobody_leaves():
        return await said(world.life, world.token, steady(world.trace))


async def said(life: Life, token: str, asked: Iterable[str]) -> Said:
    """What the server answers."""
    answers = {path: await life.call("GET", path, token=token) for path in asked}
    return {path: (answer.status, answer.raw) for path, answer in answers.items() if answer is not None}


def damage(file: Path, chance: Random, older: bytes = b"") -> str:
    """Change some bytes of the file of a store as a bad disk does. Returns how."""
    content = bytearray(file.read_bytes())
    pages = range(_METAS, len(content) // PAGE)
    at = chance.choice(pages) * PAGE
    how = chance.choice(
        ("a bit", "five bits", "a sector of zeros", "a sector", "a page of zeros", "another page", LOST, LOST)
    )
    if how == LOST and not older:
        how = "a bit"
    match how:
        case "a bit" | "five bits":
            for _ in range(1 if how == "a bit" else 5):
                content[chance.choice(pages) * PAGE + chance.randrange(PAGE)] ^= 1 << chance.randrange(8)
        case "a sector of zeros" | "a sector":
            at += chance.randrange(PAGE // SECTOR) * SECTOR
            content[at : at + SECTOR] = (
                bytes(SECTOR) if how == "a sector of zeros" else chance.randbytes(SECTOR)
            )
        case "a page of zeros":
            content[at : at + PAGE] = bytes(PAGE)
        case "another page":
            other = chance.choice(pages) * PAGE
            content[at : at + PAGE] = content[other : other + PAGE]
        case _:
            share = chance.choice((0.02, 0.2, 1.0))
            for at in (page * PAGE for page in pages):
                if content[at : at + PAGE] != older[at : at + PAGE] and chance.random() < share:
                    content[at : at + PAGE] = older[at : at + PAGE].ljust(PAGE, b"\0")
    file.write_bytes(content)
    return how


def known(world: Any, before: Said, after: Said) -> str:
    """Raise `Broken` if an answer shows what nobody has sent. Returns what became of the loss."""
    refused = changed = False
    for path, (status, raw) in after.items():
        refused |= status >= 500
        changed |= status < 500 and (status, raw) != before[path]
        if status == 200:
            strays = world.strays(path, msgspec.json.decode(raw))
            if strays:
                raise Broken(f"damage ({LOST}): {path} has {strays}, which nobody has sent")
    return "refused by a read" if refused else "not noticed: writes were lost" if changed else "harmless"


def compared(before: Said, after: Said, how: str) -> str:
    """Raise `Broken` if an answer is another one than before. Returns whether the damage was found."""
    refused = False
    for path, (status, raw) in after.items():
        if status >= 500:
            refused = True
        elif (status, raw) != before[path]:
            raise Broken(
                f"damage ({how}): {path} is {status} {raw[:300]!r}; before, it was {before[path][0]} "
                f"{before[path][1][:300]!r}"
            )
    return "refused by a read" if refused else "harmless"
