"""Bodies of messages, made of what the configuration and the payload of a node give.

Each sentence names the field of the configuration. A query that finds what is to be read may have the empty arrays of
an editor (`core/query/text.py`). Elsewhere they are refused, as by the API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.json_values import (
    DECODED_A_STEP,
    count_values,
    json_encoded,
    json_value,
    values_at_most,
)
from trunkline.actors.core.formulas.price import computed, spend
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.query.text import as_edited
from trunkline.actors.core.values.errors import Crashed, DomainError, Invalid, Overloaded, StorageFull
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.engine.copies import size_of
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import INLINE_BYTES_MAX
from trunkline.actors.engine.settings import ChoiceSetting, Config, LongMixedSetting, Setting, TemplateSetting
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    needed_path,
    needed_text_reader,
    shortened,
    template_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import Visit, refused

BODY_BYTES_MAX: Final = 1024 * 1024
"""Bytes of a body that a node makes, as of a call. It is decoded at once, in a thread if it is long."""
QUERY_BYTES_MAX: Final = 131_072
"""About the bytes of an advanced query that a node makes: what its conditions may have, and few keys at its top."""
BODY_VALUES_MAX: Final = 20_000
"""Values of such a body, as of a call with one record by default. Actors take it as it is, and store it in the loop."""
BULK_VALUES_MAX: Final = 100_000
"""The same of a body that may be a list of records, which are stored one by one."""


def body_of(type: Any, value: Any, field: Setting | str, values_max: int = BODY_VALUES_MAX) -> Any:
    """A value as a body of this type, as if it came as JSON. Raises `NodeError` that names the field."""
    try:
        if size_of(value, INLINE_BYTES_MAX) <= INLINE_BYTES_MAX:
            return _decoded(type, msgspec.json.encode(value), value)
        return computed(_body, type, value, values_max)
    except Invalid as problem:
        raise refused(f"config.{field}: {problem.message}") from None
    except (UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise refused(f"config.{field}: {error}.") from None


def check_kept(visit: Visit, value: Any) -> None:
    """Refuse a value that is far too large to be kept by the workflow, before it is encoded to be counted exactly."""
    most = visit.world.system.limits.flow_storage_value_bytes_max
    if size_of(value, 4 * most) > 4 * most:
        raise refused(f"A workflow keeps values of at most {most} bytes as JSON; this one has far more.")


def _body(type: Any, value: Any, values_max: int) -> Any:
    text = json_encoded(value)
    if len(text) > BODY_BYTES_MAX:
        raise Invalid(f"has {len(text)} bytes as JSON; at most {BODY_BYTES_MAX} are taken.")
    if type is Any:
        spend(len(text) // DECODED_A_STEP)
        return json_value(text)
    if values_at_most(text) > values_max and (count := count_values(text)) > values_max:
        raise Invalid(f"has {count} values as JSON; at most {values_max} are taken.")
    spend(len(text) // DECODED_A_STEP)
    return _decoded(type, text, value)


def _decoded(type: Any, text: str | bytes, value: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=type)
    except msgspec.ValidationError as error:
        raise invalid(error, "body", type, value) from None


def json_reader(config: Config, setting: TemplateSetting) -> Callable[[Visit], Any]:
    """Reads a field whose template gives JSON. `Unusable` if it is not set."""
    template = template_of(config, setting)
    if template is None:
        raise Unusable(f"{config.place(setting)}: is not set; give a template that gives JSON.")

    def read(visit: Visit) -> Any:
        try:
            return template.json(visit.payload, visit.run.now_ms)
        except EvaluationError as error:
            raise NodeError("InvalidJsonTemplate", f"{config.place(setting)}: {error}") from None

    return read


def query_reader(
    config: Config, setting: TemplateSetting, *, empty_is_all: bool = True
) -> Callable[[Visit], dict[str, Any]]:
    """Reads a field whose template gives an advanced query."""
    json = json_reader(config, setting)

    def read(visit: Visit) -> dict[str, Any]:
        query = json(visit)
        if not isinstance(query, dict):
            raise refused(f"config.{setting}: gives {shortened(query)}, not a query, which is an object.")
        if size_of(query, QUERY_BYTES_MAX) > QUERY_BYTES_MAX:
            raise refused(f"config.{setting}: gives a query of more than {QUERY_BYTES_MAX} bytes as JSON.")
        if not empty_is_all:
            return query
        edited: dict[str, Any] = as_edited(query)
        return edited

    return read


def id_of(text: Any, field: Setting | str) -> bytes:
    """An id that a field gives. Raises `NodeError` that names the field."""
    if not isinstance(text, str) or not is_id(text):
        raise refused(f"config.{field}: gives {shortened(text)}, not an id of 24 hexadecimal digits.")
    return bytes.fromhex(text)


def id_reader(config: Config, setting: TemplateSetting) -> Callable[[Visit], bytes]:
    """Reads a field whose template gives an id. `Unusable` if it is not set."""
    text = needed_text_reader(config, setting)
    return lambda visit: id_of(text(visit).strip(), setting)


def value_reader(config: Config, setting: LongMixedSetting, type: ChoiceSetting) -> Callable[[Visit], Any]:
    """Reads a field as the other one says: as JSON, as the text of a template (string), or as a path (path).

    UNDEFINED if the field is not set.
    """
    kind = choice_of(config, type)
    if not text_of(config, setting).strip():
        return lambda _visit: UNDEFINED
    if kind == "json":
        return json_reader(config, setting)
    if kind == "string":
        return text_reader(config, setting)
    path = needed_path(config, setting)
    return lambda visit: path.get(visit.payload)


def plain(record: Any) -> dict[str, Any]:
    """A record that the API shows, as the payload has it."""
    return {name: each for name, each in msgspec.to_builtins(record).items() if not name.startswith("_")}


async def with_error(visit: Visit, path: Any, work: Awaitable[Any]) -> int:
    """Put the result of the work at a path, or what it is refused with: `{"error": {"type", "message"}}`.

    Without a path a refusal fails the run, and so does trouble of the server, which is not the caller's.
    """
    try:
        result = await work
    except (Overloaded, StorageFull, Crashed):
        raise
    except DomainError as refusal:
        if path is None:
            raise
        result = {"error": {"type": refusal.type, "message": refusal.message}}
    except NodeError as error:
        if path is None or error.name != "ValidationError":
            raise
        result = {"error": {"type": "Validation", "message": str(error)}}
    visit.put(path, result)
    return 0
