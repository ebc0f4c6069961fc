"""What an import does with a line: the messages that create the record, or change the one that it stands for.

There is one entry for each name of `PORTABLE`. The messages are those of the API's calls, with an id that is given, so
everything that these check and keep (indexes, unique texts, counts, sealed fields) holds for imports as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from trunkline.actors.access.certificates import AUTHORITIES
from trunkline.actors.connections.credentials.resource import CREDENTIAL
from trunkline.actors.connections.integrations.resource import INTEGRATIONS
from trunkline.actors.connections.webhooks.resource import WEBHOOKS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.messages import CreateRecord, Creator, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE, TREES, TreeName
from trunkline.actors.data.files.messages import CreateFile, FilePatch, PatchFile, SetContent
from trunkline.actors.data.files.paths import split_path
from trunkline.actors.data.files.tree import Tree
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.messages import AddColumn, CreateDataTable, PatchDataTable, TablePatch
from trunkline.actors.fleet.devices.record.kind import DEVICE, GATEWAYS
from trunkline.actors.fleet.devices.record.messages import CreateDevice, DevicePatch, PatchDevice
from trunkline.actors.fleet.recipes.resource import RECIPES
from trunkline.actors.platform.applications.messages import GlobalPatch, PatchGlobals
from trunkline.actors.presentation.dashboards.kind import DASHBOARD
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS
from trunkline.actors.presentation.experience.copies import Copied, ImportVersion
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.kind import DOMAIN, ENDPOINT, GROUP, SLUG, USER, VERSION, VIEW
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS
from trunkline.actors.presentation.experience.versions import VERSIONS, VersionPatch
from trunkline.actors.presentation.experience.views import VIEWS
from trunkline.actors.presentation.notebooks.messages import ImportNotebook
from trunkline.actors.presentation.notebooks.resource import NOTEBOOKS
from trunkline.actors.presentation.notebooks.resource_jobs import RESOURCE_JOBS
from trunkline.actors.workflows.flows.bodies import FlowPatch
from trunkline.actors.workflows.flows.kind import FLOW, FLOW_VERSION
from trunkline.actors.workflows.flows.messages import (
    CreateFlow,
    CreateFlowVersion,
    PatchFlow,
    VersionCreation,
)
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.object_store import Stored

if TYPE_CHECKING:
    from trunkline.actors.core.records.resource import Resource
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.actors.core.values.structs import Body
    from trunkline.actors.portability.bundles.portable import Portable

Get = Callable[[str, bytes], bytes | None]
"""Reads a value of the target: of a snapshot, or of a scratch copy."""


@dataclass(slots=True)
class Item:
    """A resource that is about to be imported: `id` is that of the record, `body` and `more` have the new ids.

    `existing` is the record that is to be replaced, None to create one. `copies` are the endpoints and views of a
    version.
    """

    application: bytes
    id: bytes
    body: Any
    more: Any
    by: Creator
    existing: Doc | None = None
    copies: dict[str, list[Copied]] = field(default_factory=dict)

    @property
    def files(self) -> Ref:
        """The actor of the files."""
        return Ref("fileTree", self.application, self.application)

    @property
    def experience(self) -> Ref:
        """The actor of the experience."""
        return Ref("experience", self.application, self.application)

    def patch(self, type: type[Body]) -> Any:
        """The body as one that changes a record. Raises `Invalid` if it differs in what never changes."""
        assert self.existing is not None
        doc = msgspec.to_builtins(self.body)
        names = {each.encode_name for each in msgspec.structs.fields(type)}
        for name in doc.keys() - names:
            if name in self.existing and self.existing[name] != doc[name] and name not in _COMPARED:
                raise Invalid(
                    f"{name}: the record that is to be replaced has another one, and it never changes; "
                    "rename or delete that record."
                )
        # A secret that the export has removed stays as it is.
        names -= set(getattr(self.more, "removed", ()))
        return msgspec.convert({name: value for name, value in doc.items() if name in names}, type)


_COMPARED: Final = frozenset({"columns", "password", "version"})
"""Fields that only the creation of a record takes, and that are compared in other ways."""

Make = Callable[[Item], "Iterator[Ask]"]
Find = Callable[[Get, bytes, "Doc"], bytes | None]
"""Finds the record of an application that is the same as the one of a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """How lines of one name are imported.

    `kind` is that of the records; `same` are the fields by which a record of the target is the same as that of a line,
    the first of them indexed; or `find` finds it. `references` are fields with ids (or names, `named`) of records that
    may be left out if they do not exist in the target.
    """

    make: Make
    kind: Kind | None = None
    find: Find | None = None
    same: tuple[str, ...] = ("name",)
    references: Mapping[str, Kind] = field(default_factory=dict)
    named: Mapping[str, Kind] = field(default_factory=dict)


