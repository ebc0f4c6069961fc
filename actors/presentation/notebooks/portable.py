"""The export and import of notebooks with their files, and of resource jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from trunkline.actors.core.records.portable import Item, WithContent, make_plain, portable
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.presentation.notebooks.messages import ImportNotebook
from trunkline.actors.presentation.notebooks.resource import NOTEBOOKS, LongName
from trunkline.actors.presentation.notebooks.resource_jobs import RESOURCE_JOBS

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.shared_batch import Ask


class NotebookMore(WithContent, frozen=True):
    """The content of a notebook, and the name of its file."""

    file_name: LongName | UnsetType = UNSET


def _make(item: Item) -> Iterator[Ask]:
    """A notebook that is replaced keeps its file."""
    if item.existing is not None:
        yield from make_plain(NOTEBOOKS, "notebooks", item)
        return
    ref = Ref("notebooks", item.application, item.application)
    name = item.more.file_name or "notebook.ipynb"
    yield ref, ImportNotebook(id=item.id, body=item.body, by=item.by, name=name)


NOTEBOOK_PARTS: Final = (
    portable(
        "Notebook",
        NOTEBOOKS,
        "notebooks",
        created_by="notebooks.post",
        more=NotebookMore,
        contents="notebooks",
        make=_make,
    ),
    portable("ResourceJob", RESOURCE_JOBS, created_by="resourceJobs.post"),
)
