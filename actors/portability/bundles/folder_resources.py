"""The resources of a template folder, as lines of a bundle. What files they have is in `folder_files.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.records.export_lines import REMOVED
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.portable import ResourceName
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.portability.bundles.folder_tree import folder_path
from trunkline.actors.portability.bundles.portable import BY_NAME
from trunkline.actors.presentation.experience.portable import VersionPart
from trunkline.actors.workflows.flows.kind import DEVELOP
from trunkline.actors.workflows.flows.yaml_documents import made_id
from trunkline.actors.workflows.flows.yaml_exports import develop_of

_ELSEWHERE: Final = ("DataTableRow", "ExperienceDevelopConfig", "File", "PrivateFile")
TYPES: Final[Mapping[str, ResourceName]] = {
    **{
        name: name
        for name in BY_NAME
        if name not in ("DataTableRow", "ExperienceDevelopConfig", "File", "PrivateFile")
    },
    "DeviceTree": "Device",
    "ExperienceGroupTree": "ExperienceGroup",
}
"""The types of resources in folders, and their names in bundles."""

FILES: Final[tuple[tuple[ResourceName, str], ...]] = (("File", "files"), ("PrivateFile", "privateFiles"))
"""What becomes of the folders with files, which the application may call otherwise."""

_QUIET: Final = frozenset(
    {"id", "children", "exportHash", "localFilename", "version", "isPasswordProtected", "flowId", "token"}
)
"""Fields that are said elsewhere, or that an import makes anew: nothing is lost with them."""

_ABOVE: Final[Mapping[ResourceName, tuple[str, ...]]] = {
    "Device": ("parentId", "gatewayId"),
    "ExperienceGroup": ("parentId",),
    "ExperienceView": ("layoutId",),
}
"""Fields with what a resource stands behind."""

_DEEP_MAX: Final = 64


class Table(NamedTuple):
    """The rows of a data table: its id, the path of the file, and the columns."""

    id: str
    path: str
    columns: list[Doc]


class Resources:
    """The resources that were read. `text_of` reads a text of the folder, `hash_of` gives size and hash of a file."""

    def __init__(self, text_of: Callable[[str], str], hash_of: Callable[[str], Doc]) -> None:
        self._text_of = text_of
        self._hash_of = hash_of
        self.lines: dict[ResourceName, list[Doc]] = {}
        self.tables: list[Table] = []
        self.contents: list[tuple[ResourceName, str, str]] = []
        """What has a content: the name, its file, and the id."""
        self.left_out: Counter[str] = Counter()
        self._copies: dict[tuple[str, VersionPart], list[Doc]] = {}
        self._flows: dict[str, Doc] = {}
        self._versions: list[Doc] = []

    def add(self, type: str, path: str, doc: Any) -> None:
        """Add a resource of the file `path`. Raises `Invalid`."""
        if not isinstance(doc, dict):
            raise Invalid(f"{path}: resources: has something that is not an object.")
        name = TYPES[type]
        if name in ("Flow", "FlowVersion", "ExperienceFlowVersion"):
            self._flow(name, path, doc)
        elif name in ("ExperienceView", "ExperienceEndpoint"):
            self._of_version(name, path, doc)
        elif name == "ExperienceVersion" and doc.get("version", DEVELOP) == DEVELOP:
            self._line("ExperienceDevelopConfig", path, doc, has_id=False)
        elif name in ("Device", "ExperienceGroup"):
            self._tree(name, path, doc, None, 0)
        else:
            self._single(name, path, doc)

    def finish(self) -> None:
        """Bring what was read into the order of a bundle."""
        for doc in self._versions:
            flow = self._flows.get(doc["flowId"])
            if flow is None:
                self.left_out["versions of workflows that the folder does not have"] += 1
                continue
            kind: ResourceName = (
                "ExperienceFlowVersion" if flow.get("flowClass") == "experience" else "FlowVersion"
            )
            self._line(kind, "workflows", doc, more={"flowId": doc["flowId"]})
        of_versions: tuple[ResourceName, ...] = ("FlowVersion", "ExperienceFlowVersion")
        known = {line["id"] for name in of_versions for line in self.lines.get(name, ())}
        for doc in self._flows.values():
            runs = doc.pop("defaultVersionId", None)
            self._line("Flow", "workflows", doc, more={"defaultVersionId": runs} if runs in known else {})
        for name, above in _ABOVE.items():
            if name in self.lines:
                self.lines[name] = list(_behind(self.lines[name], above))

    def copies(self) -> Iterator[tuple[str, VersionPart, list[Doc]]]:
        """Yield the endpoints and the views of each named version of the experience, with the id of the version."""
        ids = {line["body"]["version"]: line["id"] for line in self.lines.get("ExperienceVersion", ())}
        for (version, part), lines in self._copies.items():
            if version not in ids:
                self.left_out[f"{part} of the version {version[:100]}, which the folder does not have"] += (
                    len(lines)
                )
                continue
            yield ids[version], part, list(_behind(lines, _ABOVE.get(part, ())))

    # The kinds.

    def _single(self, name: ResourceName, path: str, doc: Doc) -> None:
        more: Doc = {}
        if name == "ExperienceUser" and not doc.get("password"):
            doc, more = {**doc, "password": REMOVED}, {"removed": ["password"]}
        if name == "Dashboard" and doc.get("isPasswordProtected") and not doc.get("password"):
            doc, more = {**doc, "password": REMOVED}, {"removed": ["password"]}
        file = doc.get("localFilename")
        if name == "Notebook" and isinstance(file, str):
            file = folder_path(path, file)
            more = {**self._hash_of(file), "fileName": file.rpartition("/")[2]}
            self.contents.append((name, file, _id_of(path, doc)))
        line = self._line(name, path, doc, more=more, has_id=name != "Global")
        if name == "DataTable" and isinstance(file, str):
            columns = [each for each in doc.get("columns") or () if isinstance(each, dict)]
            self.tables.append(Table(line["id"], folder_path(path, file), columns))

    def _tree(self, name: ResourceName, path: str, doc: Doc, parent: str | None, depth: int) -> None:
        if depth > _DEEP_MAX:
            raise Invalid(f"{path}: the tree is deeper than {_DEEP_MAX} levels.")
        if parent is not None:
            is_peripheral = name == "Device" and doc.get("deviceClass") == "peripheral"
            doc = {("gatewayId" if is_peripheral else "parentId"): parent, **doc}
        line = self._line(name, path, doc)
        for child in doc.get("children") or ():
            if isinstance(child, dict):
                self._tree(name, path, child, line["id"], depth + 1)

    def _of_version(self, name: VersionPart, path: str, doc: Doc) -> None:
        file, version = doc.get("localFilename"), doc.get("version") or DEVELOP
        if isinstance(file, str):
            doc = {**doc, "body": self._text_of(folder_path(path, file))}
        if version == DEVELOP:
            self._line(name, path, doc)
            return
        line = self._made(name, path, doc)
        self._copies.setdefault((str(version), name), []).append(line)

    def _flow(self, name: ResourceName, path: str, doc: Doc) -> None:
        if name == "Flow":
            id = _id_of(path, doc)
            # As after an import elsewhere: a timer would fire before anybody has looked at it.
            self._flows[id] = {"enabled": doc.get("flowClass", "cloud") != "cloud", **doc, "id": id}
            return
        if not isinstance(doc.get("flowId"), str):
            raise Invalid(f"{path}: {doc.get('name')!r} has no flowId.")
        if doc.get("version") == DEVELOP:
            self._flows[doc["flowId"]] = develop_of(name, doc)
            return
        self._versions.append(doc)
        if name == "ExperienceFlowVersion":
            shell: Doc = {key: doc[key] for key in ("name", "description", "enabled") if key in doc}
            self._flows.setdefault(doc["flowId"], {**shell, "id": doc["flowId"], "flowClass": "experience"})

    # Lines.

    def _line(self, name: ResourceName, path: str, doc: Doc, **given: Any) -> Doc:
        line = self._made(name, path, doc, **given)
        self.lines.setdefault(name, []).append(line)
        return line

    def _made(
        self,
        name: ResourceName,
        path: str,
        doc: Doc,
        *,
        more: Doc | None = None,
        has_id: bool = True,
    ) -> Doc:
        """A line with the fields that its body has. What else there is, is left out and counted."""
        fields = {each.encode_name for each in msgspec.structs.fields(BY_NAME[name].body)}
        body = {key: value for key, value in doc.items() if key in fields and value is not None}
        for key in doc.keys() - fields - _QUIET:
            self.left_out[f"{name}: {key[:100]}"] += doc[key] not in (None, "", [], {})
        line: Doc = {"body": body}
        if has_id:
            line["id"] = _id_of(path, doc)
        if more:
            line["more"] = more
        return line


def _id_of(path: str, doc: Doc) -> str:
    id = doc.get("id")
    if isinstance(id, str) and id:
        return id.lower()
    label = f"{path}-{doc.get('name')}-{doc.get('email')}".encode().hex()
    return made_id(f"~exportplaceholderid-{label}~")


def _behind(lines: list[Doc], fields: tuple[str, ...]) -> Iterator[Doc]:
    """The lines in their order, but each behind those that it names in these fields."""
    by_id = {line["id"]: line for line in lines}
    done: set[str] = set()
    for first in lines:
        waiting = [first]
        entered: set[str] = set()
        while waiting:
            line = waiting[-1]
            above = [line["body"].get(field) for field in fields]
            missing = [by_id[id] for id in above if id in by_id and id not in done and id not in entered]
            if missing and line["id"] not in done:
                entered.add(line["id"])
                waiting.append(missing[0])
                continue
            waiting.pop()
            if line["id"] not in done:
                done.add(line["id"])
                yield line
