"""Deletion of a record together with the workflows that it triggers (`includeWorkflows`).

The record is deleted first: if that is refused, no workflow is touched. If the server stops in between, workflows are
left that nothing triggers any more.
"""

from __future__ import annotations

from collections.abc import Iterable

from trunkline.actors.flows.messages import DeleteFlow
from trunkline.actors.flows.selection import SelectTriggered
from trunkline.actors.records.messages import DeleteRecord
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.values.errors import NotFound
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import SUCCESS
from trunkline.http.calls.errors import JSON
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import FLOW_ACTOR, Handler


def delete_with_flows(trigger: str) -> Handler:
    """The handler that deletes a plain record; its workflows have a trigger of this type with its id as the key."""

    async def delete(call: Call) -> Response:
        service, flows = call.service, list[bytes]()
        assert call.route.resource is not None
        if call.query.include_workflows:
            key = call.ids[call.route.resource.kind.name].hex()
            flows = await service.read_message(
                SelectTriggered(application=call.application, type=trigger, key=key)
            )
        await service.system.ask(service.ref(call), service.message(call, DeleteRecord))
        await delete_flows(call, flows)
        return Response(200, [JSON], SUCCESS)

    delete.__doc__ = "Delete a record, with `includeWorkflows` also the workflows that it triggers."
    return delete


async def delete_flows(call: Call, flows: Iterable[bytes]) -> None:
    """Delete workflows of the application. One that does not exist any more is no error."""
    for flow in flows:
        try:
            await call.service.system.ask(Ref(FLOW_ACTOR.kind, call.application, flow), DeleteFlow())
        except NotFound:
            continue
