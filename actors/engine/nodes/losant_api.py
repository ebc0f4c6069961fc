"""LosantApiNode: calls an operation of this server's API, and puts `{"result"}` or `{"error"}` at `responsePath`.

The operation is `resource` and `action`, such as `devices` and `get`. `params` are the values of its path, its query
and its body by their names, as templates (`string`), templates of JSON (`json`) or payload paths (`path`); one value
that is neither of the path nor of the query is the body. The caller is the workflow, which may do in its application
what its author may do now; that is the `applicationId` unless another is given. With `apiTokenTemplate` the caller is
the bearer of the token, and the application is that of `applicationIdTemplate`.

An error has `type`, `statusCode` and `message`; none ends the run. Limits and throttles are those of the API. A change
is made at least once: a run that is repeated after a crash calls the operation again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.values import UNDEFINED, Undefined
from trunkline.actors.engine.api_calls import ApiAnswer, ApiCall, ApiCalls
from trunkline.actors.engine.bodies import json_reader
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    LongMixedSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    list_of,
    needed_path,
    path_of,
    template_of,
    text_of,
    text_of_value,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "LosantApiNode"

_RESOURCE: Final = TextSetting("resource", is_needed=True)
_ACTION: Final = TextSetting("action", is_needed=True)
_NAME: Final = TextSetting("name")
_TYPE: Final = ChoiceSetting("type", "string", "json", "path")
_VALUE: Final = LongMixedSetting("value")
_PARAMS: Final = RowsSetting("params", _NAME, _TYPE, _VALUE)
_API_TOKEN: Final = TemplateSetting("apiTokenTemplate")
_APPLICATION_ID: Final = TemplateSetting("applicationIdTemplate")
_RESPONSE_PATH: Final = PathSetting("responsePath")
FORM: Final = Form("data", (_RESOURCE, _ACTION, _PARAMS, _API_TOKEN, _APPLICATION_ID, _RESPONSE_PATH))
NEEDS: Final = WRITES

PARAMS_MAX: Final = 100


def prepare(config: Config) -> NodeStep:
    resource, action = _needed(config, _RESOURCE), _needed(config, _ACTION)
    operation, result = f"{resource}.{action}", path_of(config, _RESPONSE_PATH)
    rows = list_of(config, _PARAMS)
    if len(rows) > PARAMS_MAX:
        raise Unusable(f"config.params: has {len(rows)} items; give at most {PARAMS_MAX}.")
    params = [(text_of(row, _NAME), _value(row)) for row in rows if text_of(row, _NAME)]
    token, application = text_reader(config, _API_TOKEN), text_reader(config, _APPLICATION_ID)

    async def step(visit: Visit) -> int:
        world = visit.world
        operations = await world.system.component(ApiCalls).operations()
        if not operations.is_read(operation):
            world.effect(f"calls {operation}")
        given = {name: value for name, read in params if (value := read(visit)) is not UNDEFINED}
        other = application(visit).strip()
        if other:
            given.setdefault("applicationId", other)
        call = ApiCall(operation, given, world.application, world.creator, world.origin, token(visit).strip())
        visit.put(result, _shown(await operations.call(call)))
        check_payload(visit)
        return 0

    return step


def _shown(answer: ApiAnswer) -> dict[str, Any]:
    if answer.status < 400:
        return {"result": answer.body}
    body = answer.body if isinstance(answer.body, dict) else {}
    return {
        "error": {
            "type": body.get("type", "Error"),
            "statusCode": answer.status,
            "message": body.get("message", ""),
        }
    }


def _value(row: Config) -> Callable[[Visit], Any]:
    kind = choice_of(row, _TYPE)
    if kind == "path":
        path = needed_path(row, _VALUE)
        return lambda visit: path.get(visit.payload)
    template = template_of(row, _VALUE)
    if template is None:
        return lambda _visit: UNDEFINED
    if kind == "json":
        return json_reader(row, _VALUE)
    return lambda visit: _text(template.value(visit.payload, visit.run.now_ms))


def _text(value: Any) -> Any:
    """The text of what a template gives: an array of one name is the name. Objects, which have no text, stay so."""
    return (
        UNDEFINED if value is None else value if isinstance(value, dict | Undefined) else text_of_value(value)
    )


def _needed(config: Config, setting: TextSetting) -> str:
    text = text_of(config, setting).strip()
    if not text:
        raise Unusable(f"config.{setting}: is not set; give the part of an operation such as devices.get.")
    return text
