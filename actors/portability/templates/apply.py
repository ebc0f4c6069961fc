"""The jobs that apply an application template: to an application, and to a new one.

A template is a bundle in memory (`form.py`), which is checked and imported as every other. A new application belongs to
nobody until all of it is there.
"""

from __future__ import annotations

from typing import Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.state.arrays import load_arrays
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication, NoteTemplate
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.portability.bundles.clone import import_source, new_application
from trunkline.actors.portability.bundles.creation import is_published, publish
from trunkline.actors.portability.bundles.plan import Target
from trunkline.actors.portability.bundles.rights import refusals_of
from trunkline.actors.portability.templates.catalogue import Catalogue


async def apply_template(job: Job) -> Doc:
    """Create in the application of the job what a template describes. Input: `templateId`.

    The output has the numbers of `resources` by name. Raises `InvalidParts` if something clashes with what is there;
    then nothing was changed.
    """
    return {"resources": await _apply(job, job.application, refusals_of(job))}


async def create_application(job: Job) -> Doc:
    """Create an application from a template, for the owner of the job. Input: `templateId`, `body` and `ownerType`.

    The output has the `applicationId`, and the numbers of `resources` by name.
    """
    application = new_application(job.id)
    output: Doc = {"applicationId": application.hex()}
    if is_published(job.system, application):
        return output
    with job.system.store.snapshot() as snapshot:
        is_begun = records.exists(snapshot, APPLICATION, ROOT, application)
    if not is_begun:
        body = msgspec.convert(job.input["body"], ApplicationPost)
        await load_arrays()
        message = CreateApplication(body=body, user=ROOT, job=(job.owner.id, job.id))
        await job.ask(Ref("application", ROOT, application), message)
    output["resources"] = await _apply(job, application, {})
    await publish(job.system, application, job.owner.id, job.input["ownerType"])
    return output


async def _apply(job: Job, application: bytes, refusals: dict[str, str]) -> dict[str, int]:
    catalogue, id = job.system.component(Catalogue), job.input["templateId"]
    ref = Ref("application", ROOT, application)
    with job.system.store.snapshot() as snapshot:
        found = records.find(snapshot, APPLICATION, ROOT, application)
    present = () if found is None else found.doc.get("globals", ())
    bundle = catalogue.bundle(id, without={each["key"] for each in present})
    by = job.by
    target = Target(application, is_new=False, job=(job.owner.id, job.id), by=by, refusals=refusals)
    counts = await import_source(job, bundle, target)
    await job.ask(ref, NoteTemplate(template=id, readme=catalogue.readme(id), by=by))
    return counts


APPLY_TEMPLATE: Final = JobKind(
    operation="application.applyTemplate",
    resource_type="application",
    run=apply_template,
    gate="application_import_concurrent_calls_max",
)
CREATE_FROM_TEMPLATE: Final = JobKind(
    operation="applications.post", resource_type="application", run=create_application, owner="userJobs"
)
