"""The plan of an import: which lines it takes, and the id of each resource.

A plan follows from the bundle, the target and the job alone, so an attempt that is repeated makes the same records with
the same ids. Owns ids, and conflicts with records of the target. What is done for each line is in `steps.py`.

Memory: the ids of the resources of the bundle, of which there are at most `bundle_records_max`.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from trunkline.actors.connections.webhooks.address import new_token
from trunkline.actors.connections.webhooks.kind import WEBHOOK
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.secret_texts import new_secret
from trunkline.actors.portability.bundles.portable import PORTABLE, TOKEN_OF, Line, version_path
from trunkline.actors.portability.bundles.reader import walk_texts
from trunkline.actors.presentation.experience.portable import VERSION_PARTS
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunkline.actors.core.contents.signatures import Signatures
    from trunkline.actors.core.records.kind import Doc, Kind
    from trunkline.actors.core.records.messages import Creator
    from trunkline.actors.core.records.portable import Portable, ResourceName
    from trunkline.actors.portability.bundles.reader import Numbered, Source
    from trunkline.limits.table import Limits
    from trunkline.store.scratch import Scratch
    from trunkline.store.snapshot import Snapshot

Conflict = Literal["create", "error", "retain", "replace"]
"""What happens with a resource of which the target has one that is the same (`Portable.same`): it is created beside it,
the import is refused, the one of the target stays, or it gets the fields of the bundle."""

_TOKEN: Final = re.compile(f"{TOKEN_OF}([0-9a-f]{{24}})~")
_ID: Final = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{24}(?![0-9A-Fa-f])")
ROWS: Final = "DataTableRow"
"""The name of rows, which have entries of their own."""
MESSAGE_CHARS_MAX: Final = 1000
"""A sentence may quote what a bundle has, which may be of any length."""


class Target(NamedTuple):
    """Where a bundle goes. `job` is its owner and its id; the ids of the new records follow from it.

    `refusals` are operations that who imports may not perform there, each with the reason (`rights.py`).
    `include`: the names of resources that are taken, None for all. `name` is that of a new application, None for the
    one in the bundle.
    """

    application: bytes
    is_new: bool
    job: tuple[bytes, bytes]
    by: Creator
    refusals: Mapping[str, str] = {}
    include: frozenset[ResourceName] | None = None
    conflict: Conflict = "create"
    name: str | None = None


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Why a bundle cannot be imported: the name of the resource, its title and its id in the bundle, and a sentence."""

    type: str
    name: str
    id: str
    message: str


def problem_of(type: str, name: str, id: str, message: str) -> Problem:
    """The problem of a part of a bundle, whose texts may be of any length."""
    if len(message) > MESSAGE_CHARS_MAX:
        message = message[: MESSAGE_CHARS_MAX - 3] + "..."
    return Problem(type=type, name=name[:255], id=id, message=message)


class View:
    """What a plan reads of the target. It may be replaced by a newer one between two steps."""

    def __init__(self, source: Snapshot | Scratch) -> None:
        self.source = source

    def get(self, db: str, key: bytes) -> bytes | None:
        """The value at a key."""
        return self.source.get(db, key)


