"""WorkflowTriggerNode: presses a virtual button of a workflow, at once or later, or cancels a press.

`triggerWorkflowId` is the id of the workflow, `triggerVirtualButtonId` the id (`meta.uiId` or `meta.id`) or the key of
the button in the version `flowVersionTemplate`, without it in the default version. The payload is the JSON of
`payloadTemplate`, or by `payloadTemplateType` its text (`string`) or what stands at a path (`path`); without it the
button's own. The press is stored when the node ends, and the workflow runs on its own.

The `behavior` `schedule` presses `secondsTemplate` seconds later, or with the `scheduling` `absolute` at the time of
`dateTemplate`; a time that is over is now. `runIdTemplate` is the id of the press, without which it gets one. A press
that is still to come and has this id is replaced. `cancel` removes the press `runIdTemplate`.

`resultPath` gets `success`, `runId` (null if nothing will run), of a press `flowId`, `flowVersion`, `virtualButtonId`
and the `payload`, if one is given, and of a scheduled one `runAt` and `newOrUpdate`; or the error, which fails the run
without a result path.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import UNSET

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.values.timestamps import iso, parse_report_time
from trunkline.actors.engine.bodies import body_of, id_reader, value_reader, with_error
from trunkline.actors.engine.node_rights import may_write
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    RESULT,
    ChoiceSetting,
    Config,
    LongMixedSetting,
    NumberSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    needed_text_reader,
    number_reader,
    path_of,
    shortened,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.workflows.flows.bodies import ButtonPress
from trunkline.actors.workflows.flows.kind import DEFAULT
from trunkline.actors.workflows.flows.messages import PressButton
from trunkline.actors.workflows.flows.schedules import SECONDS_MAX
from trunkline.actors.workflows.triggers.button import button_ref
from trunkline.actors.workflows.triggers.scheduled import CancelPress, SchedulePress, scheduled_ref

TYPE: Final = "WorkflowTriggerNode"

_BEHAVIOR: Final = ChoiceSetting("behavior", "immediate", "schedule", "cancel")
_TRIGGER_WORKFLOW_ID: Final = TemplateSetting("triggerWorkflowId")
_TRIGGER_VIRTUAL_BUTTON_ID: Final = TemplateSetting("triggerVirtualButtonId")
_FLOW_VERSION: Final = TemplateSetting("flowVersionTemplate")
_PAYLOAD: Final = LongMixedSetting("payloadTemplate")
_PAYLOAD_TYPE: Final = ChoiceSetting("payloadTemplateType", "json", "string", "path")
_SCHEDULING: Final = ChoiceSetting("scheduling", "relative", "absolute")
_SECONDS: Final = NumberSetting("secondsTemplate")
_DATE: Final = TemplateSetting("dateTemplate")
_RUN_ID: Final = TemplateSetting("runIdTemplate")
FORM: Final = Form(
    "output",
    (
        _BEHAVIOR,
        _TRIGGER_WORKFLOW_ID,
        _TRIGGER_VIRTUAL_BUTTON_ID,
        _FLOW_VERSION,
        _PAYLOAD,
        _PAYLOAD_TYPE,
        _SCHEDULING,
        _SECONDS,
        _DATE,
        _RUN_ID,
        RESULT,
    ),
)
NEEDS: Final = (may_write("flow.pressVirtualButton"),)


_Work = Callable[[Visit], Awaitable[Any]]


def prepare(config: Config) -> NodeStep:
    behavior = choice_of(config, _BEHAVIOR)
    work = {"immediate": _press, "schedule": _schedule, "cancel": _cancel}[behavior](config)
    result = path_of(config, RESULT)
    return lambda visit: with_error(visit, result, work(visit))


def _target(config: Config) -> Callable[[Visit], tuple[bytes, ButtonPress]]:
    """Reads the workflow and the press."""
    flow, key = (
        id_reader(config, _TRIGGER_WORKFLOW_ID),
        needed_text_reader(config, _TRIGGER_VIRTUAL_BUTTON_ID),
    )
    version = text_reader(config, _FLOW_VERSION)
    payload = value_reader(config, _PAYLOAD, _PAYLOAD_TYPE)

    def read(visit: Visit) -> tuple[bytes, ButtonPress]:
        fields = {"key": key(visit), "payload": payload(visit), "flowVersion": version(visit) or UNDEFINED}
        given = {name: value for name, value in fields.items() if value is not UNDEFINED}
        return flow(visit), body_of(ButtonPress, given, "triggerVirtualButtonId")

    return read


def _told(flow: bytes, body: ButtonPress, run: str | None) -> dict[str, Any]:
    told = {"success": run is not None, "runId": run, "flowId": flow.hex(), "virtualButtonId": body.key}
    told["flowVersion"] = DEFAULT if body.flow_version is UNSET else body.flow_version
    return told if body.payload is UNSET else {**told, "payload": body.payload}


def _press(config: Config) -> _Work:
    target = _target(config)

    async def press(visit: Visit) -> Any:
        flow, body = target(visit)
        ref = button_ref(visit.world.application, flow, body.key)
        run = await visit.ask(ref, PressButton(flow=flow, body=body, origin=visit.world.origin))
        if run is None:
            visit.note(
                f"The workflow {flow.hex()} is disabled or does not run here, so the press starts nothing."
            )
        return _told(flow, body, run)

    return press


def _schedule(config: Config) -> _Work:
    target, run_id = _target(config), text_reader(config, _RUN_ID)
    when = _when(config)

    async def schedule(visit: Visit) -> Any:
        flow, body = target(visit)
        run = run_id(visit) or visit.new_id().hex()
        message = SchedulePress(id=run, flow=flow, body=body, origin=visit.world.origin, **when(visit))
        scheduled = await visit.ask(scheduled_ref(visit.world.application), message)
        is_new = "update" if scheduled["is_update"] else "new"
        return {**_told(flow, body, run), "runAt": iso(scheduled["due_ms"]), "newOrUpdate": is_new}

    return schedule


def _when(config: Config) -> Callable[[Visit], dict[str, int]]:
    """Reads when a press is due, as fields of `SchedulePress`."""
    if choice_of(config, _SCHEDULING) == "absolute":
        date = needed_text_reader(config, _DATE)
        return lambda visit: {
            "due_ms": parse_report_time(date(visit), visit.run.now_ms, field="config.dateTemplate")
        }
    number = number_reader(config, _SECONDS)
    if number is None:
        raise Unusable("config.secondsTemplate: is not set; give a number of seconds.")

    def read(visit: Visit) -> dict[str, int]:
        seconds = number(visit)
        if not 0 <= seconds <= SECONDS_MAX:
            raise refused(f"config.secondsTemplate: gives {shortened(seconds)}; give 0 to {SECONDS_MAX}.")
        return {"after_ms": round(seconds * 1000)}

    return read


def _cancel(config: Config) -> _Work:
    run_id = needed_text_reader(config, _RUN_ID)

    async def cancel(visit: Visit) -> Any:
        run = run_id(visit)
        done = await visit.ask(scheduled_ref(visit.world.application), CancelPress(id=run))
        return {"success": done, "runId": run}

    return cancel
