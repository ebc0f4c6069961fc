"""The steps of an import: what is done for each line, in an order in which everything that is named exists.

Owns the bodies with the new ids, and the messages of each line. Which id a resource gets is in `plan.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.portable import Item
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Forbidden, Invalid
from trunkline.actors.core.values.ids import ROOT, timestamp_bytes
from trunkline.actors.data.tables.messages import InsertRows, TruncateRows
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.actors.platform.applications.readme import PatchReadme, ReadmePatch
from trunkline.actors.portability.bundles.line_bodies import decode_body, drop_missing, put_secrets
from trunkline.actors.portability.bundles.plan import ROWS, Plan, Problem, label_of, problem_of
from trunkline.actors.portability.bundles.portable import (
    BY_NAME,
    Line,
    contents_path,
    rows_path,
    version_path,
)
from trunkline.actors.presentation.experience.copies import Copied
from trunkline.actors.presentation.experience.kind import DEVELOP
from trunkline.actors.presentation.experience.portable import VERSION_PARTS
from trunkline.actors.workflows.flows.portable import default_version

if TYPE_CHECKING:
    from trunkline.actors.core.records.kind import Doc
    from trunkline.actors.core.records.portable import Portable
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.actors.core.values.structs import Message
    from trunkline.actors.portability.bundles.reader import Numbered
    from trunkline.actors.presentation.experience.portable import VersionPart
    from trunkline.limits.table import Limits

_ROWS_PER_STEP: Final = 500


class Content(NamedTuple):
    """The content of a file: its entry in the bundle, its size and its SHA-256 in hex."""

    entry: str
    size_bytes: int
    sha256: str


class Step(NamedTuple):
    """What is done for a line: the asks, or why there are none. `counts`: how many resources are made by it.

    `content` is written before the one message of a file is sent, and named in it.
    """

    type: str
    name: str
    id: str
    asks: list[Ask]
    refusal: DomainError | None = None
    counts: int = 0
    content: Content | None = None

    def problem(self, refusal: DomainError) -> Problem:
        """The problem of this line."""
        return problem_of(self.type, self.name, self.id, refusal.message)


class Steps:
    """The steps of a plan."""

    def __init__(self, plan: Plan, limits: Limits) -> None:
        self.plan = plan
        self._limits = limits

    def all(self) -> Iterator[Step]:
        """Yield what is to be done, in an order in which everything that is named exists."""
        if self.plan.target.is_new:
            yield self._application_step()
        for portable in self.plan.names:
            if portable.name == ROWS:
                yield from self._row_steps()
                continue
            for each in self.plan.source.lines(portable.path):
                yield self._step(portable, each)
        if self.plan.takes("Flow"):
            for each in self.plan.source.lines(BY_NAME["Flow"].path):
                step = self._default_step(each)
                if step is not None:
                    yield step

    def _application_step(self) -> Step:
        target, said = self.plan.target, self.plan.source.manifest.application
        ref = Ref("application", ROOT, target.application)
        body = ApplicationPost(
            name=target.name or said.name,
            description=self.plan.with_new_ids(said.description),
            endpoint_default_cors=said.endpoint_default_cors,
            blob_url_ttl=said.blob_url_ttl,
        )
        asks: list[Ask] = []
        if not records.exists(self.plan.view, APPLICATION, ROOT, target.application):
            asks.append((ref, CreateApplication(body=body, user=ROOT, job=target.job)))
        if isinstance(said.readme, str):
            asks.append(
                (
                    ref,
                    PatchReadme(body=ReadmePatch(content=self.plan.with_new_ids(said.readme)), by=target.by),
                )
            )
        return Step("Application", body.name, "", asks)

    def _step(self, portable: Portable, each: Numbered) -> Step:
        name = portable.name
        label, old = f"line {each.number}", ""
        try:
            line = each.parse()
            label = label_of(name, line)
            old = line.id.lower() if isinstance(line.id, str) else ""
            asks = self._asks(portable, line, old)
            content = self._content(portable, line, old) if asks and names_content(asks[0][1]) else None
        except DomainError as refusal:
            return Step(name, label, old, [], refusal)
        return Step(name, label, old, asks, counts=1, content=content)

    def _content(self, portable: Portable, line: Line, old: str) -> Content | None:
        """The content of a file or a notebook. Raises `Invalid` if the bundle does not have it."""
        more = decode_body(portable, line.body, line.more)[1]
        # A directory has none, and a notebook need not have one.
        if more.sha256 is UNSET if portable.name == "Notebook" else line.body.get("type") != "file":
            return None
        entry = contents_path(portable, old)
        if not isinstance(more.sha256, str) or not isinstance(more.size, int):
            raise Invalid("more: a file needs the size and the sha256 of its content.")
        if entry not in self.plan.source.names():
            raise Invalid(f"the bundle has no entry {entry} with the content of this file.")
        return Content(entry, more.size, more.sha256)

    def _asks(self, portable: Portable, line: Line, old: str) -> list[Ask]:
        kind, target = portable.kind, self.plan.target
        if kind is None and target.conflict == "retain" and self._is_set(portable.name, line):
            return []
        id = self.plan.new_id(old) if old else target.application
        existing = None if kind is None else self.plan.record(kind, id)
        if existing is not None and (old not in self.plan.existing or target.conflict == "retain"):
            return []  # an earlier attempt has made it, or it stays as it is
        operation = portable.created_by if existing is None else portable.changed_by
        if operation in target.refusals:
            raise Forbidden(target.refusals[operation])
        item = self._item(portable, line, id, existing)
        return list(portable.make(item))

    def _is_set(self, name: str, line: Line) -> bool:
        """Whether the target has this global, or settings of its version `develop`."""
        if name == "Global":
            return line.body.get("key") in self.plan.globals()
        return self.plan.record(DEVELOP, self.plan.target.application) is not None

    def _item(self, portable: Portable, line: Line, id: bytes, existing: Doc | None) -> Item:
        target = self.plan.target
        body, more = self._mapped_parts(portable, line, keep=existing is not None)
        item = Item(target.application, id, body, more, target.by, existing)
        if portable.name == "ExperienceVersion" and isinstance(line.id, str):
            for part in VERSION_PARTS:
                item.copies[part] = [
                    self._copy(part, each)
                    for each in self.plan.source.lines(version_path(line.id.lower(), part))
                ]
        return item

    def _mapped_parts(self, portable: Portable, line: Line, *, keep: bool = False) -> tuple[Any, Any]:
        body, more = {**line.body}, line.more
        drop_missing(portable.name, body, self.plan.target.application, self.plan.known, self.plan.view.get)
        body, more = self.plan.with_new_ids(body), self.plan.with_new_ids(more)
        removed = more.get("removed")
        if isinstance(removed, list) and all(isinstance(path, str) for path in removed):
            put_secrets(body, removed, self.plan.secret, keep=keep)
        return decode_body(portable, body, more)

    def _copy(self, part: VersionPart, each: Numbered) -> Copied:
        line = each.parse()
        if not isinstance(line.id, str):
            raise Invalid(f"{part}: line {each.number} has no id.")
        body, _ = self._mapped_parts(BY_NAME[part], line)
        return Copied(self.plan.new_id(line.id.lower()), body)

    def _default_step(self, each: Numbered) -> Step | None:
        try:
            line = each.parse()
            version = line.more.get("defaultVersionId")
            if not isinstance(line.id, str) or not isinstance(version, str):
                return None
            old = line.id.lower()
            if self.plan.target.conflict == "retain" and old in self.plan.existing:
                return None
            _, more = decode_body(BY_NAME["Flow"], {"name": "x"}, self.plan.with_new_ids(line.more))
        except DomainError:
            return None  # the step of the line says so
        item = Item(self.plan.target.application, self.plan.new_id(old), None, more, self.plan.target.by)
        return Step("Flow", label_of("Flow", line), old, list(default_version(item)))

    # Rows.

    def _row_steps(self) -> Iterator[Step]:
        for table in self.plan.source.lines(BY_NAME["DataTable"].path):
            try:
                line = table.parse()
            except Invalid:
                continue
            old = line.id.lower() if isinstance(line.id, str) else ""
            if not old or (old in self.plan.existing and self.plan.target.conflict == "retain"):
                continue
            ref = Ref("dataTable", self.plan.target.application, self.plan.new_id(old))
            label = label_of("DataTable", line)
            if old in self.plan.existing:
                yield Step(ROWS, label, old, [(ref, TruncateRows())])
            yield from self._rows_of(ref, label, old)

    def _rows_of(self, ref: Ref, label: str, old: str) -> Iterator[Step]:
        rows: list[Doc] = []
        ids: list[bytes] = []
        position = 0

        def step() -> Step:
            asks: list[Ask] = [(ref, InsertRows(body=rows, import_ids=ids))]
            where = f"{label}, rows {position - len(rows) + 1} to {position}"
            return Step(ROWS, where, old, asks, counts=len(rows))

        size = 0
        for each in self.plan.source.lines(rows_path(old)):
            position += 1
            try:
                body = each.parse().body
                rows.append(_checked_row(self.plan.with_new_ids(body)))
            except Invalid as refusal:
                yield Step(ROWS, f"{label}, row {position}", old, [], refusal)
                continue
            ids.append(self._row_id(ref.id, position))
            size += len(each.raw) if isinstance(each.raw, bytes) else 0
            if len(rows) >= _ROWS_PER_STEP or size >= self._limits.body_bytes_max:
                yield step()
                rows, ids, size = [], [], 0
        if rows:
            yield step()

    def _row_id(self, table: bytes, position: int) -> bytes:
        """The id of a row: the second of the job, then the place of its table and its own, so that the order stays."""
        seconds = int.from_bytes(self.plan.target.job[1][:4], "big")
        return timestamp_bytes(seconds * 1000) + table[-3:] + position.to_bytes(3, "big")


def names_content(message: Message) -> bool:
    """Whether a content is written before this message, which names it."""
    return "content" in message.__struct_fields__


def _checked_row(body: Doc) -> Doc:
    for name, value in body.items():
        if isinstance(value, dict | list):
            raise Invalid(
                f"{name[:255]}: is an array or an object; a cell takes a text, a number, a boolean or null."
            )
    return body
