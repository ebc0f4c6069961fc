"""The records of notebooks. Their files are contents (`actors/core/contents/`); nothing executes them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records.kind import Doc, Kind, NamedContents
from trunkline.actors.core.records.owner import check_reference
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.read_context import Ids, ReadContext
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.changes import Removable, changes_of
from trunkline.actors.core.values.structs import Body, View
from trunkline.actors.core.values.template import has_template
from trunkline.actors.core.values.terms import Description, Id, RecordView
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.actors.presentation.notebooks.forms import Inputs, Outputs, check_inputs
from trunkline.store.object_store import Stored

LongName = Annotated[str, Meta(min_length=1, max_length=1024)]
_ImageVersion = Literal["v1", "v2", "v3", "v4"]


class NotebookPost(Body, frozen=True):
    """A new notebook."""

    name: LongName
    description: Removable[Description] | UnsetType = UNSET
    image_version: Removable[_ImageVersion] | UnsetType = UNSET
    inputs: Inputs | UnsetType = UNSET
    outputs: Outputs | UnsetType = UNSET


@changes_of(NotebookPost)
class NotebookPatch(Body, frozen=True):
    """Changes of a notebook; omitted fields stay as they are. `inputs` and `outputs` replace the whole list."""


class NotebookPage(Page, frozen=True):
    """A page of notebooks. No notebook has been executed, so all are equal in `lastExecutionRequested`."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated", "lastExecutionRequested"] = "name"
    filter_field: Literal["name"] | None = None


class NotebookStats(View, frozen=True):
    """Executions in this period: none, because this server executes no notebooks."""

    minutes_this_period: int
    runs_this_period: int
    errors_this_period: int


class NotebookView(RecordView, frozen=True, kw_only=True):
    """A notebook."""

    notebook_id: Id
    application_id: Id
    name: str
    inputs: list[Any]
    outputs: list[Any]
    stats: NotebookStats
    description: str | None = None
    image_version: str | None = None
    jupyter_file_name: str | None = None
    jupyter_file_url: str | None = None


_STATS: Final = {"minutesThisPeriod": 0, "runsThisPeriod": 0, "errorsThisPeriod": 0}


def _check(change: Change) -> None:
    """Check the inputs, and that the application has the data tables that are newly named.

    Devices and files need not exist: the export of the inputs says which one is missing.
    """
    new = change.new
    known = set() if change.old is None else {id for _, id in _tables(change.old)}
    for name in ("inputs", "outputs"):
        new.setdefault(name, [])
    for at, id in _tables(change.named):
        if id not in known and not has_template(id):
            check_reference(change, DATA_TABLE, id, at)
    if "inputs" in change.named:
        check_inputs(new["inputs"], private=partial(may_be_private, change.owner.system))


def _tables(doc: Doc) -> Iterator[tuple[str, str]]:
    """Yield the places and ids of all data tables that a notebook names."""
    for name in ("inputs", "outputs"):
        for position, each in enumerate(doc.get(name, ())):
            if "dataTableId" in each:
                yield f"{name}[{position}].dataTableId", each["dataTableId"]


def _stats(_ids: Ids, _doc: Doc, _query: Any) -> Doc:
    return {"stats": _STATS}


def _join(context: ReadContext, _id: bytes, doc: Doc, _query: object) -> Doc:
    """The link to the file. It stays the same for a while, so that the entity tag does, too."""
    reading, contents = context.reading, _contents(doc)
    if reading.system is None or not contents:
        return {}
    ((content, stored),) = contents
    ttl_ms = reading.limits.url_ttl_default_s * 1000
    url = reading.system.component(Contents).link(
        context.parent,
        content,
        stored,
        file_name=doc["jupyterFileName"],
        content_type="application/x-ipynb+json",
        expires_ms=(context.now_ms // ttl_ms + 2) * ttl_ms,
    )
    return {"jupyterFileUrl": url}


def _contents(doc: Doc) -> NamedContents:
    """The content of the file, if there is one."""
    return ((doc["content"], Stored(doc["fileSize"], doc["sha256"])),) if "content" in doc else ()


def discard_file(owner: Actor, _id: bytes, doc: Doc) -> None:
    """Stage the removal of the content that a record names and will not name any more."""
    for content, stored in _contents(doc):
        owner.system.component(Contents).discard(owner, content, stored.size_bytes)


NOTEBOOK: Final = Kind(
    name="notebook",
    noun="notebook",
    indexes=("name", "creationDate", "lastUpdated", "lastExecutionRequested"),
    counted_as="notebookCount",
    contents=_contents,
    audited_as="Notebook",
)

NOTEBOOKS: Final = Resource(
    name="notebook",
    kind=NOTEBOOK,
    post=NotebookPost,
    patch=NotebookPatch,
    page=NotebookPage,
    view=NotebookView,
    check=_check,
    before_delete=discard_file,
    derive=_stats,
    join=_join,
)
