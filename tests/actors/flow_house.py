"""Workflows for the tests of actors."""

from __future__ import annotations

import msgspec

from tests.actors.house import House
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.fleet.deployments.messages import SetVersions
from trunkline.actors.workflows.flows import messages as flow_messages
from trunkline.actors.workflows.flows.bodies import FlowPost, FlowVersionPost, StorageEntry
from trunkline.actors.workflows.flows.storage_messages import ClearStorage, SetLatch, SetStorageEntry


async def workflow(house: House, by: Creator) -> Ref:
    """A workflow that is deployed, with versions, storage entries and latches, some of which are cleared already."""
    ref = Ref("flow", house.application, house.system.ids.new(house.clock.wall_ms()))
    post = msgspec.convert({"name": "climate", "flowClass": "edge", "nodes": [{"type": "X"}]}, FlowPost)
    await house.system.ask(ref, flow_messages.CreateFlow(body=post, by=by))
    for number in range(3):
        version = FlowVersionPost(version=f"v{number}")
        query = flow_messages.VersionCreation()
        await house.system.ask(ref, flow_messages.CreateFlowVersion(body=version, query=query, by=by))
        entry = StorageEntry(key=f"key {number}", value=number)
        await house.system.ask(ref, SetStorageEntry(body=entry))
        await house.system.ask(ref, SetLatch(node=str(number), sets=True, resets=False))
        if number == 1:
            await house.system.ask(ref, ClearStorage())
    device = await house.device(name="edge", deviceClass="edgeCompute")
    deploy = SetVersions(kind="edgeDeployment", targets=[(device, ref.id)], version="v1", by=by)
    await house.system.ask(Ref("deployments", house.application, house.application), deploy)
    return ref
