"""The jobs that import a bundle: into an application, or as a new one.

The bundle is a file beside the results of jobs, under the name of the job, so it is removed when the job has ended.
Each attempt checks the bundle as a whole first, unless an earlier one did, and then creates what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from typing import TYPE_CHECKING, Final

import httpx
import trio

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.outgoing.http_calls import Undelivered, check_url, download
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.values.errors import Invalid, InvalidParts, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.state.arrays import load_arrays
from trunkline.actors.people.organizations.membership import ORGANIZATION
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.results import Pauses, Results, name_of
from trunkline.actors.portability.bundles.checking import Checked, check_bundle
from trunkline.actors.portability.bundles.clone import new_application
from trunkline.actors.portability.bundles.creation import create_from, is_published, publish
from trunkline.actors.portability.bundles.export import ZIP
from trunkline.actors.portability.bundles.import_files import folder_of, open_bundle
from trunkline.actors.portability.bundles.plan import Target
from trunkline.actors.portability.bundles.reader import Bundle
from trunkline.actors.portability.bundles.rights import refusals_of
from trunkline.actors.portability.bundles.writer import write_bundle
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.store.snapshot import Snapshot

INTO: Final = "application.import"
NEW: Final = "applications.import"
_LEFT_OUT_MAX: Final = 100
"""Kinds of things that a template folder has and a bundle does not, as the output of a job names them."""


class Imports:
    """The imports of this process that a call waits for."""

    def __init__(self) -> None:
        self.awaited: dict[bytes, Awaited] = {}

    @contextmanager
    def waiting(self, id: bytes) -> Iterator[Awaited]:
        """Wait for the job `id` in the body, which queues it."""
        awaited = self.awaited[id] = Awaited(id)
        try:
            yield awaited
        finally:
            del self.awaited[id]


class Awaited:
    """An import that a call waits for. `refusal` has all that is wrong, of which the job keeps only the first."""

    def __init__(self, id: bytes) -> None:
        self.id = id
        self.checked = trio.Event()
        self.refusal: InvalidParts | None = None

    async def wait(self, queue: JobQueue, timeout_s: float, *, for_check: bool) -> None:
        """Wait until the job has ended, or with `for_check` until it has checked the bundle; at most `timeout_s`."""
        async with trio.open_nursery() as nursery:
            if for_check:
                nursery.start_soon(self._wait_for_check, nursery.cancel_scope)
            await queue.wait_end(self.id, timeout_s)
            nursery.cancel_scope.cancel()

    async def _wait_for_check(self, scope: trio.CancelScope) -> None:
        await self.checked.wait()
        scope.cancel()


async def import_into(job: Job) -> Doc:
    """Import a bundle into the application that owns the job.

    What was checked can still be refused, if something else has changed meanwhile; then the error says what was done.
    """
    target = _target(job, job.application, is_new=False)
    try:
        return await _import(job, target)
    except InvalidParts:
        raise
    except Invalid as refusal:
        if job.completed:
            done = f"{job.completed} of {job.total} resources were imported before that; they stay."
            raise Invalid(f"{refusal.message} {done}") from None
        raise


async def import_new(job: Job) -> Doc:
    """Import a bundle as a new application of the user or the organization that owns the job."""
    target = _target(job, new_application(job.id), is_new=True)
    if is_published(job.system, target.application):
        return {"applicationId": target.application.hex()}
    await load_arrays()
    output = await _import(job, target)
    with job.system.store.snapshot() as snapshot:
        owner = any(records.find(snapshot, kind, ROOT, job.owner.id) for kind in (USER, ORGANIZATION))
    if not owner:
        raise NotFound("The owner of the new application was deleted.")
    await publish(job.system, target.application, job.owner.id, job.input["ownerType"])
    return {**output, "applicationId": target.application.hex()}


def _target(job: Job, application: bytes, *, is_new: bool) -> Target:
    include = job.input.get("include")
    return Target(
        application=application,
        is_new=is_new,
        job=(job.owner.id, job.id),
        by=job.by,
        refusals={} if is_new else refusals_of(job),
        include=None if include is None else frozenset(include),
        conflict=job.input.get("conflictBehavior", "create"),
    )


async def _import(job: Job, target: Target) -> Doc:
    system = job.system
    imports = system.component(Imports)
    file, left_out = await _of_folder(job, await _file(job))
    try:
        bundle = await trio.to_thread.run_sync(Bundle, file, system.limits)
        awaited = imports.awaited.get(job.id)
        if not job.note.get("checked"):
            checked: Checked = await job.read(
                lambda snapshot: check_bundle(system, system.kinds, snapshot, bundle, target)
            )
            try:
                checked.require(system.limits)
            except InvalidParts as refusal:
                if awaited is not None:
                    awaited.refusal = refusal
                raise
            if job.input.get("dryRun"):
                return {
                    "checked": {name: count for name, count in checked.counts.items() if count},
                    **left_out,
                }
            await job.save({"checked": True, **left_out})
        if awaited is not None:
            awaited.checked.set()

        said = {name: job.note[name] for name in ("leftOut",) if name in job.note}
        return {"imported": await create_from(system, bundle, target, job.set_progress), **said}
    finally:
        file.close()


# The file.


async def _file(job: Job) -> BufferedReader:
    """The bundle: it was uploaded, or is fetched now."""
    opened = partial(open_bundle, job.system, job.owner.id, job.id)
    found = await trio.to_thread.run_sync(opened)
    if found is None:
        source = job.input["importSourceType"]
        if source == "fromApplication":
            await _export(job, bytes.fromhex(job.input["fromApplicationId"]))
        elif source == "importUrl":
            await _download(job)
        found = await trio.to_thread.run_sync(opened)
    if found is None:
        raise NotFound("The bundle is gone; import it again.")
    return found


async def _of_folder(job: Job, file: BufferedReader) -> tuple[BufferedReader, Doc]:
    """The bundle itself, in the place of the template folder that may have been given, and what of that is left out."""
    system = job.system
    left_out: list[tuple[str, int]] = []
    try:
        tree = await trio.to_thread.run_sync(folder_of, file, system.limits)
        if tree is None:
            return file, {}

        def fill(_: Snapshot, write: Write) -> None:
            from trunkline.actors.portability.bundles.folder import (
                convert_folder,  # here: the reader of YAML is large
            )

            base_url = system.component(Contents).signatures.base_url
            done = convert_folder(tree, system.limits, write, system.clock.wall_ms(), Pauses(), base_url)
            left_out.extend(done.left_out.most_common(_LEFT_OUT_MAX))

        await system.component(Results).write(job.owner.id, job.id, "import.zip", ZIP, fill)
    except BaseException:
        file.close()
        raise
    file.close()
    told = {what: count for what, count in left_out if count}
    return await _file(job), {"leftOut": told} if told else {}


async def _export(job: Job, application: bytes) -> None:
    """Write the bundle of another application of this server, with all that it has."""
    system = job.system
    options = dict.fromkeys(
        ("includeFiles", "includePrivateFiles", "includeDataTableRows", "includeDevices"), True
    )

    def fill(snapshot: Snapshot, write: Write) -> None:
        if not records.exists(snapshot, APPLICATION, ROOT, application):
            raise NotFound(f"fromApplicationId: there is no application {application.hex()} any more.")
        write_bundle(system, snapshot, application, options, write)

    await system.component(Results).write(job.owner.id, job.id, "import.zip", ZIP, fill)


def data_of(import_url: str) -> bytes:
    """The data of a job that fetches its bundle."""
    return encode(import_url)


async def _download(job: Job) -> None:
    """Fetch the bundle from `importUrl`, which may contain a secret and so is in the data of the job."""
    system = job.system
    url: str = decode(await job.read_data())
    blobs, limits = system.store.results, system.limits
    with blobs.write(name_of(job.owner.id, job.id)) as draft:
        try:
            await download(
                url,
                draft.write,
                timeout_s=limits.outgoing_timeout_s,
                total_s=limits.import_url_s,
                bytes_max=limits.bundle_bytes_max,
                private=may_be_private(system, url),
            )
        except Undelivered as failure:
            raise Invalid(f"importUrl: {failure}") from None
        await trio.to_thread.run_sync(draft.finish)


def check_import_url(url: str, *, private: bool) -> None:
    """Raise `Invalid` unless a bundle may be fetched from a URL: https, or http in private networks."""
    try:
        check_url(url, private=private)
    except Invalid as refusal:
        raise Invalid(f"importUrl{refusal.message.removeprefix('callbackUrl')}") from None
    if httpx.URL(url).scheme != "https" and not private:
        raise Invalid("importUrl: must begin with https://, so that nobody changes the bundle on its way.")


# The kinds of jobs.


IMPORT_INTO: Final = JobKind(
    operation=INTO,
    resource_type="application",
    run=import_into,
    gate="application_import_concurrent_calls_max",
)
IMPORT_NEW: Final = JobKind(
    operation=NEW,
    resource_type="application",
    run=import_new,
    gate="clone_or_import_concurrent_calls_max",
    owner="userJobs",
)
"""Its jobs belong to the user or the organization that the new application is for, and so do those of clones, which
share its gate."""
