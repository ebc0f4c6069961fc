"""GetValueNode and StoreValueNode: the storage entries of the workflow are read and changed.

`keyName` is the key of an entry. `valueType` says what is stored: "template" the text of `value`, "json" its JSON,
"number" its number, "path" the value at that payload path, "incr" and "decr" the number of the entry plus or minus that
of `value` (1 if it is not set), in one step also where several runs do so; "clear" removes the entry, as does a path to
nothing. `resultPath` gets what is stored then.

`valuePath` gets the value of the entry, or `defaultValue` (`defaultValueType` "template", "json", "number" or "path");
without a default the path is removed. With `getAll` it gets an object with all entries. A custom node has the entries
of the workflow that uses it.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.bodies import body_of, check_kept, json_reader
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    RESULT,
    ChoiceSetting,
    Config,
    FlagSetting,
    MixedSetting,
    PathSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Reader,
    choice_of,
    is_on,
    needed_path,
    needed_text_reader,
    number_reader,
    path_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.workflows.flows.bodies import StorageEntry
from trunkline.actors.workflows.flows.messages import GetStorage
from trunkline.actors.workflows.flows.storage import stored_entry
from trunkline.actors.workflows.flows.storage_messages import AddToStorageEntry, SetStorageEntry

_TYPES: Final = ("template", "json", "number", "path")
_KEY_CHARS_MAX: Final = 255
"""That of a `StorageEntry`."""
_KEY_NAME: Final = TemplateSetting("keyName", is_needed=True)
_VALUE_TYPE: Final = ChoiceSetting("valueType", *_TYPES, "incr", "decr", "clear")
_VALUE: Final = MixedSetting("value")
_VALUE_PATH: Final = PathSetting("valuePath")
_READ_KEY: Final = TemplateSetting("keyName")
_GET_ALL: Final = FlagSetting("getAll")
_DEFAULT_VALUE: Final = MixedSetting("defaultValue")
_DEFAULT_VALUE_TYPE: Final = ChoiceSetting("defaultValueType", *_TYPES)
_RESULT: Final = PathSetting("valuePath", is_needed=True)


def _store(config: Config) -> NodeStep:
    key, result = needed_text_reader(config, _KEY_NAME), path_of(config, RESULT)
    kind = choice_of(config, _VALUE_TYPE)
    if kind in ("incr", "decr"):
        amount = number_reader(config, _VALUE) or (lambda _visit: 1)
        sign = 1 if kind == "incr" else -1

        async def count(visit: Visit, name: str, number: float) -> int:
            _check_key(name)
            total = await visit.ask_flow(AddToStorageEntry(key=name, number=sign * number))
            visit.put(result, total)
            return 0

        return lambda visit: count(visit, key(visit), amount(visit))
    if kind == "clear":
        read: Reader = lambda _visit: UNDEFINED  # noqa: E731
    elif kind == "path" and not config[_VALUE]:
        path = needed_path(config, _VALUE_PATH)
        read = lambda visit: path.get(visit.payload)  # noqa: E731
    else:
        read = _value_reader(config, _VALUE, kind)

    async def set_entry(visit: Visit, name: str, value: Any) -> int:
        _check_key(name)
        entry = {"key": name} if value is UNDEFINED else {"key": name, "value": value}
        check_kept(visit, value)
        body = body_of(StorageEntry, entry, "keyName")
        await visit.ask_flow(SetStorageEntry(body=body))
        visit.put_or_remove(result, value)
        return 0

    return lambda visit: set_entry(visit, key(visit), read(visit))


def _check_key(name: str) -> None:
    if not 1 <= len(name) <= _KEY_CHARS_MAX:
        raise refused(
            f"config.keyName: gives a key of {len(name)} characters; a key has 1 to {_KEY_CHARS_MAX}."
        )


def _get(config: Config) -> NodeStep:
    path = needed_path(config, _RESULT)
    if is_on(config, _GET_ALL):

        async def get_all(visit: Visit) -> int:
            world = visit.world
            visit.put(path, await visit.read(GetStorage(application=world.application, flow=world.flow)))
            return 0

        return get_all
    key = needed_text_reader(config, _READ_KEY)
    kind = choice_of(config, _DEFAULT_VALUE_TYPE)
    has_default = config[_DEFAULT_VALUE] not in (None, "")
    default = _value_reader(config, _DEFAULT_VALUE, kind) if has_default else lambda _visit: UNDEFINED

    def get(visit: Visit) -> int:
        world = visit.world
        entry = stored_entry(world.system.journal.get, world.application, world.flow, key(visit))
        visit.put_or_remove(path, default(visit) if entry is None else entry.value)
        return 0

    return get


def _value_reader(config: Config, setting: MixedSetting, kind: str) -> Reader:
    """Reads a value as the type of its field says."""
    if kind == "path":
        path = needed_path(config, setting)
        return lambda visit: path.get(visit.payload)
    if kind == "json":
        return json_reader(config, setting)
    if kind == "number":
        needed_text_reader(config, setting)
        number = number_reader(config, setting)
        assert number is not None
        return number
    return text_reader(config, setting)


TYPES: Final[dict[str, NodeType]] = {
    "StoreValueNode": NodeType(
        _store, Form("data", (_KEY_NAME, _VALUE_TYPE, _VALUE, _VALUE_PATH, RESULT)), WRITES
    ),
    "GetValueNode": NodeType(
        _get, Form("data", (_READ_KEY, _GET_ALL, _DEFAULT_VALUE, _DEFAULT_VALUE_TYPE, _RESULT)), WRITES
    ),
}
