"""The format of a bundle: a zip with the resources of one application (docs/reference/bundles.md).

Entries of the zip:

- `resources/<Name>.jsonl`: a `Line` of JSON for each resource, for each name of `PORTABLE` that was exported. `body` is
  a body with which the API creates such a resource, and `more` (the struct `Portable.more`) is what that body cannot
  say. In one file a resource stands behind those that it refers to by its own fields (a parent, a gateway, a layout).
- `rows/<table>.jsonl`: a `Line` for each row of a data table, in order of creation. A row that is older than a required
  column may be null in it.
- `versions/<version>/ExperienceEndpoint.jsonl` and `.../ExperienceView.jsonl`: a `Line` for each endpoint and view of a
  named version of the experience, with the id that it has, or had, in `develop`.
- `files/<file>`, `privateFiles/<file>`, `notebooks/<notebook>`: contents. The line of the resource has size and hash.
- `manifest.json`: the `Manifest`, the last entry.

Ids. Every text of 24 hexadecimal digits anywhere in a bundle, also inside of longer texts, that is the id of a resource
of the bundle (rows excepted) stands for that resource; `Manifest.application_id` stands for the application. An import
gives each resource a new id and replaces them all, but not in contents, which are bytes with a hash. Lines of globals
and of the settings of `develop` have no id.

References to what is not in the bundle (devices, if they were not exported) are in it as they are. An import keeps such
a reference if the target application has that record, of the kind and class that the field needs. Otherwise:

- an item of a list (`deviceIds` of a group) and a field that may be left out (`parentId`, `credentialName`) are left
  out; a peripheral without its gateway becomes a standalone device;
- inside of blocks of dashboards, nodes of workflows, queries and other texts it stays, as it stays in a stored record
  when the device is deleted;
- a resource that cannot be without it (a version without its workflow) is refused.

Secrets never leave the server. Where a record has one, its body has `REMOVED` in that place, and `more.removed` names
the path of the field. An import puts a random text there that nobody knows, so what was protected stays protected.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

from trunkline.actors.access.certificates import AUTHORITIES, AuthorityPost
from trunkline.actors.connections.integrations.resource import INTEGRATION, IntegrationPost
from trunkline.actors.connections.webhooks.kind import WEBHOOK
from trunkline.actors.connections.webhooks.resource import WebhookPost
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Description, Id, IsoText, Name
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE
from trunkline.actors.data.files.messages import FilePost
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.messages import RowBody, TablePost
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import DevicePost
from trunkline.actors.fleet.recipes.resource import RECIPES, RecipePost
from trunkline.actors.platform.applications.messages import BlobTtl, Global
from trunkline.actors.platform.applications.readme import README
from trunkline.actors.presentation.dashboards.kind import DASHBOARD
from trunkline.actors.presentation.dashboards.messages import DashboardPost
from trunkline.actors.presentation.experience import kind as experience
from trunkline.actors.presentation.experience.endpoints import EndpointPost
from trunkline.actors.presentation.experience.groups import GroupPost
from trunkline.actors.presentation.experience.users import ExperienceUserPost
from trunkline.actors.presentation.experience.versions import VersionPatch, VersionPost
from trunkline.actors.presentation.experience.views import ViewPost
from trunkline.actors.presentation.notebooks.resource import NOTEBOOK, LongName, NotebookPost
from trunkline.actors.presentation.notebooks.resource_jobs import RESOURCE_JOBS, ResourceJobPost
from trunkline.actors.workflows.flows.bodies import FlowPost, FlowVersionPost
from trunkline.actors.workflows.flows.kind import FLOW, FLOW_VERSION

FORMAT: Final = "trunkline-application"
VERSION: Final = 1
"""Raised with every change of the format, additions included. A reader takes its own version and older ones."""

MANIFEST: Final = "manifest.json"
REMOVED: Final = "Removed-by-the-export-1"
"""Stands in the place of a secret. It has the form of a password, so that the body is one that the API accepts."""

ResourceName = Literal[
    "ApplicationCertificateAuthority",
    "Dashboard",
    "DataTableRow",
    "DataTable",
    "DeviceRecipe",
    "Device",
    "ExperienceDevelopConfig",
    "ExperienceEndpoint",
    "ExperienceFlowVersion",
    "ExperienceGroup",
    "ExperienceUser",
    "ExperienceVersion",
    "ExperienceView",
    "File",
    "FlowVersion",
    "Flow",
    "Global",
    "Integration",
    "Notebook",
    "PrivateFile",
    "Webhook",
    "ResourceJob",
]
"""The names of resources, as the options of an import have them."""
VersionPart = Literal["ExperienceView", "ExperienceEndpoint"]
"""What a named version of the experience has copies of, in the order of creation."""


class BundleApplication(Body, frozen=True):
    """The application itself, as far as it is portable: the fields with which one is created, and the readme.

    Names that are unique in a server (the slug) and dates that concern tokens are left out.
    """

    name: Name
    description: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET
    endpoint_default_cors: bool | UnsetType = field(default=UNSET, name="endpointDefaultCors")
    blob_url_ttl: BlobTtl | UnsetType = field(default=UNSET, name="blobUrlTTL")
    readme: Annotated[str, Meta(max_length=131_072)] | UnsetType = UNSET


class Manifest(Body, frozen=True):
    """The entry `manifest.json`. `resources` has the number of lines for each name that was exported, also 0."""

    format: Literal["trunkline-application"]
    version: int
    exported_at: IsoText
    application_id: Id
    application: BundleApplication
    resources: dict[ResourceName, int]


class Line(Body, frozen=True):
    """A line of a `.jsonl` entry: one resource, or one row."""

    body: dict[str, Any]
    id: Id | UnsetType = UNSET
    more: dict[str, Any] = field(default_factory=dict)


# What the body of a resource cannot say.


class NoMore(Body, frozen=True):
    """The body says everything."""


class WithSecrets(Body, frozen=True):
    """The paths of the fields whose secrets were removed, such as `mqttConfig.password` or `headers.0.headerValue`."""

    removed: Annotated[list[Description], Meta(max_length=1000)] = field(default_factory=list)


class WithContent(Body, frozen=True):
    """The size and the SHA-256 (in hex) of the content; nothing for a directory, or a notebook without one."""

    size: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | UnsetType = UNSET


class NotebookMore(WithContent, frozen=True):
    """The content of a notebook, and the name of its file."""

    file_name: LongName | UnsetType = UNSET


class FlowMore(Body, frozen=True):
    """The version of a workflow that runs, if that is not `develop`."""

    default_version_id: Id | UnsetType = UNSET


class FlowVersionMore(Body, frozen=True):
    """The workflow of a version."""

    flow_id: Id


# The table.


class Portable(NamedTuple):
    """A kind of resource in bundles.

    `kinds` are the kinds of records that it takes with it, its own first; none for what is a part of another record.
    `body` and `more` are the types of the two parts of a line. `option` is the option of an export without which it is
    left out. `contents` is the folder of the zip with what belongs to each resource.
    """

    name: ResourceName
    kinds: tuple[Kind, ...]
    body: Any
    more: type[Body] = NoMore
    option: str | None = None
    contents: str | None = None

    @property
    def path(self) -> str:
        """The entry of the zip with the lines. Rows have one for each table, `rows_path`."""
        return f"resources/{self.name}.jsonl"


PORTABLE: Final[tuple[Portable, ...]] = (
    Portable("Global", (), Global),
    Portable("ApplicationCertificateAuthority", (AUTHORITIES.kind,), AuthorityPost),
    # Directories stand before what is in them. Files whose content has not arrived are left out.
    Portable("File", (FILE,), FilePost, WithContent, option="includeFiles", contents="files"),
    Portable(
        "PrivateFile",
        (PRIVATE_FILE,),
        FilePost,
        WithContent,
        option="includePrivateFiles",
        contents="privateFiles",
    ),
    Portable("DataTable", (DATA_TABLE,), TablePost),
    Portable("DataTableRow", (), RowBody, option="includeDataTableRows", contents="rows"),
    Portable("Device", (DEVICE,), DevicePost, option="includeDevices"),
    Portable("DeviceRecipe", (RECIPES.kind,), RecipePost),
    Portable("Webhook", (WEBHOOK,), WebhookPost, WithSecrets),
    Portable("Integration", (INTEGRATION,), IntegrationPost, WithSecrets),
    # Groups say nothing of their users and endpoints: these name their groups.
    Portable("ExperienceGroup", (experience.GROUP,), GroupPost),
    Portable("ExperienceUser", (experience.USER,), ExperienceUserPost, WithSecrets),
    Portable("ExperienceView", (experience.VIEW,), ViewPost),
    Portable("ExperienceEndpoint", (experience.ENDPOINT,), EndpointPost),
    Portable("ExperienceDevelopConfig", (experience.DEVELOP,), VersionPatch),
    Portable(
        "ExperienceVersion",
        (experience.VERSION, experience.ENDPOINT_COPY, experience.VIEW_COPY),
        VersionPost,
        contents="versions",
    ),
    Portable("Flow", (FLOW,), FlowPost, FlowMore),
    Portable("FlowVersion", (FLOW_VERSION,), FlowVersionPost, FlowVersionMore),
    # The versions of workflows of the class experience.
    Portable("ExperienceFlowVersion", (FLOW_VERSION,), FlowVersionPost, FlowVersionMore),
    Portable("Dashboard", (DASHBOARD,), DashboardPost, WithSecrets),
    Portable("Notebook", (NOTEBOOK,), NotebookPost, NotebookMore, contents="notebooks"),
    Portable("ResourceJob", (RESOURCE_JOBS.kind,), ResourceJobPost),
)
"""All portable resources, in an order in which they can be created."""

TOKEN_OF: Final = "~token-of-webhook-"  # noqa: S105
"""In a text of a bundle, what stands before the id of a webhook and `~` in the place of its token."""

BY_NAME: Final = {portable.name: portable for portable in PORTABLE}

IN_MANIFEST: Final = (APPLICATION, README)
"""The kinds of records that are in the manifest."""

_OTHER_OWNER: Final = "It belongs to a user or an organization."
_GIVES_ACCESS: Final = "It gives access, or is a secret."
_HISTORY: Final = "It tells what has happened in this application."
_NAME_OF_SERVER: Final = "Its name is unique in the server, so a second application could not have it."
_RELEASE: Final = "It says what runs on devices of this application."

NOT_PORTABLE: Final[dict[str, str]] = {
    "user": _OTHER_OWNER,
    "org": _OTHER_OWNER,
    "orgMember": _OTHER_OWNER,
    "orgMembership": _OTHER_OWNER,
    "orgInvite": _OTHER_OWNER,
    "orgInvited": _OTHER_OWNER,
    "recentItems": _OTHER_OWNER,
    "ssoLogins": _OTHER_OWNER,
    "twoFactor": _OTHER_OWNER,
    "endedLogins": _OTHER_OWNER,
    "auditLog": _OTHER_OWNER,
    "apiToken": _GIVES_ACCESS,
    "applicationKey": _GIVES_ACCESS,
    "applicationCertificate": _GIVES_ACCESS,
    "credential": _GIVES_ACCESS,
    "deletedDevice": _HISTORY,
    "event": _HISTORY,
    "job": _HISTORY,
    "edgeDeployment": _RELEASE,
    "embeddedDeployment": _RELEASE,
    "experienceDomain": _NAME_OF_SERVER,
    "experienceSlug": _NAME_OF_SERVER,
}
"""The kinds of records that are in no bundle, each with the reason."""


def rows_path(table: str) -> str:
    """The entry with the rows of a table, which is given by its id in the bundle."""
    return f"rows/{table}.jsonl"


def version_path(version: str, name: VersionPart) -> str:
    """The entry with the endpoints or the views of a named version of the experience."""
    return f"versions/{version}/{name}.jsonl"


def contents_path(portable: Portable, id: str) -> str:
    """The entry with the content of a file or a notebook."""
    return f"{portable.contents}/{id}"
