"""WorkflowTriggerNode: presses a virtual button of a workflow.

`triggerWorkflowId` is the id of the workflow, `triggerVirtualButtonId` the id (`meta.uiId` or `meta.id`) or the key of
the button in the version `flowVersionTemplate`, without it in the default version. The payload is the JSON of
`payloadTemplate`, or by `payloadTemplateType` its text (`string`) or what stands at a path (`path`); without it the
button's own. The press is stored when the node ends, and the workflow runs on its own. `resultPath` gets `runId`, which
is null if nothing will run, or the error; without it an error fails the run. Only the `behavior` `immediate` is there.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.engine.bodies import body_of, id_reader, value_reader, with_error
from trunkline.actors.engine.tools import Config, Unusable, needed_text_reader, path_of, text_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.flows.bodies import ButtonPress
from trunkline.actors.flows.messages import PressButton
from trunkline.actors.formulas.values import UNDEFINED
from trunkline.actors.triggers.button import button_ref

TYPE: Final = "WorkflowTriggerNode"


def prepare(config: Config) -> NodeStep:
    behavior = text_of(config, "behavior") or "immediate"
    if behavior != "immediate":
        raise Unusable(
            f"config.behavior: is {behavior!r}; workflows are triggered at once only, so give immediate."
        )
    flow, key = id_reader(config, "triggerWorkflowId"), needed_text_reader(config, "triggerVirtualButtonId")
    version, result = text_reader(config, "flowVersionTemplate"), path_of(config, "resultPath")
    payload = value_reader(config, "payloadTemplate", "payloadTemplateType")

    async def press(visit: Visit) -> Any:
        id, button = flow(visit), key(visit)
        fields = {"key": button, "payload": payload(visit), "flowVersion": version(visit) or UNDEFINED}
        given = {name: value for name, value in fields.items() if value is not UNDEFINED}
        body = body_of(ButtonPress, given, "triggerVirtualButtonId")
        ref = button_ref(visit.world.application, id, button)
        run = await visit.ask(ref, PressButton(flow=id, body=body, origin=visit.world.origin))
        return {"runId": run}

    return lambda visit: with_error(visit, result, press(visit))
