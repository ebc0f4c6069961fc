"""ValidatePayloadNode: output 1 if a value of the payload fits a JSON schema of draft 4, else output 0.

The schema stands in `schema` as JSON, in which templates may stand, or `schema` is the payload path to it (`schemaType`
"path"). The value is at `toValidatePath`, without it the whole payload; a missing value is null. At `errorsPath` there
will be an array of `{field, message}`, empty if the value fits; `field` is the payload path of what is wrong.

A schema that cannot be used fails the run, and so does a check that takes too many steps. One that takes more than some
milliseconds is begun again in a thread. Patterns with lookaround or backreferences are searched for in a child process.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.runtime.computing import give_up_if_cancelled, in_thread
from trunkline.actors.core.scripts.errors import ScriptError
from trunkline.actors.engine.copies import size_of
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.json_schema import Check, Problem, Schema, SchemaError, TooMuchWork
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.schema_keywords import compile_schema
from trunkline.actors.engine.schema_patterns import answered
from trunkline.actors.engine.settings import ChoiceSetting, Config, LongMixedSetting, PathSetting
from trunkline.actors.engine.tools import Unusable, choice_of, needed_path, needed_template, path_of, text_of
from trunkline.actors.engine.visit import NodeStep, Visit, refused

_Known = dict[tuple[str, str], bool]

TYPE: Final = "ValidatePayloadNode"

_SCHEMA_TYPE: Final = ChoiceSetting("schemaType", "json", "path")
_SCHEMA: Final = LongMixedSetting("schema", is_needed=True)
_TO_VALIDATE_PATH: Final = PathSetting("toValidatePath")
_ERRORS_PATH: Final = PathSetting("errorsPath")
FORM: Final = Form("logic", (_SCHEMA_TYPE, _SCHEMA, _TO_VALIDATE_PATH, _ERRORS_PATH))

STEPS_INLINE_MAX: Final = 3_000
"""Steps of a check without a thread: some milliseconds."""
STEPS_MAX: Final = 4_000_000
ROUNDS_MAX: Final = 8
"""Calls of a process of scripts for one visit: each time a check may come to patterns that it had not come to."""
SCHEMA_INLINE_BYTES_MAX: Final = 512
"""About the bytes of a schema that is compiled at each visit, without a thread."""


def prepare(config: Config) -> NodeStep:
    fixed, source = _schema(config)
    path, errors_path = path_of(config, _TO_VALIDATE_PATH), path_of(config, _ERRORS_PATH)
    prefix = "" if path is None or path.text == "." else path.text

    def check(schema: Schema, visit: Visit, steps: int, known: _Known | None = None) -> Check:
        value = visit.payload if path is None else path.get(visit.payload)
        work = Check(steps, give_up_if_cancelled, known)
        work.run(schema, None if value is UNDEFINED else value, None)
        return work

    def check_at_length(given: Any, visit: Visit, known: _Known) -> Check:
        try:
            return check(fixed or _compiled(given), visit, STEPS_MAX, known)
        except TooMuchWork as error:
            raise NodeError("TooMuchWork", f"config.schema: {error}") from None

    def finish(visit: Visit, problems: list[Problem]) -> int:
        errors = [{"field": _field(prefix, each.place), "message": each.message} for each in problems]
        visit.put(errors_path, errors)
        return 0 if errors else 1

    async def step_in_thread(visit: Visit, given: Any) -> int:
        """Check until nothing is left to ask: what is known now may lead to other patterns."""
        known: _Known = {}
        for _ in range(ROUNDS_MAX):
            work: Check = await in_thread(check_at_length, given, visit, known)
            if not work.asked:
                return finish(visit, work.problems)
            try:
                known.update(await answered(work.asked, visit.run.call_script))
            except SchemaError as error:
                raise refused(f"config.schema: {error}") from None
            except ScriptError as error:
                raise NodeError(error.name, f"config.schema: a pattern: {error.message}") from None
        raise NodeError(
            "TooMuchWork", "config.schema: the patterns with lookaround lead into each other too often."
        )

    def step(visit: Visit) -> Any:
        given = None if source is None else source(visit)
        if fixed is None and size_of(given, SCHEMA_INLINE_BYTES_MAX) > SCHEMA_INLINE_BYTES_MAX:
            return step_in_thread(visit, given)
        try:
            work = check(fixed or _compiled(given), visit, STEPS_INLINE_MAX)
        except TooMuchWork:
            return step_in_thread(visit, given)
        return step_in_thread(visit, given) if work.asked else finish(visit, work.problems)

    return step


def _schema(config: Config) -> tuple[Schema | None, Any]:
    """The schema, or what reads it for a visit."""
    if choice_of(config, _SCHEMA_TYPE) == "path":
        path = needed_path(config, _SCHEMA)
        return None, lambda visit: path.get(visit.payload)
    given = config[_SCHEMA]
    if not isinstance(given, dict):
        text, template = text_of(config, _SCHEMA), needed_template(config, _SCHEMA)
        if "{{" in text:
            return None, lambda visit: _decoded(template.text(visit.payload, visit.run.now_ms), NodeError)
        given = _decoded(text, Unusable)
    try:
        return compile_schema(given), None
    except SchemaError as error:
        raise Unusable(f"config.schema: {error}") from None


def _decoded(text: str, kind: type[Exception]) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        message = f"config.schema: is not valid JSON: {error}."
        raise Unusable(message) if kind is Unusable else NodeError("InvalidJsonTemplate", message) from None


def _compiled(given: Any) -> Schema:
    try:
        return compile_schema(given)
    except SchemaError as error:
        raise refused(f"config.schema: {error}") from None


_PLAIN: Final = re.compile(r"[A-Za-z_$][\w$-]*")


def _field(prefix: str, place: tuple[str | int, ...]) -> str:
    """The payload path of a place within the value."""
    steps = [str(each) if _PLAIN.fullmatch(str(each)) else f"[{each}]" for each in place]
    return ".".join([prefix, *steps] if prefix else steps) or "."
