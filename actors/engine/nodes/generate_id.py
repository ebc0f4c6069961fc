"""GenerateIdNode: makes an id: `uuidv1`, `uuidv3`, `uuidv4`, `uuidv5`, `objectId` or `nanoid`.

Ids come from the time and the random numbers of the run, so a run that is repeated has the same ids. `uuidv3` and
`uuidv5` hash `valueTemplate` in the namespace `namespaceTemplate`, a UUID. A nanoid has `numCharactersTemplate`
characters, 21 if it is not set.
"""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters, digits
from typing import Final
from uuid import UUID, uuid3, uuid5

from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import VALUE, Config, NumberSetting, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import needed_path, number_reader, shortened, text_reader
from trunkline.actors.engine.visit import NodeStep, Run, Visit, refused

TYPE: Final = "GenerateIdNode"

_ID_TYPE: Final = TemplateSetting("idTypeTemplate")
_NAMESPACE: Final = TemplateSetting("namespaceTemplate")
_NUM_CHARACTERS: Final = NumberSetting("numCharactersTemplate")
_DESTINATION_PATH: Final = PathSetting("destinationPath", is_needed=True)
FORM: Final = Form("logic", (_ID_TYPE, _NAMESPACE, VALUE, _NUM_CHARACTERS, _DESTINATION_PATH))

NANOID_CHARS: Final = 21
NANOID_CHARS_MAX: Final = 256

_ALPHABET: Final = ascii_letters + digits + "_-"
_TICKS_PER_MS: Final = 10_000
_TICKS_TO_1970: Final = 0x01B21DD213814000
"""Units of 100 ns from 15 October 1582 to 1970: the time of a UUID of version 1 counts from there (RFC 9562, 5.1)."""
_GROUP: Final = 0x010000000000
"""The bit of a node that is no address of a network card (RFC 9562, 6.10)."""


def prepare(config: Config) -> NodeStep:
    kind, destination = text_reader(config, _ID_TYPE), needed_path(config, _DESTINATION_PATH)
    namespace, value = text_reader(config, _NAMESPACE), text_reader(config, VALUE)
    length = number_reader(config, _NUM_CHARACTERS)

    def hashed(hash_in: Callable[[UUID, str], UUID], visit: Visit) -> str:
        written, name = namespace(visit).strip(), value(visit)
        if not name:
            raise refused("config.valueTemplate: gives nothing; a UUID of this kind needs a value.")
        try:
            within = UUID(written)
        except ValueError:
            raise refused(f"config.namespaceTemplate: gives {shortened(written)}, not a UUID.") from None
        return str(hash_in(within, name))

    def nanoid(visit: Visit) -> str:
        characters = NANOID_CHARS if length is None else length(visit)
        if not 1 <= characters <= NANOID_CHARS_MAX:
            raise refused(
                f"config.numCharactersTemplate: gives {characters}; an id has 1 to {NANOID_CHARS_MAX} characters."
            )
        return "".join(visit.run.random.choices(_ALPHABET, k=int(characters)))

    makers: dict[str, Callable[[Visit], str]] = {
        "uuidv1": lambda visit: _by_time(visit.run),
        "uuidv3": lambda visit: hashed(uuid3, visit),
        "uuidv4": lambda visit: str(UUID(int=visit.run.random.getrandbits(128), version=4)),
        "uuidv5": lambda visit: hashed(uuid5, visit),
        "objectid": lambda visit: _object_id(visit.run),
        "nanoid": nanoid,
    }

    def step(visit: Visit) -> int:
        wanted = kind(visit).strip() or "uuidv4"
        make = makers.get(wanted.lower())
        if make is None:
            raise refused(
                f"config.idTypeTemplate: gives {shortened(wanted)}; give one of uuidv1, uuidv3, uuidv4, uuidv5, "
                "objectId, nanoid."
            )
        visit.put(destination, make(visit))
        return 0

    return step


def _by_time(run: Run) -> str:
    """A UUID of version 1. The ticks within the millisecond, the sequence and the node are random."""
    ticks = run.now_ms * _TICKS_PER_MS + _TICKS_TO_1970 + run.random.randrange(_TICKS_PER_MS)
    low, middle, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF
    sequence, node = run.random.getrandbits(14), run.random.getrandbits(48) | _GROUP
    return str(UUID(fields=(low, middle, high, sequence >> 8, sequence & 0xFF, node), version=1))


def _object_id(run: Run) -> str:
    """24 hexadecimal digits: the seconds, and random numbers."""
    return f"{run.now_ms // 1000 & 0xFFFFFFFF:08x}{run.random.getrandbits(64):016x}"
