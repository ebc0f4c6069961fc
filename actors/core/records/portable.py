"""How a resource of an application is exported and imported, which its package says once in its `feature.py`.

Owns the declaration, and the messages that create or change a record of a plain resource. Does not own the lines of an
export (`export_lines.py`), the form of a bundle, nor which id a record gets (`actors/portability/bundles/`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.export_lines import Lines, PlainLines, Rank
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.messages import CreateRecord, Creator, PatchRecord
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Description

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot

ResourceName = Literal[
    "Global",
    "ApplicationCertificateAuthority",
    "File",
    "PrivateFile",
    "DataTable",
    "DataTableRow",
    "Device",
    "DeviceRecipe",
    "AlarmGroup",
    "AlarmRule",
    "Webhook",
    "Integration",
    "ExperienceGroup",
    "ExperienceUser",
    "ExperienceView",
    "ExperienceEndpoint",
    "ExperienceDevelopConfig",
    "ExperienceVersion",
    "Flow",
    "FlowVersion",
    "ExperienceFlowVersion",
    "Dashboard",
    "Notebook",
    "ResourceJob",
]
"""The names of all portable resources, in an order in which they can be created: what a resource refers to by fields
of its own stands before it."""


# What the body of a resource cannot say.


class NoMore(Body, frozen=True):
    """The body says everything."""


class WithSecrets(Body, frozen=True):
    """The paths of the fields whose secrets were removed, such as `mqttConfig.password` or `headers.0.headerValue`."""

    removed: Annotated[list[Description], Meta(max_length=1000)] = msgspec.field(default_factory=list)


class WithContent(Body, frozen=True):
    """The size and the SHA-256 (in hex) of the content; nothing for a directory, or a notebook without one."""

    size: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | UnsetType = UNSET


# The declaration.


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
    copies: dict[str, list[Any]] = field(default_factory=dict)

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

Get = Callable[[str, bytes], bytes | None]
"""Reads a value of the target: of a snapshot, or of a scratch copy."""


def _nothing(*_: object) -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Portable:
    """A kind of resource in bundles.

    `kinds` are the kinds of records that it takes with it, its own first; none for what is a part of another record.
    Its lines have no id where `has_id` is false: there is one, or they are found by a key. `body` and `more` are the
    types of the two parts of a line. `option` is the option of an export without which it is left out. `contents` is
    the folder of the zip with what belongs to each resource.

    `read` yields the lines of an application from a snapshot, and `scan` the records with contents, if not all in the
    order of ids. `make` yields the messages that create the record of a line, or change the one that it stands for.
    They are those of the API's calls, with an id that is given, so everything that these check and keep (indexes,
    unique texts, counts, sealed fields) holds for imports as well. Rows of data tables have neither: they are read and
    inserted by tables.

    `created_by` and `changed_by` are the operations of the API that create and change such a record. Who imports it
    must be allowed those that need more than an import does (`actors/portability/bundles/rights.py`).

    `same` are the fields by which a record of the target is the same as that of a line, the first of them indexed; or
    `find` finds it by the body. `references` are fields with ids (or names, `named`) of records that may be left out if
    they do not exist in the target.
    """

    name: ResourceName
    created_by: str
    changed_by: str
    body: Any
    kinds: tuple[Kind, ...] = ()
    has_id: bool = True
    more: type[Body] = NoMore
    option: str | None = None
    contents: str | None = None
    read: Callable[[Snapshot, bytes], Lines] = _nothing
    scan: Callable[[Snapshot, bytes], Iterator[tuple[bytes, Doc]]] | None = None
    make: Callable[[Item], Iterator[Ask]] = _nothing
    same: tuple[str, ...] = ("name",)
    find: Callable[[Get, bytes, Doc], bytes | None] | None = None
    references: Mapping[str, Kind] = field(default_factory=dict)
    named: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The entry of the zip with the lines. Rows have one for each table (`rows_path`)."""
        return f"resources/{self.name}.jsonl"

    @property
    def kind(self) -> Kind | None:
        """The kind of the records that its lines stand for, if these have ids."""
        return self.kinds[0] if self.has_id and self.kinds else None


def portable(
    name: ResourceName,
    resource: Resource,
    actor: str = "application",
    *,
    without: frozenset[str] = frozenset(),
    secrets: frozenset[str] = frozenset(),
    rank: Callable[[Snapshot, bytes], Rank] | None = None,
    **said: Any,
) -> Portable:
    """The declaration of a plain resource that `actor` owns.

    What its lines are follows from the resource, and from `without`, `secrets` and `rank` (`PlainLines`). `said` has
    its `created_by`, and what is otherwise than for most.
    """
    follows: dict[str, Any] = {
        "changed_by": f"{resource.name}.patch",
        "body": resource.post,
        "kinds": (resource.kind,),
        "read": PlainLines(resource, without, secrets, rank),
        "make": partial(make_plain, resource, actor),
    }
    return Portable(name=name, **follows | said)


def make_plain(resource: Resource, actor: str, item: Item) -> Iterator[Ask]:
    """The message that creates or changes the record of a plain resource."""
    ref = Ref(actor, ROOT if actor == "application" else item.application, item.application)
    if item.existing is None:
        yield ref, CreateRecord(resource=resource.name, body=item.body, by=item.by, import_id=item.id)
    else:
        patch = item.patch(resource.patch)
        yield ref, PatchRecord(resource=resource.name, record=item.id, body=patch, by=item.by)