class Plan:
    """The plan of one import. `problems` are those that were found by looking at the bundle as a whole.

    Raises `Invalid` or `PayloadTooLarge` for a bundle that cannot be read.
    """

    def __init__(
        self, source: Source, target: Target, limits: Limits, view: View, signatures: Signatures | None = None
    ) -> None:
        self.target = target
        self.view = view
        self.problems: list[Problem] = []
        self.refused = 0
        """The number of all problems, of which only the first are kept."""
        self.counts: dict[str, int] = {}
        self.secret = f"{new_secret(24)}-aZ1"
        """A text that nobody knows, in the place of each secret that the export has removed."""
        self.source = source
        self._limits = limits
        self._signatures = signatures
        self._ids: dict[bytes, int] = {}
        """The ids of the resources that are taken, each with its place."""
        self.existing: dict[str, bytes] = {}
        self._used: set[bytes] = set()
        job = target.job[1]
        self._prefix = job[:4] + hashlib.sha256(job).digest()[:5]
        self.names = [portable for portable in PORTABLE if self.takes(portable.name)]
        self._read()

    @property
    def total(self) -> int:
        """The number of resources and rows."""
        return sum(self.counts.values())

    # Ids.

    def new_id(self, old: str) -> bytes:
        """The id of the record for a resource of the bundle, which must be known."""
        found = self.existing.get(old)
        if found is not None:
            return found
        # As in all ids: a second, what nobody else has, and a number. So records stay in the order of the bundle.
        return self._prefix + self._ids[bytes.fromhex(old)].to_bytes(3, "big")

    def known(self, old: str) -> bool:
        """Whether an id, in lower case, is that of a resource of the bundle that is taken."""
        return bytes.fromhex(old) in self._ids

    def with_new_ids(self, value: Any) -> Any:
        """The value with the new ids in all its texts, and tokens of webhooks in the place of what names them."""
        return walk_texts(value, lambda text: self._with_new_ids(text) if len(text) >= 24 else text)

    def _with_new_ids(self, text: str) -> str:
        return _ID.sub(self._mapped, _TOKEN.sub(self._token, text) if TOKEN_OF in text else text)

    def _token(self, found: re.Match[str]) -> str:
        """The token of a webhook, which may be created by a later step. A check needs only one of the same length."""
        if not self.known(found[1]):
            return found[0]
        id = self.new_id(found[1])
        doc = self.record(WEBHOOK, id)
        if doc is not None:
            return str(doc["token"])
        if self._signatures is None:
            return f"{(self.target.application + id).hex()}{'-' * 32}"
        return new_token(self._signatures, self.target.application, id)

    def _mapped(self, found: re.Match[str]) -> str:
        old = found[0].lower()
        if old == self.source.manifest.application_id.lower():
            return self.target.application.hex()
        return self.new_id(old).hex() if self.known(old) else found[0]

    # The first look at the bundle.

    def takes(self, name: str) -> bool:
        include = self.target.include
        return include is None or name in include

    def _read(self) -> None:
        """Collect the ids and the counts, and find the records of the target that are the same."""
        for portable in self.names:
            self.counts[portable.name] = 0
            if portable.name == ROWS:
                self._count_rows()
            else:
                for each in self.source.lines(portable.path):
                    self._collect(portable, each)
            count = self.counts[portable.name]
            said = self.source.manifest.resources.get(portable.name, 0)
            if said != count:
                self._refuse(
                    portable.name,
                    "",
                    "",
                    f"the manifest says {said}, and the bundle has {count}; it is not whole.",
                )
        self._check_entries()

    def _collect(self, portable: Portable, each: Numbered) -> None:
        """Count a line, and note its id."""
        self.counts[portable.name] += 1
        try:
            line = each.parse()
        except Invalid:
            return  # the step of the line says so
        name = portable.name
        if portable.kind is None:
            if name == "Global" and not self.target.is_new:
                self._check_global(line)
            return
        if not isinstance(line.id, str):
            self._refuse(name, label_of(name, line), "", f"line {each.number}: has no id.")
            return
        old = line.id.lower()
        if not self._add(old):
            self._refuse(name, label_of(name, line), old, "the id stands in the bundle twice.")
            return
        if name == "ExperienceVersion":
            for part in VERSION_PARTS:
                for copy in self.source.lines(version_path(old, part)):
                    self._add_copy(copy)
        if not self.target.is_new:
            self._find_same(portable, line, old)

    def _add_copy(self, each: Numbered) -> None:
        try:
            line = each.parse()
        except Invalid:
            return
        if isinstance(line.id, str):
            self._add(line.id.lower())

    def _add(self, old: str) -> bool:
        id = bytes.fromhex(old)
        if id in self._ids:
            return False
        if len(self._ids) >= self._limits.bundle_records_max:
            raise PayloadTooLarge(
                f"importBundle: has more than {self._limits.bundle_records_max} resources, which is the limit."
            )
        self._ids[id] = len(self._ids)
        return True

    def _count_rows(self) -> None:
        most = self._limits.bundle_rows_max
        for name in self.source.names():
            if name.startswith("rows/"):
                for _ in self.source.lines(name):
                    self.counts[ROWS] += 1
                    if self.counts[ROWS] > most:
                        raise PayloadTooLarge(f"importBundle: has more than {most} rows, which is the limit.")

    def _check_entries(self) -> None:
        """Refuse contents that belong to no resource."""
        for name in self.source.names():
            folder, _, rest = name.partition("/")
            owner = _OWNERS.get(folder)
            if owner is not None and self.takes(owner):
                old = rest[:24]
                if not self.known(old):
                    self._refuse(
                        owner, "", old, f"the bundle has the entry {name} and no {owner} with this id."
                    )

    def _find_same(self, portable: Portable, line: Line, old: str) -> None:
        """Note the record of the target that is the same, or refuse the line because there is one."""
        kind, conflict = portable.kind, self.target.conflict
        is_directory = portable.find is not None and line.body.get("type") == "directory"
        if conflict == "create" and not is_directory:
            return
        assert kind is not None
        wanted = {**self.with_new_ids(line.more), **line.body}
        own = self.new_id(old)
        if self.record(kind, own) is not None:
            self._used.add(own)  # an earlier attempt of this job has made it
            return
        if portable.find is not None:
            same = portable.find(self.view.get, self.target.application, line.body)
        else:
            same = self._same(kind, portable.same, wanted)
        if same is None:
            return
        if conflict == "error" and not is_directory:
            self._refuse(
                portable.name,
                label_of(portable.name, line),
                old,
                f"the application has a {kind.noun} that is the same: {same.hex()}.",
            )
        self.existing[old] = same
        self._used.add(same)

    def _same(self, kind: Kind, fields: tuple[str, ...], wanted: Doc) -> bytes | None:
        """The oldest record of the target with these values that no other line stands for."""
        values = {field: _defaulted(field, wanted) for field in fields}
        first = values[fields[0]]
        if not isinstance(first, str):
            return None
        sortable = keys.sortable_folded(first) if fields[0] == "email" else keys.sortable(first)
        db, low, high = index_range(kind, self.target.application, fields[0], sortable)
        found = []
        for key, _ in self.view.source.range(db, low, high):
            id = bytes(key[-keys.ID_BYTES :])
            doc = self.record(kind, id)
            if doc is not None and id not in self._used and _equal(doc, values):
                found.append(id)
        return min(found, default=None)

    def record(self, kind: Kind, id: bytes) -> Doc | None:
        return records.doc_of(self.view, kind, self.target.application, id)

    def globals(self) -> dict[Any, Any]:
        """The globals of the target: their values as JSON texts, by key."""
        raw = records.raw_of(self.view.get, APPLICATION, ROOT, self.target.application)
        return {} if raw is None else {each["key"]: each["json"] for each in decode(raw).get("globals", ())}

    def _check_global(self, line: Line) -> None:
        """Refuse a global of which the target has another value, unless the conflict is resolved otherwise."""
        key, value = line.body.get("key"), self.with_new_ids(line.body).get("json")
        if self.target.conflict in ("create", "error") and self.globals().get(key, value) != value:
            self._refuse(
                "Global", str(key), "", "the application has a global with this key and another value."
            )

    def _refuse(self, type: str, name: str, id: str, message: str) -> None:
        self.refused += 1
        if len(self.problems) < self._limits.bundle_errors_max:
            self.problems.append(problem_of(type, name, id, message))


_OWNERS: Final = {
    "rows": "DataTable",
    "versions": "ExperienceVersion",
    **{each.contents: each.name for each in PORTABLE if each.contents not in (None, "rows", "versions")},
}
"""By folder: the name of the resources whose contents are in it."""


def label_of(name: str, line: Line) -> str:
    """What people call a resource."""
    body = line.body
    if name == "ExperienceEndpoint":
        return f"{body.get('method')} {body.get('route')}"
    for field in ("name", "version", "email", "key"):
        if isinstance(body.get(field), str):
            return str(body[field])
    return ""


def _defaulted(field: str, wanted: Doc) -> Any:
    """The value of a field, for workflows that of the class that they have without one."""
    if field == "flowClass":
        return wanted.get(field, "cloud")
    return wanted.get(field)


def _equal(doc: Doc, values: Doc) -> bool:
    for field, value in values.items():
        other = doc.get(field)
        if field == "email" and isinstance(value, str) and isinstance(other, str):
            if value.casefold() != other.casefold():
                return False
        elif other != value:
            return False
    return True