def _plain(resource: Resource, actor: str = "application") -> Make:
    def make(item: Item) -> Iterator[Ask]:
        parent = ROOT if actor == "application" else item.application
        ref = Ref(actor, parent, item.application)
        if item.existing is None:
            yield (
                ref,
                CreateRecord(resource=resource.name, body=item.body, by=item.by, import_id=item.id),
            )
        else:
            patch = item.patch(resource.patch)
            yield ref, PatchRecord(resource=resource.name, record=item.id, body=patch, by=item.by)

    return make


def _globals(item: Item) -> Iterator[Ask]:
    patch = msgspec.convert(msgspec.to_builtins(item.body), GlobalPatch)
    yield Ref("application", ROOT, item.application), PatchGlobals(body=[patch])


def _device(item: Item) -> Iterator[Ask]:
    ref = Ref("device", item.application, item.id)
    if item.existing is None:
        yield ref, CreateDevice(body=item.body, is_bulk=True)
    else:
        yield ref, PatchDevice(body=item.patch(DevicePatch))


def _table(item: Item) -> Iterator[Ask]:
    ref = Ref("dataTable", item.application, item.id)
    if item.existing is None:
        yield ref, CreateDataTable(body=item.body)
        return
    yield ref, PatchDataTable(body=item.patch(TablePatch))
    present = {column["name"]: column for column in item.existing["columns"]}
    for column in () if item.body.columns is UNSET else item.body.columns:
        other = present.get(column.name)
        if other is None:
            yield ref, AddColumn(body=column)
        elif (other["dataType"], other["constraint"]) != (column.data_type, column.constraint):
            raise Invalid(
                f"columns: the table that is to be replaced has a column {column.name} of another type or constraint; "
                "remove that column first."
            )


def _flow(item: Item) -> Iterator[Ask]:
    ref = Ref("flow", item.application, item.id)
    if item.existing is None:
        yield ref, CreateFlow(body=item.body, by=item.by, is_import=True)
    else:
        yield ref, PatchFlow(body=item.patch(FlowPatch), by=item.by, is_import=True)


def _flow_version(item: Item) -> Iterator[Ask]:
    ref = Ref("flow", item.application, bytes.fromhex(item.more.flow_id))
    choice = VersionCreation(allow_replacement=item.existing is not None)
    yield ref, CreateFlowVersion(body=item.body, query=choice, by=item.by, import_id=item.id)


def default_version(item: Item) -> Iterator[Ask]:
    """The message that sets the version of a workflow that runs, once its versions exist."""
    body = FlowPatch(default_version_id=item.more.default_version_id)
    yield Ref("flow", item.application, item.id), PatchFlow(body=body, by=item.by, is_import=True)


def _develop(item: Item) -> Iterator[Ask]:
    record = item.application
    yield item.experience, PatchRecord(resource=VERSIONS.name, record=record, body=item.body, by=item.by)


def _version(item: Item) -> Iterator[Ask]:
    patch = None if item.existing is None else item.patch(VersionPatch)
    yield (
        item.experience,
        ImportVersion(
            id=item.id,
            body=item.body,
            patch=patch,
            endpoints=item.copies.get("ExperienceEndpoint", []),
            views=item.copies.get("ExperienceView", []),
            by=item.by,
        ),
    )


