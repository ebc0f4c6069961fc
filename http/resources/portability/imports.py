"""Imports of bundles: as new applications, and into applications."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Forbidden, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Id
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.people.organizations.roles import Level
from trunkline.actors.platform.applications.messages import ApplicationView, GetApplication
from trunkline.actors.platform.jobs.job import JobKind
from trunkline.actors.platform.jobs.messages import JobQueued, QueueJob
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.portability.bundles.clone import new_application
from trunkline.actors.portability.bundles.import_files import BundleUpload
from trunkline.actors.portability.bundles.import_jobs import (
    IMPORT_INTO,
    IMPORT_NEW,
    Imports,
    check_import_url,
    data_of,
)
from trunkline.actors.portability.bundles.import_messages import (
    IntoApplicationOptions,
    NewApplicationOptions,
)
from trunkline.actors.portability.bundles.messages import NewApplication, PartProblems
from trunkline.actors.portability.bundles.portable import PORTABLE
from trunkline.http.calls.access import check_access
from trunkline.http.calls.call import Call
from trunkline.http.calls.form_data import FormData
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import post
from trunkline.http.resources.platform.jobs import job_level, job_output, queued

T = TypeVar("T", bound=NewApplicationOptions)

_Options = Annotated[str, Meta(max_length=65_536)]
_Truth = Literal["true", "false"]


class IntoForm(Body, frozen=True):
    """The form of an import into an application. `options` are JSON."""

    import_bundle: bytes | UnsetType = UNSET
    email: Email | UnsetType = UNSET
    options: _Options | UnsetType = UNSET


class NewForm(IntoForm, frozen=True):
    """The form of an import as a new application. `options` are JSON."""

    owner_id: Id | UnsetType = UNSET
    owner_type: Literal["user", "organization"] = "user"
    include_devices: _Truth | UnsetType = UNSET
    include_data_table_rows: _Truth | UnsetType = UNSET
    include_files: _Truth | UnsetType = UNSET


async def import_application(call: Call) -> Response:
    """Import a bundle as a new application of the user, or of an organization.

    Everything is checked first; if anything is wrong, nothing is created. Nobody sees the application before it is
    complete. A large bundle is imported by a job.
    """
    form = FormData(call)
    async with _upload(call) as upload:
        has_file = await _receive(form, upload)
        fields = form.fields_as(NewForm)
        options = _options(fields, NewApplicationOptions)
        owner = _owner(call, fields)
        call.concern(owner)
        input = _input(call, options, has_file=has_file)
        input["ownerType"] = fields.owner_type
        left_out = _left_out(fields)
        if left_out:
            taken = input.get("include") or [each.name for each in PORTABLE]
            input["include"] = [name for name in taken if name not in left_out]
        if has_file:
            await upload.finish(owner)
        output = await _import(
            call, IMPORT_NEW, Ref("userJobs", ROOT, owner), owner, upload, input, fields, options
        )
    if output is None:
        return queued(call, upload.id)
    call.ids = {**call.ids, "application": new_application(upload.id)}
    shown = await call.service.read(call, GetApplication)
    return json_response(call, 201, {"application": shown, "validationErrors": []})


async def import_into_application(call: Call) -> Response:
    """Import a bundle into an application: an uploaded one, one from a URL, or all of another application.

    Everything is checked first; if anything is wrong, nothing is changed. `conflictBehavior` says what happens with a
    resource that the application has already: one of the same name, of the same route and method, e-mail address, key
    or version. A large bundle is imported by a job.
    """
    form = FormData(call)
    async with _upload(call) as upload:
        has_file = await _receive(form, upload)
        fields = form.fields_as(IntoForm)
        options = _options(fields, IntoApplicationOptions)
        for name, value in (("credentialName", options.credential_name), ("repo", options.repo)):
            if value is not UNSET:
                raise Invalid(
                    f"options.{name}: is for imports from a repository, which this server does not make; leave it out."
                )
        input = _input(call, options, has_file=has_file)
        input |= {"conflictBehavior": options.conflict_behavior, "dryRun": options.dry_run}
        application = call.application
        if has_file:
            await upload.finish(application)
        output = await _import(
            call,
            IMPORT_INTO,
            Ref("application", ROOT, application),
            application,
            upload,
            input,
            fields,
            options,
        )
    if output is None:
        return queued(call, upload.id)
    return json_response(call, 200, await call.service.read(call, GetApplication))


# Parts of both.


def _upload(call: Call) -> BundleUpload:
    system = call.service.system
    return BundleUpload(system, system.ids.new(call.now_ms))


async def _receive(form: FormData, upload: BundleUpload) -> bool:
    """Read the whole form, and write its file; the answer is whether there is one."""
    file = await form.next_file("importBundle")
    if file is None:
        return False
    if file.name != "importBundle":
        raise Invalid(f"{file.name[:100]}: the form has a file of this name; name it importBundle.")
    async for piece in file:
        await upload.write(piece)
    if await form.next_file("importBundle") is not None:
        raise Invalid("importBundle: the form has a second file; send one bundle.")
    return True


def _options(fields: IntoForm, type: type[T]) -> T:
    if not isinstance(fields.options, str):
        return type()
    try:
        plain = msgspec.json.decode(fields.options)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise Invalid(f"options: is not JSON: {error}.") from None
    try:
        return msgspec.convert(plain, type)
    except msgspec.ValidationError as error:
        raise invalid(error, "options", type, plain) from None


def _owner(call: Call, fields: NewForm) -> bytes:
    """The user or the organization that will own the application."""
    user: bytes = call.ids["user"]
    given = None if fields.owner_id is UNSET else bytes.fromhex(fields.owner_id)
    if fields.owner_type == "user":
        if given not in (None, user):
            raise Forbidden(
                "ownerId: is another user; leave it out, or give an organization with its ownerType."
            )
        return user
    if given is None:
        raise Invalid("ownerId: is missing; give the id of the organization.")
    try:
        check_access(call, "org", given, call.route.level)
    except NotFound as missing:
        raise Invalid(f"ownerId: {missing.message[0].lower()}{missing.message[1:]}") from None
    return given


def _left_out(fields: NewForm) -> set[str]:
    names = {
        "Device": fields.include_devices,
        "DataTableRow": fields.include_data_table_rows,
        "File": fields.include_files,
        "PrivateFile": fields.include_files,
    }
    return {name for name, value in names.items() if value == "false"}


def _input(call: Call, options: NewApplicationOptions, *, has_file: bool) -> Doc:
    """The parameters of the job, as its log shows them. Raises unless there is exactly one source."""
    from_application = getattr(options, "from_application_id", UNSET)
    given = [
        name
        for name, is_given in (
            ("importBundle", has_file),
            ("importUrl", options.import_url is not UNSET),
            ("fromApplication", from_application is not UNSET),
        )
        if is_given
    ]
    if len(given) != 1:
        raise Invalid(
            "importBundle: give exactly one of importBundle, options.importUrl and options.fromApplicationId."
        )
    input: Doc = {"importSourceType": given[0]}
    if options.include is not UNSET:
        input["include"] = options.include
    if isinstance(options.import_url, str):
        check_import_url(options.import_url, private=may_be_private(call.service.system, options.import_url))
        input["importUrl"] = options.import_url.partition("?")[0]  # the query may be a secret
    if isinstance(from_application, str):
        try:
            check_access(call, "application", bytes.fromhex(from_application), Level.READ)
        except (NotFound, Forbidden) as refusal:
            raise Invalid(f"options.fromApplicationId: {refusal.message}") from None
        input["fromApplicationId"] = from_application.lower()
    return input


async def _import(
    call: Call,
    kind: JobKind,
    owner: Ref,
    resource: bytes,
    upload: BundleUpload,
    input: Doc,
    fields: IntoForm,
    options: NewApplicationOptions,
) -> Doc | None:
    """Queue the job, and wait for it or for its check; its output, or None if it goes on. Raises what it refuses."""
    system = call.service.system
    limits, imports = system.limits, system.component(Imports)
    is_small = not options.force_job and upload.size_bytes <= limits.import_inline_bytes_max
    has_mail = fields.email is not UNSET or not is_small
    message = QueueJob(
        operation=kind.operation,
        resource=resource,
        input=input,
        by=call.principal.creator,
        level=job_level(call, owner),
        user=call.principal.user_id,
        email=fields.email or None,
        callback_url=options.callback_url or None,
        data=data_of(options.import_url) if isinstance(options.import_url, str) else None,
        result_to=None if has_mail else [],
        id=upload.id,
    )
    with imports.waiting(upload.id) as awaited:
        await system.ask(owner, message)
        await awaited.wait(system.component(JobQueue), limits.import_wait_s, for_check=not is_small)
        if awaited.refusal is not None:
            raise awaited.refusal
    return job_output(call, owner.id, upload.id)


_ALSO = {
    413: "The bundle is too large, or has more in it than an import takes",
    429: "Another import or clone of the owner, or into the application, is not finished",
    507: "The disk is full; nothing was stored",
}

ROUTES = (
    post(
        "/applications/import",
        "applications.import",
        "Import a bundle as a new application",
        import_application,
        uses=(GetApplication,),
        new_id="application",
        streams_body=True,
        body_limit="bundle_bytes_max",
        form=NewForm,
        query=SummaryChoice,
        reply=NewApplication,
        ok=201,
        job=JobQueued,
        problems=PartProblems,
        area="organization",
        also=_ALSO,
    ),
    post(
        APP_PATH + "/import",
        "application.import",
        "Import a bundle into an application",
        import_into_application,
        uses=(GetApplication,),
        streams_body=True,
        body_limit="bundle_bytes_max",
        form=IntoForm,
        query=SummaryChoice,
        reply=ApplicationView,
        job=JobQueued,
        problems=PartProblems,
        also=_ALSO,
    ),
)
