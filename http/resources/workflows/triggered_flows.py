"""The deletion of a webhook, an integration, an endpoint or a resource job, together with the workflows it triggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from trunkline.actors.core.records.messages import DeleteRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.shared_batch import Ask
from trunkline.actors.core.values.errors import DomainError, NotFound, PayloadTooLarge
from trunkline.actors.workflows.flows.messages import DeleteFlow, SelectTriggered
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS

_TRIGGERS: Final[Mapping[str, Literal["webhook", "integration", "endpoint", "resourceJob"]]] = {
    "webhook": "webhook",
    "integration": "integration",
    "experienceEndpoint": "endpoint",
    "resourceJob": "resourceJob",
}
"""The types of the triggers, by the kind of what triggers them."""


async def remove_with_flows(call: Call) -> Response:
    """Delete the record; with `includeWorkflows` also the workflows that it triggers in the version that runs.

    All of it is one batch: if the record cannot be deleted, nothing is.
    """
    service, resource = call.service, call.route.resource
    assert resource is not None
    system, source = service.system, call.ids[resource.kind.name]
    system.check_load()
    deletion = service.ref(call), service.message(call, DeleteRecord)
    flows: list[bytes] = []
    if call.query.include_workflows:
        select = SelectTriggered(
            application=call.application, source=source, type=_TRIGGERS[resource.kind.name]
        )
        flows = await service.read_message(select)
    flows_max = system.limits.triggered_flows_max
    if len(flows) > flows_max:
        raise PayloadTooLarge(
            f"includeWorkflows: {len(flows)} workflows are triggered; one call deletes at most {flows_max}. "
            "Delete some of them first."
        )

    def last(answers: list[Any]) -> Ask:
        for answer in answers:
            if isinstance(answer, DomainError) and not isinstance(answer, NotFound):
                raise answer
        return deletion

    await system.ask_each([(Ref("flow", call.application, id), DeleteFlow()) for id in flows], last)
    return Response(200, [JSON], SUCCESS)
