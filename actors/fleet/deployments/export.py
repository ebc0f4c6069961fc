"""The job that exports an embedded deployment: the definitions of its workflows as one JSON file.

This server compiles nothing, so the file says `"compiled": false`, and the options of a compiler have no effect.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.resource import missing
from trunkline.actors.fleet.deployments.kind import EMBEDDED_DEPLOYMENT
from trunkline.actors.fleet.deployments.reads import Presenter
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.messages import QueueJob
from trunkline.actors.workflows.flows.definition import shown_parts
from trunkline.actors.workflows.flows.presenter import find_flow, read_definition
from trunkline.actors.workflows.flows.versions import find_version

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.store.snapshot import Snapshot

NOTE: Final = "Definitions of workflows. This server compiles nothing."


async def export_deployment(job: Job) -> Doc:
    """Write the definitions of the desired versions. Input: `gzip`."""

    def fill(snapshot: Snapshot, write: Write) -> None:
        content = deployment_file(snapshot, job.application, job.resource)
        job.completed = job.total = len(content["flows"])
        text = msgspec.json.encode(content)
        write(gzip.compress(text, mtime=0) if job.input["gzip"] else text)

    name = f"embedded-deployment-{job.resource.hex()}.json"
    if job.input["gzip"]:
        file = await job.write_file(f"{name}.gz", "application/gzip", fill)
    else:
        file = await job.write_file(name, "application/json", fill)
    return {"file": file, "compiled": False, "note": NOTE}


def deployment_file(snapshot: Snapshot, application: bytes, id: bytes) -> Doc:
    """What the file contains. Raises `NotFound` if the deployment does not exist."""
    found = records.find(snapshot, EMBEDDED_DEPLOYMENT, application, id)
    shown = None if found is None else Presenter(snapshot, application).embedded(found)
    if shown is None:
        raise missing(EMBEDDED_DEPLOYMENT, id)
    flows = []
    for flow_id, each in shown["flows"].items():
        flow = find_flow(snapshot, application, bytes.fromhex(flow_id))
        version = find_version(snapshot.get, application, flow.id, flow.doc, each["desiredVersion"])
        one = {"flowId": flow_id, "name": flow.doc["name"], "version": each["desiredVersion"]}
        if version is None:
            flows.append({**one, "problem": "This version was deleted."})
        else:
            flows.append({**one, **shown_parts(read_definition(snapshot, application, flow.id, version.id))})
    return {
        "note": NOTE,
        "compiled": False,
        "applicationId": application.hex(),
        "deviceId": shown["deviceId"],
        "deviceName": shown["deviceName"],
        "bundleVersion": shown["desiredBundleVersion"],
        "flows": flows,
    }


def check_export(snapshot: Snapshot, application: bytes, message: QueueJob) -> None:
    """Raise `NotFound` if the deployment does not exist."""
    deployment_file(snapshot, application, message.resource)


DEPLOYMENT_EXPORT = JobKind(
    operation="embeddedDeployments.export", resource_type="device", run=export_deployment, check=check_export
)