def _file(tree: TreeName) -> Make:
    def make(item: Item) -> Iterator[Ask]:
        if item.existing is None:
            yield item.files, CreateFile(tree=tree, body=item.body, by=item.by, id=item.id)
        elif item.body.type == "file":
            # Its content is written when the file is changed.
            yield item.files, SetContent(tree=tree, file=item.id, content=b"", stored=Stored(0, ""))
            body = FilePatch(content_type=item.body.content_type, file_dimensions=item.body.file_dimensions)
            yield item.files, PatchFile(tree=tree, file=item.id, body=body)

    return make


def _notebook(item: Item) -> Iterator[Ask]:
    """A notebook that is replaced keeps its file."""
    if item.existing is not None:
        yield from _plain(NOTEBOOKS, "notebooks")(item)
        return
    ref = Ref("notebooks", item.application, item.application)
    name = item.more.file_name or "notebook.ipynb"
    yield ref, ImportNotebook(id=item.id, body=item.body, by=item.by, name=name)


def _at_path(tree: TreeName) -> Find:
    """Finds what is at the path of a file or a directory, if it is of the same type."""

    def find(get: Get, application: bytes, body: Doc) -> bytes | None:
        try:
            directory = split_path(str(body.get("parentDirectory") or ""), "parentDirectory")
            names = (*directory, *split_path(str(body.get("name")), "name"))
        except Invalid:
            return None
        found = Tree(get, application, TREES[tree]).find(names)
        return found.id if found is not None and found.doc["type"] == body.get("type") else None

    return find


_DEVICES: Final = {"gatewayId": DEVICE, "parentId": DEVICE}

INCOMING: Final[Mapping[str, Incoming]] = {
    "Global": Incoming(make=_globals, same=("key",)),
    "ApplicationCertificateAuthority": Incoming(make=_plain(AUTHORITIES), kind=AUTHORITIES.kind),
    "DataTable": Incoming(make=_table, kind=DATA_TABLE),
    "Device": Incoming(make=_device, kind=DEVICE, references=_DEVICES),
    "DeviceRecipe": Incoming(make=_plain(RECIPES), kind=RECIPES.kind, references=_DEVICES),
    "Webhook": Incoming(make=_plain(WEBHOOKS), kind=WEBHOOKS.kind),
    "Integration": Incoming(
        make=_plain(INTEGRATIONS), kind=INTEGRATIONS.kind, named={"credentialName": CREDENTIAL}
    ),
    "ExperienceGroup": Incoming(
        make=_plain(GROUPS, "experience"),
        kind=GROUP,
        references={
            "deviceIds": DEVICE,
            "parentId": GROUP,
            "experienceUserIds": USER,
            "experienceEndpointIds": ENDPOINT,
        },
    ),
    "ExperienceUser": Incoming(
        make=_plain(EXPERIENCE_USERS, "experience"),
        kind=USER,
        same=("email",),
        references={"experienceGroupIds": GROUP},
    ),
    "ExperienceView": Incoming(
        make=_plain(VIEWS, "experience"), kind=VIEW, same=("name", "viewType"), references={"layoutId": VIEW}
    ),
    "ExperienceEndpoint": Incoming(
        make=_plain(ENDPOINTS, "experience"),
        kind=ENDPOINT,
        same=("route", "method"),
        references={"experienceGroupIds": GROUP},
    ),
    "ExperienceDevelopConfig": Incoming(make=_develop),
    "ExperienceVersion": Incoming(
        make=_version, kind=VERSION, same=("version",), references={"domainIds": DOMAIN, "slugIds": SLUG}
    ),
    "Flow": Incoming(make=_flow, kind=FLOW, same=("name", "flowClass")),
    "FlowVersion": Incoming(make=_flow_version, kind=FLOW_VERSION, same=("version", "flowId")),
    "ExperienceFlowVersion": Incoming(make=_flow_version, kind=FLOW_VERSION, same=("version", "flowId")),
    "Dashboard": Incoming(make=_plain(DASHBOARDS), kind=DASHBOARD),
    "File": Incoming(make=_file("file"), kind=FILE, find=_at_path("file")),
    "PrivateFile": Incoming(make=_file("privateFile"), kind=PRIVATE_FILE, find=_at_path("privateFile")),
    "Notebook": Incoming(make=_notebook, kind=NOTEBOOKS.kind),
    "ResourceJob": Incoming(make=_plain(RESOURCE_JOBS), kind=RESOURCE_JOBS.kind),
}
"""By name of the resource. Rows of data tables are imported in arrays (`creation.py`)."""

