"""BranchOnChangeNode: output 1 if a value differs from that of the last run, else output 0, as in the first run.

`changeType` says what counts as a change. "any": any other value; 1 and 1.0 are the same, and a missing value is null.
"value" and "percent": the number at `valuePath` has moved by at least `changeThreshold`, in units or in percent of the
last number; "valueInc", "percentInc", "valueDec" and "percentDec": it has risen or fallen so far. What is no number
takes output 0 there, and is not kept.

`onChangeIdTemplate` keeps a value of its own for each text, such as `{{triggerId}}`; otherwise it is as with LatchNode.
`prevValuePath` gets the last value as `{value, time}`, its time in milliseconds, or null.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas.values import UNDEFINED, to_number, type_of
from trunkline.actors.engine.bodies import body_of, check_kept
from trunkline.actors.engine.json_equality import equality_key
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    NumberSetting,
    PathSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    needed_path,
    number_reader,
    path_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.workflows.flows.storage_messages import ReplaceNodeState

TYPE: Final = "BranchOnChangeNode"

_VALUE_PATH: Final = PathSetting("valuePath", is_needed=True)
_CHANGE_TYPE: Final = ChoiceSetting(
    "changeType", "any", "percent", "percentInc", "percentDec", "value", "valueInc", "valueDec"
)
_CHANGE_THRESHOLD: Final = NumberSetting("changeThreshold")
_ON_CHANGE_ID: Final = TemplateSetting("onChangeIdTemplate")
_PREV_VALUE_PATH: Final = PathSetting("prevValuePath")
FORM: Final = Form("logic", (_VALUE_PATH, _CHANGE_TYPE, _CHANGE_THRESHOLD, _ON_CHANGE_ID, _PREV_VALUE_PATH))
NEEDS: Final = WRITES


def prepare(config: Config) -> NodeStep:
    source, previous = needed_path(config, _VALUE_PATH), path_of(config, _PREV_VALUE_PATH)
    kind = choice_of(config, _CHANGE_TYPE)
    threshold = number_reader(config, _CHANGE_THRESHOLD)
    if threshold is None and kind != "any":
        raise Unusable("config.changeThreshold: is not set; give the number that a change has at least.")
    id = text_reader(config, _ON_CHANGE_ID)

    async def step(visit: Visit) -> int:
        value = source.get(visit.payload)
        if kind == "any":
            check_kept(visit, value)
            value = None if value is UNDEFINED else body_of(Any, value, "valuePath")
            least = 0.0
        else:
            value = _number(value)
            least = 0.0 if threshold is None else threshold(visit)
            if value is None:
                return 0
        state = {"value": value, "time": visit.run.now_ms}
        message = ReplaceNodeState(node=visit.state_name(id(visit)), state=state)
        old = (await visit.ask_flow(message))["state"]
        visit.put(previous, old)
        if old is None:
            return 0
        if kind == "any":
            return 1 if equality_key(old["value"]) != equality_key(value) else 0
        return 1 if _has_moved(kind, _number(old["value"]), value, least) else 0

    return step


def _number(value: Any) -> float | None:
    """The number of a value, also of a text; None if it is none."""
    if type_of(value) not in ("number", "string") or value == "":
        return None
    number = to_number(value)
    return number if abs(number) < float("inf") else None


def _has_moved(kind: str, old: float | None, new: float, least: float) -> bool:
    if old is None or old == new:
        return False
    moved = float(new) - float(old)
    if kind.startswith("percent"):
        moved = moved / abs(old) * 100 if old else float("inf") * moved
    if kind.endswith("Inc"):
        return moved > 0 and moved >= least
    if kind.endswith("Dec"):
        return moved < 0 and -moved >= least
    return abs(moved) >= least
