"""The format of a bundle: a zip with the resources of one application (docs/reference/bundles.md).

Entries of the zip:

- `resources/<Name>.jsonl`: a `Line` of JSON for each resource, for each name that was exported. `body` is
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
  when the device is deleted; in alarm rules too, since one without devices is about all;
- a resource that cannot be without it (a version without its workflow) is refused.

Secrets never leave the server. Where a record has one, its body has `REMOVED` in that place, and `more.removed` names
the path of the field. An import puts a random text there that nobody knows, so what was protected stays protected.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, UnsetType, field

from trunkline.actors.access.feature import FEATURE as ACCESS
from trunkline.actors.connections.features import FEATURES as CONNECTIONS
from trunkline.actors.core.records.feature import by_name
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.portable import Portable, ResourceName
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Id, IsoText, Name
from trunkline.actors.data.features import FEATURES as DATA
from trunkline.actors.fleet.features import FEATURES as FLEET
from trunkline.actors.platform.applications.messages import BlobTtl
from trunkline.actors.platform.applications.readme import README
from trunkline.actors.platform.features import FEATURES as PLATFORM
from trunkline.actors.presentation.experience.portable import VersionPart
from trunkline.actors.presentation.features import FEATURES as PRESENTATION
from trunkline.actors.workflows.features import FEATURES as WORKFLOWS

FORMAT: Final = "trunkline-application"
VERSION: Final = 1
"""Raised with every change of the format, additions included. A reader takes its own version and older ones."""

MANIFEST: Final = "manifest.json"


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


_FOUND: Final[dict[str, Portable]] = by_name(
    (portable.name, portable)
    for feature in (*PLATFORM, *WORKFLOWS, *FLEET, ACCESS, *DATA, *CONNECTIONS, *PRESENTATION)
    for portable in feature.portable
)
BY_NAME: Final[dict[ResourceName, Portable]] = {name: _FOUND[name] for name in get_args(ResourceName)}
PORTABLE: Final = tuple(BY_NAME.values())
"""All portable resources, as the packages say in their `feature.py`, in an order in which they can be created."""

IN_MANIFEST: Final = (APPLICATION, README)
"""The kinds of records that are in the manifest."""

TOKEN_OF: Final = "~token-of-webhook-"  # noqa: S105
"""In a text of a bundle, what stands before the id of a webhook and `~` in the place of its token."""


def rows_path(table: str) -> str:
    """The entry with the rows of a table, which is given by its id in the bundle."""
    return f"rows/{table}.jsonl"


def version_path(version: str, name: VersionPart) -> str:
    """The entry with the endpoints or the views of a named version of the experience."""
    return f"versions/{version}/{name}.jsonl"


def contents_path(portable: Portable, id: str) -> str:
    """The entry with the content of a file or a notebook."""
    return f"{portable.contents}/{id}"