WITH_CONTENT: Final = (CreateFile, SetContent, ImportNotebook)
"""Messages in which a content is named when it was written."""


# The body of a line.


def decode_body(portable: Portable, body: Doc, more: Doc) -> tuple[Any, Any]:
    """Both parts of a line as their types. Raises `Invalid`."""
    try:
        # By way of JSON, so that exactly what the API takes is taken.
        return (
            msgspec.json.decode(msgspec.json.encode(body), type=portable.body),
            msgspec.json.decode(msgspec.json.encode(more), type=portable.more),
        )
    except msgspec.ValidationError as error:
        raise Invalid(f"{error}.") from None


def put_secrets(body: Doc, removed: list[str], secret: str, *, keep: bool) -> None:
    """Put `secret`, a text that nobody knows, in the place of each secret that the export has removed.

    `keep`: the record exists, and what is left out of an object keeps its secret: a field, or a whole list of objects
    with secrets. `Item.patch` leaves out the fields of the body itself, which may be required. Raises `Invalid` for a
    wrong path.
    """
    left_out: dict[tuple[int, str], Doc] = {}
    for path in removed:
        holder: Any = body
        list_field: tuple[Doc, str] | None = None
        *steps, last = path.split(".")
        try:
            for step in steps:
                if isinstance(holder, list):
                    holder = holder[int(step)]
                else:
                    if list_field is None and isinstance(holder[step], list):
                        list_field = (holder, step)
                    holder = holder[step]
            if not isinstance(holder[last], str):
                raise TypeError
        except (KeyError, IndexError, TypeError, ValueError):
            raise Invalid(f"more.removed: the body has no text at {path[:100]}.") from None
        if keep and steps:
            owner, name = list_field or (holder, last)
            left_out[id(owner), name] = owner
        else:
            holder[last] = secret
    for (_, name), owner in left_out.items():
        del owner[name]


def drop_missing(
    resource: str, body: Doc, application: bytes, known: Callable[[str], bool], get: Get
) -> None:
    """Leave out references to records that are neither in the bundle (`known`) nor in the target."""
    incoming = INCOMING[resource]

    def exists(name: str, kind: Kind, id: Any) -> bool:
        if not isinstance(id, str) or len(id) != 2 * keys.ID_BYTES or known(id.lower()):
            return True  # also what is no id: the check of the body says so
        try:
            raw = records.raw_of(get, kind, application, bytes.fromhex(id))
        except ValueError:
            return True
        return raw is not None and _fits(name, decode(raw))

    for name, kind in incoming.references.items():
        value = body.get(name)
        if isinstance(value, list):
            body[name] = [each for each in value if exists(name, kind, each)]
        elif value is not None and not exists(name, kind, value):
            del body[name]
            if name == "gatewayId" and body.get("deviceClass") == "peripheral":
                body["deviceClass"] = "standalone"
    for name, kind in incoming.named.items():
        text = body.get(name)
        if (
            isinstance(text, str)
            and get(keys.UNIQUE, keys.unique_key(kind.name, application, "name", text)) is None
        ):
            del body[name]


def _fits(name: str, doc: Doc) -> bool:
    if name == "gatewayId":
        return doc["deviceClass"] in GATEWAYS
    if name == "parentId" and "deviceClass" in doc:
        return bool(doc["deviceClass"] == "system")
    return True
